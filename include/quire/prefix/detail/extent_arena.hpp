// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Contiguous places for the block ids of runs: a buddy allocator over one array.
///
/// ```text
///   order 9   |                         512 slots                          |
///   order 8   |            256              |             256              |
///   …
///   order 2   |4|4|4|4| …
/// ```
///
/// A free extent keeps its list links in its own first two slots, so the arena costs one byte per four slots beside
/// the slots themselves. Nothing here fails hard: without an extent of the wanted order the caller takes a smaller one
/// and chains two runs.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
class extent_arena {
public:
  static constexpr std::uint32_t min_order = 2;
  static constexpr std::uint32_t max_order = 9;
  static constexpr std::uint32_t none = 0xffff'ffffU;

  explicit extent_arena(std::uint32_t slots)
      : slots_((slots + (1U << max_order) - 1) & ~((1U << max_order) - 1)), order_(slots_.size() >> min_order, taken) {
    heads_.fill(none);
    for (auto place = static_cast<std::uint32_t>(slots_.size()); place != 0;) {
      place -= 1U << max_order;
      push(place, max_order);
    }
  }
  /// Smallest order that holds \p length ids.
  [[nodiscard]] static constexpr auto order_for(std::uint32_t length) noexcept -> std::uint32_t {
    auto const order = static_cast<std::uint32_t>(std::bit_width(length - 1));
    return order < min_order ? min_order : order;
  }
  /// First slot of a free extent of 2^order slots, `none` if there is none that large.
  [[nodiscard]] auto allocate(std::uint32_t order) noexcept -> std::uint32_t {
    auto const fitting = nonempty_ >> order;
    if (fitting == 0) { return none; }
    auto found = order + static_cast<std::uint32_t>(std::countr_zero(fitting));
    auto const place = heads_[found];
    unlink(place, found);
    while (found > order) {
      --found;
      push(place + (1U << found), found);
    }
    return place;
  }
  auto free(std::uint32_t place, std::uint32_t order) noexcept -> void {
    while (order < max_order) {
      auto const buddy = place ^ (1U << order);
      if (order_[buddy >> min_order] != order) { break; }
      unlink(buddy, order);
      place &= ~(1U << order);
      ++order;
    }
    push(place, order);
  }
  [[nodiscard]] auto at(std::uint32_t place) noexcept -> std::uint32_t* { return &slots_[place]; }
  [[nodiscard]] auto at(std::uint32_t place) const noexcept -> std::uint32_t const* { return &slots_[place]; }

  [[nodiscard]] auto slots() const noexcept -> std::size_t { return slots_.size(); }
  /// Slots in free extents. \complexity O(free extents)
  [[nodiscard]] auto free_slots() const noexcept -> std::size_t {
    std::size_t n = 0;
    for (std::uint32_t order = min_order; order <= max_order; ++order) {
      for (auto place = heads_[order]; place != none; place = slots_[place]) { n += std::size_t{1} << order; }
    }
    return n;
  }
  [[nodiscard]] auto bytes() const noexcept -> std::size_t {
    return slots_.size() * sizeof(std::uint32_t) + order_.size();
  }

private:
  static constexpr std::uint8_t taken = 0xff;

  auto push(std::uint32_t place, std::uint32_t order) noexcept -> void {
    order_[place >> min_order] = static_cast<std::uint8_t>(order);
    slots_[place] = heads_[order];
    slots_[place + 1] = none;
    if (heads_[order] != none) { slots_[heads_[order] + 1] = place; }
    heads_[order] = place;
    nonempty_ |= 1U << order;
  }
  auto unlink(std::uint32_t place, std::uint32_t order) noexcept -> void {
    auto const next = slots_[place];
    auto const prev = slots_[place + 1];
    order_[place >> min_order] = taken;
    if (prev != none) {
      slots_[prev] = next;
    } else {
      heads_[order] = next;
      if (next == none) { nonempty_ &= ~(1U << order); }
    }
    if (next != none) { slots_[next + 1] = prev; }
  }

  std::vector<std::uint32_t> slots_;
  std::vector<std::uint8_t> order_; // of the free extent that starts here, else `taken`
  std::array<std::uint32_t, max_order + 1> heads_{};
  std::uint32_t nonempty_ = 0; // bit o: a free extent of order o exists
};
/// \endcond

} // namespace quire::detail
