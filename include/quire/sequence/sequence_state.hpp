// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What one sequence holds.
///
/// ```text
///   table      [ 7  2  9 | 4  1 ]         |: pinned = 3
///                └ through the pin of the prefix index, or an own twin of an indexed block
///                          └ private: counted as a holder in the pool
///   tokens     0 ─────────────────── committed ────── reserved
///              known ≤ committed: tokens beyond `known` are not resolved yet and do not publish (B17)
/// ```

#include <quire/core/types.hpp>
#include <quire/prefix/prefix_pin.hpp>
#include <quire/sequence/page_table.hpp>

#include <cstdint>

namespace quire {

/// Table, lengths and holdings of one sequence. Plain data; `sequence_ops` keeps its invariants:
/// (1) known ≤ committed ≤ reserved; (2) the table covers `reserved` and `stored`; (3) the first `pinned` entries lie on the pinned
/// path, of which `twins` are own copies; (4) every other entry counts this sequence as a holder in the pool.
struct sequence_state {
  std::uint32_t committed = 0; ///< [tokens] computed and ordered before every reader.
  std::uint32_t known = 0;     ///< [tokens] whose ids are known.
  std::uint32_t stored = 0;   ///< [tokens] Those behind `committed` are in shared blocks: compute, write nothing (S22).
  std::uint32_t reserved = 0; ///< [tokens] with room; beyond `committed` only while a plan is open.
  std::uint32_t table_before = 0; ///< [blocks] Table size before the open plan.
  std::uint32_t pinned = 0;       ///< [blocks] covered by the pin.
  std::uint32_t twins = 0;        ///< [blocks] of them that are own copies of an indexed block.
  page_table table;               ///< Logical to physical blocks.
  prefix_pin pin;                 ///< Path in the prefix index.
  block_id copy_source;           ///< Shared block that the open plan copies from.
  bool writer = false;            ///< May write the partial last block although others read it.
  bool publishes = true;          ///< Full blocks enter the prefix index.
  bool forked = false;            ///< It is a fork or was forked: others may publish private blocks of its table.

  /// [tokens] Positions to come that are stored already: they are computed and not written.
  [[nodiscard]] auto skips() const noexcept -> std::uint32_t { return stored > committed ? stored - committed : 0; }
};

} // namespace quire
