// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A list of plain values that a step fills through a pointer.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

namespace quire::detail {

/// \cond INTERNAL
/// As a vector, but values behind the end may be written first and counted afterwards (`add`), and nothing is ever
/// initialised: a loop that fills it keeps one pointer and no end in memory.
template <class T>
  requires std::is_trivially_copyable_v<T>
class step_list {
public:
  /// Makes room for \p size values. \throws std::bad_alloc; nothing has changed then.
  auto reserve(std::size_t size) -> void {
    if (size <= capacity_) { return; }
    auto const capacity = std::max(size, 2 * capacity_);
    auto larger = std::make_unique_for_overwrite<T[]>(capacity);
    std::copy_n(values_.get(), size_, larger.get());
    values_ = std::move(larger);
    capacity_ = capacity;
  }
  /// First place behind the end. \pre there is room for what is written
  [[nodiscard]] auto end_place() noexcept -> T* { return values_.get() + size_; }
  /// Counts \p n values that were written behind the end.
  auto add(std::size_t n) noexcept -> void { size_ += n; }
  /// Adds \p values. \throws std::bad_alloc
  auto append(std::span<T const> values) -> void {
    reserve(size_ + values.size());
    std::copy(values.begin(), values.end(), end_place());
    add(values.size());
  }
  auto clear() noexcept -> void { size_ = 0; }
  [[nodiscard]] auto size() const noexcept -> std::size_t { return size_; }
  [[nodiscard]] auto begin() noexcept -> T* { return values_.get(); }
  [[nodiscard]] auto end() noexcept -> T* { return values_.get() + size_; }
  [[nodiscard]] auto begin() const noexcept -> T const* { return values_.get(); }
  [[nodiscard]] auto end() const noexcept -> T const* { return values_.get() + size_; }
  [[nodiscard]] auto operator[](std::size_t i) noexcept -> T& { return values_[i]; }

private:
  std::unique_ptr<T[]> values_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};
/// \endcond

} // namespace quire::detail
