// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A vector whose storage starts on a cache line.

#include <cstddef>
#include <new>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
inline constexpr std::size_t cache_line = 64;

template <class T>
struct line_allocator {
  using value_type = T;
  line_allocator() noexcept = default;
  template <class U>
  explicit line_allocator(line_allocator<U> const&) noexcept {}
  [[nodiscard]] auto allocate(std::size_t n) -> T* {
    return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t{cache_line}));
  }
  auto deallocate(T* p, std::size_t) noexcept -> void { ::operator delete(p, std::align_val_t{cache_line}); }
  friend auto operator==(line_allocator const&, line_allocator const&) noexcept -> bool { return true; }
};

template <class T>
using aligned_vector = std::vector<T, line_allocator<T>>;
/// \endcond

} // namespace quire::detail
