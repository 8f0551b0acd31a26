// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Objects side by side that are made in place and never move: for types that cannot.

#include <quire/core/contract.hpp>

#include <cstddef>
#include <memory>
#include <utility>

namespace quire::detail {

/// \cond INTERNAL
/// A list of at most as many values as it was made for.
template <class T>
class fixed_list {
public:
  /// \throws std::bad_alloc
  explicit fixed_list(std::size_t capacity) : values_{std::allocator<T>{}.allocate(capacity)}, capacity_{capacity} {}
  fixed_list(fixed_list const&) = delete;
  auto operator=(fixed_list const&) -> fixed_list& = delete;
  ~fixed_list() {
    while (size_ > 0) { std::destroy_at(values_ + --size_); }
    std::allocator<T>{}.deallocate(values_, capacity_);
  }

  /// Makes one more. \pre there is room
  template <class... Args>
  auto emplace_back(Args&&... args) -> T& {
    QUIRE_EXPECTS(size_ < capacity_);
    auto& made = *std::construct_at(values_ + size_, std::forward<Args>(args)...);
    ++size_;
    return made;
  }
  [[nodiscard]] auto size() const noexcept -> std::size_t { return size_; }
  [[nodiscard]] auto operator[](std::size_t i) noexcept -> T& { return values_[i]; }
  [[nodiscard]] auto operator[](std::size_t i) const noexcept -> T const& { return values_[i]; }
  [[nodiscard]] auto begin() noexcept -> T* { return values_; }
  [[nodiscard]] auto end() noexcept -> T* { return values_ + size_; }
  [[nodiscard]] auto begin() const noexcept -> T const* { return values_; }
  [[nodiscard]] auto end() const noexcept -> T const* { return values_ + size_; }

private:
  T* values_;
  std::size_t size_ = 0;
  std::size_t capacity_;
};
/// \endcond

} // namespace quire::detail
