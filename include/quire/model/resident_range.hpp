// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The one residency function: which positions must stay, which blocks may go, and what a prefix hit
/// needs. Releasing, matching, trimming and ring storage all ask it; nobody else does window arithmetic.
///
/// *Oldest query in flight* is the smallest position whose attention may still run: of work that was
/// launched and whose fence is not reached, or, with nothing in flight, the next position to compute
/// (the length). A query at p needs the keys that its rule shows it; since later queries never need an
/// earlier tail, what the oldest one needs is what must stay.

#include <quire/core/contract.hpp>
#include <quire/core/types.hpp>
#include <quire/model/intervals.hpp>
#include <quire/model/resident_blocks.hpp>
#include <quire/model/retention.hpp>

#include <algorithm> // std::max
#include <cstdint>
#include <optional>

namespace quire {

/// What must stay so that queries at \p oldest_query and later can read all they may see.
/// \param oldest_query smallest position whose attention may still run
/// \param keeps what the layer group retains
/// \param block [tokens] per block
/// \pre `block > 0` and \p keeps came from its named constructors.
/// \post (1) every position p < oldest_query that some query ≥ oldest_query may see is kept; (2) no other
/// position before oldest_query is, sinks aside; (3) a block is dead iff none of its positions is kept, but
/// no block of a ring is ever dead; (4) moving the oldest query on never revives a dead block.
/// \complexity O(1) \source S27, S29, S30, B8; cases 44, 53, 56, 66
[[nodiscard]] constexpr auto resident_range(token_pos oldest_query, retention const& keeps, token_count block)
    -> resident_blocks {
  QUIRE_EXPECTS(block.value() > 0);
  auto const query = oldest_query.value();
  std::uint32_t tail = 0;
  switch (keeps.kind) {
  case retention_kind::full: break;
  case retention_kind::sliding_window:
  case retention_kind::sink_window:
  case retention_kind::ring: tail = query >= keeps.extent.value() ? query - keeps.extent.value() + 1 : 0; break;
  case retention_kind::chunked: tail = query - query % keeps.extent.value(); break;
  }
  auto sinks = keeps.sinks.value();
  if (tail <= sinks) { // no gap: one interval from 0
    tail = 0;
    sinks = 0;
  }
  resident_blocks out{.sink_end = token_pos{sinks}, .tail_begin = token_pos{tail}, .dead = {}, .block = block};
  if (keeps.kind != retention_kind::ring) { // a ring gives no block back: its slots are overwritten in place
    auto const first = sinks / block.value() + (sinks % block.value() != 0 ? 1U : 0U);
    auto const last = std::max(first, tail / block.value());
    out.dead = {logical_block{first}, logical_block{last}};
  }
  return out;
}

/// What a prefix hit of \p hit positions needs from a layer group: the next query stands at position
/// \p hit, so it is `resident_range` of that query. Ask the result for `sinks(hit)`, `tail(hit)` and their blocks.
/// \returns nothing if the group can offer no prefix of this length at all: a ring is never shared.
/// \pre `block > 0`. \complexity O(1) \source S29; cases 53, 54, 56
[[nodiscard]] constexpr auto needed_by_hit(token_count hit, retention const& keeps, token_count block)
    -> std::optional<resident_blocks> {
  if (!keeps.shareable() && hit != token_count{}) { return std::nullopt; }
  return resident_range(token_pos{} + hit, keeps, block);
}

/// The earliest position, at \p target or later, at which a sequence can go on when, besides its sinks, only the
/// positions \p present are still there (a rewound ring, a trimmed window). Going on at r keeps [0, r) and
/// computes r next.
/// \returns the smallest r in [target, present.end] whose query finds all it may see; nothing if there is none:
/// then only a recompute from 0 helps. \complexity O(1) \source S30; cases 64, 81
[[nodiscard]] constexpr auto earliest_resumable(token_pos target, position_interval present, retention const& keeps)
    -> std::optional<token_pos> {
  auto const need = resident_range(target, keeps, token_count{1}).tail_begin.value();
  auto const first = std::max(need, keeps.sinks.value()); // sinks are always there
  auto resume = std::uint64_t{target.value()};
  if (first < resume && first < present.begin.value()) { // the target misses something
    auto const extent = std::uint64_t{keeps.extent.value()};
    switch (keeps.kind) {
    case retention_kind::full: return std::nullopt;
    case retention_kind::sliding_window:
    case retention_kind::sink_window:
    case retention_kind::ring: resume = present.begin.value() + extent - 1; break;
    case retention_kind::chunked: resume = (resume + extent - 1) / extent * extent; break; // a new chunk needs nothing
    }
  }
  if (resume > present.end.value()) { return std::nullopt; }
  return token_pos{static_cast<std::uint32_t>(resume)};
}

} // namespace quire
