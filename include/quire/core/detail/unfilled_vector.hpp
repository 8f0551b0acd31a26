// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A vector of plain values that leaves what `resize` adds as it is: for those who write all of it next.

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
/// Constructs nothing where no value is given.
template <class T>
struct unfilled_allocator : std::allocator<T> {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
  template <class U>
  struct rebind {
    using other = unfilled_allocator<U>;
  };
  unfilled_allocator() noexcept = default;
  template <class U>
  explicit unfilled_allocator(unfilled_allocator<U> const&) noexcept {}
  template <class U>
  auto construct(U*) noexcept -> void {}
  template <class U, class... Args>
  auto construct(U* at, Args&&... args) -> void {
    std::construct_at(at, std::forward<Args>(args)...);
  }
};

template <class T>
using unfilled_vector = std::vector<T, unfilled_allocator<T>>;
/// \endcond

} // namespace quire::detail
