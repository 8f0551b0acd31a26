// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The life cycle of a block (S25).
///
/// ```text
///            allocate          commit           publish
///     free ───────────▶ writing ─────▶ private ─────────▶ published
///      ▲                   │              │    ◀─────────     │
///      │ reclaim           │ retire       │ retire  unpublish │ evict
///      │ (past the fence)  ▼              ▼                   ▼
///      └────────────── retiring ◀─────────┴───────────────────┘
/// ```
///
/// *Referenced* and *evictable* are not stored: a published block is referenced while its prefix node is
/// pinned and evictable while it is not. The only edge back to `free` passes the fence.

#include <quire/core/transition_table.hpp>

#include <cstdint>

namespace quire {

/// Stored state of a block.
enum class block_state : std::uint8_t {
  free,      ///< Holds nothing; may be allocated.
  writing,   ///< Allocated by a plan; holds no committed position yet.
  private_,  ///< Holds committed positions of its holders only.
  published, ///< Full, immutable and found by prefix match.
  retiring,  ///< Without holders; in-flight device work may still touch it.
  count_     ///< Number of states.
};

/// What can happen to a block.
enum class block_event : std::uint8_t {
  allocate,  ///< A plan takes it.
  commit,    ///< Its first positions are committed.
  publish,   ///< It enters the prefix index.
  unpublish, ///< It can no longer be found, and its holder keeps it.
  evict,     ///< It can no longer be found, and nobody holds it.
  retire,    ///< Its last holder leaves.
  reclaim,   ///< The fence of its last use is reached.
  count_     ///< Number of events.
};

/// The default life cycle of blocks. An engine may supply its own table with more states (S44).
struct standard_block_lifecycle {
  /// States of this life cycle.
  using state = block_state;
  /// Events of this life cycle.
  using event = block_event;
  /// Every permitted edge.
  static constexpr transition<state, event> edges[] = {
      {state::free, event::allocate, state::writing},    {state::writing, event::commit, state::private_},
      {state::writing, event::retire, state::retiring},  {state::private_, event::publish, state::published},
      {state::private_, event::retire, state::retiring}, {state::published, event::unpublish, state::private_},
      {state::published, event::evict, state::retiring}, {state::retiring, event::reclaim, state::free},
  };
  /// The edges as a table.
  static constexpr transition_table<state, event> table{edges};
};

} // namespace quire
