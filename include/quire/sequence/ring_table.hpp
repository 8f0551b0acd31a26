// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Ring storage of one sequence in one layer group (S30).
///
/// ```text
///   retention   window 3, 1 sink, 6 slots: appends of up to 3
///   length 9    slot      0   1   2   3   4   5
///               position  0   6   7   8   4   5        stored; slot 0 is not position 0 because of its number
///   blocks of 2 [ block 7 ][ block 2 ][ block 9 ]      slot s lies in blocks[s / 2] at offset s mod 2
///
///   append(2)   position  0   6   7   8   9  10        open: rows 9 and 10 read 7 … 9 and 8 … 10 while the step runs
/// ```
///
/// A step writes all its keys before its first row reads, so that an append takes no slot that this row needs: at most
/// `append_limit()` positions, and the caller splits what is longer. A ring is exact for its window, and overwritten in place:
/// it is never shared, and going back reaches only as far as the slots still hold what the next query sees.

#include <quire/core/config_error.hpp>
#include <quire/core/contract.hpp>
#include <quire/core/errc.hpp>
#include <quire/core/expected.hpp>
#include <quire/core/types.hpp>
#include <quire/model/intervals.hpp>
#include <quire/model/resident_range.hpp>
#include <quire/model/retention.hpp>
#include <quire/model/ring.hpp>
#include <quire/sequence/block_geometry.hpp>

