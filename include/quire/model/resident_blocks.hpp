// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The answer of `resident_range`: what stays, in positions and in blocks.
///
/// ```
///   positions   0 … sink_end      … gap …      tail_begin … length        (the tail has no end of its own)
///               [ sinks stay )                [ tail stays
///   blocks      [ kept ][ kept ][ dead ][ dead ][ kept ][ kept ]          dead = wholly inside the gap
/// ```

#include <quire/core/types.hpp>
#include <quire/model/intervals.hpp>

#include <algorithm> // std::min

namespace quire {

/// Up to two intervals of positions that must stay, and the logical blocks that may go. A value of
/// `resident_range`; in its normal form `sink_end < tail_begin` or both are 0. Of a ring only the positions
/// mean something: its blocks are slots that are overwritten in place, and none of them is ever dead.
struct resident_blocks {
  token_pos sink_end{};   ///< [0, sink_end) stay.
  token_pos tail_begin{}; ///< [tail_begin, …) stay.
  logical_block_interval
      dead{};           ///< Blocks of which no position needs to stay. Empty where slots are recycled in place.
  token_count block{1}; ///< [tokens] per block, at least 1.

  /// True if \p position must stay. \complexity O(1)
  [[nodiscard]] constexpr auto keeps(token_pos position) const noexcept -> bool {
    return position < sink_end || position >= tail_begin;
  }
  /// True if a position of \p index must stay. \complexity O(1)
  [[nodiscard]] constexpr auto keeps(logical_block index) const noexcept -> bool { return !dead.contains(index); }

  /// The sinks of a sequence of \p length positions that must stay.
  [[nodiscard]] constexpr auto sinks(token_count length) const noexcept -> position_interval {
    return {token_pos{}, std::min(sink_end, end_of(length))};
  }
  /// The tail of a sequence of \p length positions that must stay; disjoint from `sinks(length)`.
  [[nodiscard]] constexpr auto tail(token_count length) const noexcept -> position_interval {
    return {std::min(tail_begin, end_of(length)), end_of(length)};
  }
  /// Positions of a sequence of \p length positions that must stay. \returns [tokens]
  [[nodiscard]] constexpr auto kept(token_count length) const noexcept -> token_count {
    return sinks(length).size() + tail(length).size();
  }

  /// Blocks of a sequence of \p length positions that lie before the dead ones.
  [[nodiscard]] constexpr auto sink_blocks(token_count length) const noexcept -> logical_block_interval {
    return {logical_block{}, std::min(dead.begin, blocks_of(length))};
  }
  /// Blocks of a sequence of \p length positions that lie behind the dead ones; disjoint from `sink_blocks(length)`.
  [[nodiscard]] constexpr auto tail_blocks(token_count length) const noexcept -> logical_block_interval {
    return {std::min(dead.end, blocks_of(length)), blocks_of(length)};
  }
  /// Blocks of a sequence of \p length positions that may go.
  [[nodiscard]] constexpr auto dead_blocks(token_count length) const noexcept -> logical_block_interval {
    return {std::min(dead.begin, blocks_of(length)), std::min(dead.end, blocks_of(length))};
  }
  /// Blocks of a sequence of \p length positions that must stay. \returns [blocks]
  [[nodiscard]] constexpr auto kept_blocks(token_count length) const noexcept -> block_count {
    return sink_blocks(length).size() + tail_blocks(length).size();
  }

  /// Same answer.
  friend constexpr auto operator==(resident_blocks const&, resident_blocks const&) noexcept -> bool = default;

private:
  [[nodiscard]] static constexpr auto end_of(token_count length) noexcept -> token_pos { return token_pos{} + length; }
  [[nodiscard]] constexpr auto blocks_of(token_count length) const noexcept -> logical_block {
    return logical_block{length.value() / block.value() + (length.value() % block.value() != 0 ? 1U : 0U)};
  }
};

} // namespace quire
