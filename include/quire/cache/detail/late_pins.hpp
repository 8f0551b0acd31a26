// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Pins that sequences gave up while work in flight may still read what they protect (S18).

#include <quire/prefix/prefix_pin.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
/// One queue of pins per timeline. A pin waits for its timelines one after the other; of a queue the head is looked at.
template <class Clock>
class late_pins {
public:
  using tickets = typename Clock::tickets;

  explicit late_pins(Clock const& clock) noexcept : clock_{&clock} {}

  /// Makes sure that \p more pins can be given up without memory. \throws std::bad_alloc; nothing has changed then.
  auto reserve(std::size_t more) -> void {
    if constexpr (!Clock::immediate) {
      for (auto& queue : queues_) { queue.reserve(size_ + more); } // whatever waits may wait for any timeline next
    }
  }
  /// Gives \p pin back to \p index once \p last is over. \pre `reserve`
  template <class Index>
  auto release(Index& index, prefix_pin&& pin, tickets const& last) -> void {
    if (!pin) { return; }
    if (clock_->reached(last)) { return index.release(std::move(pin)); }
    queues_[clock_->behind(last)].push(std::move(pin), last);
    ++size_;
  }
  /// Gives back what waited for tickets that are reached now.
  template <class Index>
  auto reclaim(Index& index) -> void {
    if constexpr (!Clock::immediate) {
      for (std::uint32_t t = 0; t < Clock::timelines; ++t) {
        while (!queues_[t].empty() && clock_->reached(t, queues_[t].front().last[t])) {
          auto late = queues_[t].pop();
          --size_;
          release(index, std::move(late.pin), late.last);
        }
      }
    }
  }
  /// Visits every pin that waits; it may be exchanged.
  template <class Visit>
  auto for_each(Visit visit) -> void {
    for (auto& queue : queues_) {
      for (auto& late : queue.all()) { visit(late.pin); }
    }
  }
  template <class Visit>
  auto for_each(Visit visit) const -> void {
    for (auto const& queue : queues_) {
      for (auto const& late : queue.all()) { visit(late.pin); }
    }
  }
  [[nodiscard]] auto size() const noexcept -> std::size_t { return size_; }

private:
  struct late_pin {
    prefix_pin pin;
    tickets last;
  };
  class fifo {
  public:
    auto reserve(std::size_t all) -> void {
      if (all <= waiting_.capacity() - first_) { return; }
      if (all <= waiting_.capacity() / 2) { // room enough, once those that are gone make place
        waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(first_));
        first_ = 0;
        return;
      }
      std::vector<late_pin> larger;
      larger.reserve(2 * all);
      for (auto i = first_; i < waiting_.size(); ++i) { larger.push_back(std::move(waiting_[i])); }
      waiting_ = std::move(larger);
      first_ = 0;
    }
    auto push(prefix_pin&& pin, tickets const& last) noexcept -> void { waiting_.push_back({std::move(pin), last}); }
    [[nodiscard]] auto empty() const noexcept -> bool { return first_ == waiting_.size(); }
    [[nodiscard]] auto front() const noexcept -> late_pin const& { return waiting_[first_]; }
    auto pop() noexcept -> late_pin {
      auto out = std::move(waiting_[first_++]);
      if (empty()) {
        waiting_.clear();
        first_ = 0;
      }
      return out;
    }
    [[nodiscard]] auto all() noexcept -> std::span<late_pin> { return std::span{waiting_}.subspan(first_); }
    [[nodiscard]] auto all() const noexcept -> std::span<late_pin const> { return std::span{waiting_}.subspan(first_); }

  private:
    std::vector<late_pin> waiting_;
    std::size_t first_ = 0;
  };

  Clock const* clock_;
  std::array<fifo, Clock::timelines> queues_;
  std::size_t size_ = 0;
};
/// \endcond

} // namespace quire::detail