#include <algorithm> // std::fill, std::max, std::min
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace quire {

/// Which slot of a ring holds which position. Blocks of 1 token make it a table of slots. Nothing allocates after
/// construction. Invariants: (1) the ring part holds `present()` and nothing else; (2) a slot's stored position is the one
/// that was written last and not rewound; (3) every position that a query at `length()` sees is stored.
class ring_table {
public:
  /// An empty ring. \param ring a retention of kind ring \param block_tokens [tokens] per block \param blocks physical blocks
  /// of its slots, in the order of slots
  /// \throws config_error unless it is a ring and the blocks hold its slots: or reads leave the table
  ring_table(retention const& ring, token_count block_tokens, std::span<block_id const> blocks)
      : ring_{ring}, geometry_{block_tokens}, blocks_(blocks.begin(), blocks.end()) {
    if (ring.kind != retention_kind::ring) {
      throw config_error{"ring_table: the group keeps " + std::string{name_of(ring.kind)} +
                         ": use a page table, or retention::ring"};
    }
    auto const wanted = geometry_.blocks(ring.capacity.value());
    if (blocks.size() != wanted) {
      throw config_error{"ring_table: " + std::to_string(blocks.size()) + " blocks of " +
                         std::to_string(block_tokens.value()) + " tokens for " + std::to_string(ring.capacity.value()) +
                         " slots: use " + std::to_string(wanted)};
    }
    positions_.assign(ring.capacity.value(), empty);
    overwritten_.assign(append_limit().value(), empty);
  }

  /// What it keeps.
  [[nodiscard]] auto keeps() const noexcept -> retention const& { return ring_; }
  /// Physical blocks, in the order of slots.
  [[nodiscard]] auto blocks() const noexcept -> std::span<block_id const> { return blocks_; }
  /// [tokens] committed: the next position to compute.
  [[nodiscard]] auto length() const noexcept -> token_count { return present_.end - token_pos{}; }
  /// [tokens] The longest append of one step: capacity − sinks − window + 1. \source S30
  [[nodiscard]] auto append_limit() const -> token_count { return ring_append_limit(ring_); }
  /// The positions behind the sinks that are stored and committed, the open append aside.
  [[nodiscard]] auto present() const noexcept -> position_interval { return present_; }
  /// True while an append is neither committed nor dropped.
  [[nodiscard]] auto open() const noexcept -> bool { return reserved_ != token_count{}; }

  /// The logical position that each slot holds, those of an open append included: what a mask is made of.
  /// \shape [capacity], −1 = nothing
  [[nodiscard]] auto positions() const noexcept -> std::span<std::int64_t const> { return positions_; }
  /// Where \p position is stored: block · p_b + offset; nothing if it is not. \complexity O(1) \source S14, S30
  [[nodiscard]] auto slot(token_pos position) const -> std::optional<std::int64_t> {
    auto const s = ring_slot(position, ring_);
    if (positions_[s] != std::int64_t{position.value()}) { return std::nullopt; }
    return std::int64_t{blocks_[geometry_.index(s)].value()} * geometry_.block_tokens() + geometry_.offset(s);
  }

  /// Takes slots for the next positions of one step. The keys they held count as gone from now on, and are again there after
  /// `drop` unless the step was launched.
  /// \param wanted [tokens] at least 1 \returns the first of the wanted positions, at most `append_limit()`: the rest is another
  ///   step's \errors errc::zero_tokens; errc::plan_open if an append is open \complexity O(wanted) \source S30
  [[nodiscard]] auto append(token_count wanted) -> expected<position_interval> {
    if (wanted == token_count{}) { return refuse(errc::zero_tokens); }
    if (open()) { return refuse(errc::plan_open); }
    auto const added = position_interval{present_.end, present_.end + std::min(wanted, append_limit())};
    for (auto at = added.begin; at < added.end; at = at + token_count{1}) {
      auto& stored = positions_[ring_slot(at, ring_)];
      overwritten_[(at - added.begin).value()] = stored;
      stored = at.value();
    }
    reserved_ = added.size();
    return added;
  }
  /// The step is over, or ordered before every reader. \pre an append is open \complexity O(1)
  auto commit() -> void {
    QUIRE_EXPECTS(open());
    present_.end = present_.end + reserved_;
    auto const kept = ring_present(length(), ring_);
    present_.begin = std::max(present_.begin, kept.begin);
    reserved_ = {};
  }
  /// The step does not take place: the slots hold what they held. \pre an append is open, and was not launched
  /// \complexity O(positions of the append)
  auto drop() -> void {
    QUIRE_EXPECTS(open());
    for (std::uint32_t i = 0; i < reserved_.value(); ++i) {
      positions_[ring_slot(present_.end + token_count{i}, ring_)] = overwritten_[i];
    }
    reserved_ = {};
  }

  /// Where the sequence could go on if it went back to \p target: there, or at the first later position whose query still finds
  /// all it sees. \errors errc::out_of_range behind the length; errc::plan_open \complexity O(1) \source S30
  [[nodiscard]] auto earliest_resumable(token_pos target) const -> expected<token_pos> {
    if (open()) { return refuse(errc::plan_open); }
    if (target > present_.end) { return refuse(errc::out_of_range); }
    auto const found = quire::earliest_resumable(target, present_, ring_);
    if (!found) { return refuse(errc::not_resident); }
    return *found;
  }
  /// Goes back to \p target, or to the earliest resumable position behind it. Position 0 can always be reached.
  /// \returns where it goes on: compare it with \p target \errors as `earliest_resumable`; nothing has changed then
  /// \complexity O(positions given up, at most capacity) \source S30
  [[nodiscard]] auto rewind(token_pos target) -> expected<token_pos> {
    auto const to = earliest_resumable(target);
    if (!to) { return to; }
    auto const sinks = token_pos{ring_.sinks.value()};
    for (auto at = std::max(*to, present_.begin); at < present_.end; at = at + token_count{1}) { forget(at); }
    for (auto at = *to; at < std::min(sinks, present_.begin); at = at + token_count{1}) { forget(at); }
    present_.end = *to;
    present_.begin = std::min(present_.begin, *to);
    return to;
  }

  /// Sharing with another sequence: always refused, because the next append overwrites what the other one reads. Copy the bytes,
  /// keep the group in pages, or recompute its window. \errors errc::never_shared \source S30
  [[nodiscard]] auto share() const -> expected<ring_table> { return refuse(errc::never_shared); }

private:
  static constexpr std::int64_t empty = -1;
  void forget(token_pos at) { positions_[ring_slot(at, ring_)] = empty; }

  retention ring_;
  block_geometry geometry_;
  std::vector<block_id> blocks_;          // [slots / p_b, rounded up]
  std::vector<std::int64_t> positions_;   // [capacity]
  std::vector<std::int64_t> overwritten_; // [append_limit()] what the open append replaced
  position_interval present_{};
  token_count reserved_{};
};

} // namespace quire
