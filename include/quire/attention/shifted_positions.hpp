// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Logical positions that change while their keys stay: context shift and splice, as a named approximate mode (S31).
///
/// ```text
///   cell        0   1   2   3   4   5         in the order in which they were computed
///   position    0   1   –   –   2   3         2 and 3 were removed, 4 and 5 moved down by 2
///   turned for  0   1   –   –   4   5         what the bytes still say, until the turns are taken
///
///   take_turns  (4: 4 → 2), (5: 5 → 3)        one turn per cell, however often it moved: new − old adds up
/// ```
///
/// Values and all deeper layers still belong to the old positions, which is why no exact cache may do this: a cache that does
/// is another execution mode and says so in its identity.

#include <quire/attention/position_shift.hpp>
#include <quire/core/errc.hpp>
#include <quire/core/expected.hpp>
#include <quire/core/types.hpp>
#include <quire/model/intervals.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace quire {

/// The positions of one sequence's cells, and for which positions their keys are turned.
class shifted_positions {
public:
  /// The name of this mode, for `model_description::approximation` and for `cache_format::approximate`. \source S6, S31
  static constexpr std::string_view mode_name = "position_shift";

  /// One cell of the sequence.
  struct cell {
    std::optional<token_pos> position = {}; ///< Where it stands now; nothing once it was removed.
    token_pos turned_for = {};              ///< The position its stored key is turned for.

    /// Same cell.
    friend auto operator==(cell const&, cell const&) -> bool = default;
  };
  /// A key to turn.
  struct turn {
    std::size_t cell = 0;       ///< Its index.
    position_shift change = {}; ///< From where to where.

    /// Same turn.
    friend auto operator==(turn const& a, turn const& b) -> bool {
      return a.cell == b.cell && a.change.from == b.change.from && a.change.to == b.change.to;
    }
  };
  /// What moves where.
  struct move {
    position_interval from = {}; ///< Positions that move.
    token_pos to = {};           ///< The new position of the first.
  };

  /// A sequence without cells. \param mode only an approximate cache can move positions \param turnable false if stored keys
  ///   cannot be turned, because their format is quantised
  explicit shifted_positions(position_mode mode, bool turnable = true) : mode_{mode}, turnable_{turnable} {}

  /// All cells ever computed, in order.
  [[nodiscard]] auto cells() const noexcept -> std::span<cell const> { return cells_; }
  /// The position behind the last one: that of the next token.
  [[nodiscard]] auto end() const noexcept -> token_pos { return end_; }
  /// True if positions can be moved at all: ask before planning on it. \source case 73
  [[nodiscard]] auto can_shift() const noexcept -> bool { return mode_ == position_mode::approximate && turnable_; }

  /// \p n computed positions behind `end()`. \throws std::bad_alloc \complexity O(n)
  auto append(token_count n) -> void {
    cells_.reserve(cells_.size() + n.value());
    for (std::uint32_t i = 0; i < n.value(); ++i, end_ = end_ + token_count{1}) {
      cells_.push_back({.position = end_, .turned_for = end_});
    }
  }

  /// Removes the cells of \p range; nothing moves, so that a gap is left unless the range ends at `end()`.
  /// \errors errc::not_supported if positions cannot be moved and a gap would be left; errc::out_of_range
  /// \complexity O(cells)
  [[nodiscard]] auto remove(position_interval range) -> expected<void> {
    if (range.end > end_ || range.begin > range.end) { return refuse(errc::out_of_range); }
    if (range.end != end_ && !can_shift()) { return refuse(errc::not_supported); }
    for (auto& one : cells_) {
      if (one.position && range.contains(*one.position)) { one.position.reset(); }
    }
    if (range.end == end_) { end_ = range.begin; }
    return {};
  }

  /// Moves positions; all later calls speak of the new ones (case 72). Keys stay as they are until `take_turns`.
  /// \param resident cells below this one are no longer there in some layer group: 0 if all groups keep everything
  /// \errors errc::not_supported if positions cannot be moved; errc::out_of_range if the range is empty or leaves the sequence, or
  ///   another cell stands where one would go; errc::not_resident if a cell of the range is not there in all groups. Nothing has
  ///   changed then \complexity O(cells) \source S31; cases 71 to 74
  [[nodiscard]] auto shift(move wanted, std::size_t resident = 0) -> expected<void> {
    if (!can_shift()) { return refuse(errc::not_supported); }
    auto const [from, to] = wanted;
    if (from.end > end_ || from.begin >= from.end) { return refuse(errc::out_of_range); }
    if (to.value() > UINT32_MAX - from.size().value()) { return refuse(errc::out_of_range); }
    auto const target = position_interval{to, to + from.size()};
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      if (!cells_[i].position) { continue; }
      auto const moves = from.contains(*cells_[i].position);
      if (moves && i < resident) { return refuse(errc::not_resident); }
      if (!moves && target.contains(*cells_[i].position)) { return refuse(errc::out_of_range); }
    }
    end_ = {};
    for (auto& one : cells_) {
      if (!one.position) { continue; }
      if (from.contains(*one.position)) { one.position = to + (*one.position - from.begin); }
      if (*one.position >= end_) { end_ = *one.position + token_count{1}; }
    }
    return {};
  }

  /// The keys to turn so that every one is turned for where it stands: one turn per cell, from the position its bytes say to the
  /// present one. From here on they count as turned: run all turns before the next read, see `resolved_rope::shift`.
  /// \param shared tells by index whether others read the block of a cell
  /// \errors errc::block_shared if one of those cells lies in a block that others read: copy the block first and call again;
  ///   nothing has changed \throws std::bad_alloc, nothing has changed \complexity O(cells) \source S31; invariant IMM
  template <std::predicate<std::size_t> Shared>
  [[nodiscard]] auto take_turns(Shared const& shared) -> expected<std::vector<turn>> {
    auto out = std::vector<turn>{};
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      if (!cells_[i].position || *cells_[i].position == cells_[i].turned_for) { continue; }
      if (shared(i)) { return refuse(errc::block_shared); }
      out.push_back({.cell = i, .change = {.from = cells_[i].turned_for, .to = *cells_[i].position}});
    }
    for (auto const& one : out) { cells_[one.cell].turned_for = one.change.to; }
    return out;
  }

private:
  position_mode mode_;
  bool turnable_;
  std::vector<cell> cells_ = {};
  token_pos end_ = {};
};

} // namespace quire
