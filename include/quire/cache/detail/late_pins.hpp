// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Pins that a sequence gave up while in-flight work may still read what they protect (S18).

#include <quire/core/types.hpp>
#include <quire/prefix/prefix_pin.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
/// FIFO of pins and their tickets on one timeline.
class late_pins {
public:
  /// Makes sure that \p more pushes need no memory. \throws std::bad_alloc; nothing has changed then.
  auto reserve(std::size_t more) -> void {
    if (first_ > 0 && waiting_.size() + more > waiting_.capacity()) {
      waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
    waiting_.reserve(waiting_.size() + more);
  }
  /// \pre `reserve`
  /// \param unready [blocks] at the end of the path that may not be finished.
  auto push(prefix_pin&& pin, ticket until, std::uint32_t unready) noexcept -> void {
    waiting_.push_back({std::move(pin), until, unready});
  }
  /// Hands pins whose ticket \p reached(ticket) to \p release(prefix_pin&&, unready), oldest first.
  template <class Reached, class Release>
  auto drain(Reached reached, Release release) -> void {
    while (first_ < waiting_.size() && reached(waiting_[first_].until)) {
      auto& late = waiting_[first_++];
      release(std::move(late.pin), late.unready);
    }
    if (first_ == waiting_.size()) {
      waiting_.clear();
      first_ = 0;
    }
  }
  [[nodiscard]] auto empty() const noexcept -> bool { return first_ == waiting_.size(); }
  [[nodiscard]] auto size() const noexcept -> std::size_t { return waiting_.size() - first_; }
  template <class Visit>
  auto for_each(Visit visit) const -> void {
    for (auto i = first_; i < waiting_.size(); ++i) { visit(waiting_[i].pin, waiting_[i].unready); }
  }
  /// Lets \p change(pin, unready) alter every pin in place.
  template <class Change>
  auto change_each(Change change) -> void {
    for (auto i = first_; i < waiting_.size(); ++i) { change(waiting_[i].pin, waiting_[i].unready); }
  }

private:
  struct late_pin {
    prefix_pin pin;
    ticket until;
    std::uint32_t unready;
  };
  std::vector<late_pin> waiting_;
  std::size_t first_ = 0;
};
/// \endcond

} // namespace quire::detail
