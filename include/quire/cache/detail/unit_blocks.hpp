// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Which block of a group hangs on which unit of the index: its content, as others can find it.
///
/// ```text
///   place      u0.0  u0.1  u1.0  u1.1  u2.0           two blocks on a unit
///   on it       7     2     -     4     -
/// ```

#include <quire/core/types.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
/// Where blocks come and go by themselves, each knows its place; where the unit keeps them, nobody asks.
class unit_blocks {
public:
  static constexpr std::uint32_t nowhere = 0xffff'ffffU;

  /// \param blocks [blocks] that know their place: those of a group kept by block; 0 = none do
  unit_blocks(unit_count units, std::uint32_t per_unit, std::uint32_t blocks)
      : per_unit_{per_unit}, on_(std::size_t{units.value()} * per_unit), place_(blocks, nowhere), hung_in_(blocks) {}

  /// [blocks] on a unit.
  [[nodiscard]] auto per_unit() const noexcept -> std::uint32_t { return per_unit_; }
  /// [blocks] that hang.
  [[nodiscard]] auto size() const noexcept -> std::uint32_t { return size_; }
  /// Of block \p i of \p unit.
  [[nodiscard]] auto place(unit_id unit, std::uint32_t i) const noexcept -> std::uint32_t {
    return unit.value() * per_unit_ + i;
  }
  /// Of logical block \p j of a path.
  [[nodiscard]] auto place(std::span<unit_id const> units, std::uint32_t j) const noexcept -> std::uint32_t {
    if (per_unit_ == 1) { return units[j].value(); } // without divisions
    return place(units[j / per_unit_], j % per_unit_);
  }
  /// The block at \p place, none if there is none.
  [[nodiscard]] auto operator[](std::uint32_t place) const noexcept -> block_id { return on_[place]; }
  /// By place.
  [[nodiscard]] auto all() const noexcept -> std::span<block_id const> { return on_; }
  /// Where \p block hangs. \pre blocks know their place
  [[nodiscard]] auto of(block_id block) const noexcept -> std::uint32_t { return place_[block.value()]; }
  /// \p block was hung there in an older epoch: nobody finds it. \pre blocks know their place
  [[nodiscard]] auto unreachable(block_id block) const noexcept -> bool {
    return place_[block.value()] != nowhere && hung_in_[block.value()] != epoch_;
  }
  /// Nobody can find what hangs now. O(1)
  auto close_epoch() noexcept -> void { ++epoch_; }

  auto hang(block_id block, std::uint32_t place) noexcept -> void {
    on_[place] = block;
    ++size_;
    if (place_.empty()) { return; }
    place_[block.value()] = place;
    hung_in_[block.value()] = epoch_;
  }
  auto take_off(block_id block, std::uint32_t place) noexcept -> void {
    on_[place] = block_id::none();
    --size_;
    if (!place_.empty()) { place_[block.value()] = nowhere; }
  }
  /// What hangs on \p from hangs on \p to.
  auto move(unit_id from, unit_id to) noexcept -> void {
    for (std::uint32_t i = 0; i < per_unit_; ++i) {
      auto const block = std::exchange(on_[place(from, i)], block_id::none());
      on_[place(to, i)] = block;
      if (block && !place_.empty()) { place_[block.value()] = place(to, i); }
    }
  }
  /// Block b is block `to[b]` from now on, unless that is none.
  auto relocate(std::span<block_id const> to) noexcept -> void {
    for (auto& block : on_) {
      if (block && to[block.value()]) { block = to[block.value()]; }
    }
    for (std::uint32_t b = 0; b < place_.size(); ++b) {
      if (!to[b]) { continue; }
      std::swap(hung_in_[b], hung_in_[to[b].value()]);
      place_[to[b].value()] = std::exchange(place_[b], nowhere);
    }
  }

private:
  std::uint32_t per_unit_;
  std::vector<block_id> on_;           // by place
  std::vector<std::uint32_t> place_;   // by block
  std::vector<std::uint32_t> hung_in_; // by block: the epoch
  std::uint32_t epoch_ = 0;
  std::uint32_t size_ = 0;
};
/// \endcond

} // namespace quire::detail
