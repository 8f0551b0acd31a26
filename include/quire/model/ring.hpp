// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Arithmetic of ring storage (S30).
///
/// ```
///   slots   [ 0 … s ) sinks, never overwritten   [ s … c ) the ring: position t ≥ s in s + (t − s) mod (c − s)
/// ```
/// An append of q positions writes its last key before its first row reads its oldest one, so the ring part
/// needs w − 1 + q slots. Slot 0 is not position 0 and a slot does not tell its position: positions are stored.

#include <quire/core/config_error.hpp>
#include <quire/core/contract.hpp>
#include <quire/core/types.hpp>
#include <quire/model/intervals.hpp>
#include <quire/model/retention.hpp>

#include <cstdint>
#include <string>

namespace quire {

/// The least capacity with which appends of up to \p append positions never overwrite a key that their first
/// row reads. \param keeps window and sinks; its own capacity, if any, is ignored
/// \throws config_error if \p keeps has no window, \p append is 0, or the result exceeds 32 bits.
/// \complexity O(1) \source S30; case 62
[[nodiscard]] constexpr auto ring_capacity(retention const& keeps, token_count append) -> token_count {
  if (keeps.kind == retention_kind::full || keeps.kind == retention_kind::chunked) {
    throw config_error{"ring_capacity: only sliding windows fit a ring: use paged blocks for full and chunked layers"};
  }
  if (append == token_count{}) {
    throw config_error{"ring_capacity: appends of 0 positions: use the largest number of positions of one step"};
  }
  auto const least = static_cast<std::uint64_t>(keeps.sinks.value()) + keeps.extent.value() + append.value() - 1;
  if (least > UINT32_MAX) {
    throw config_error{"ring_capacity: " + std::to_string(least) + " slots exceed 32 bits: use smaller appends"};
  }
  return token_count{static_cast<std::uint32_t>(least)};
}

/// The most positions one append may write into \p ring; longer ones are split.
/// \pre \p ring is a ring. \returns [tokens] at least 1. \complexity O(1) \source S30
[[nodiscard]] constexpr auto ring_append_limit(retention const& ring) -> token_count {
  QUIRE_EXPECTS(ring.kind == retention_kind::ring);
  return token_count{ring.capacity.value() - ring.sinks.value() - ring.extent.value() + 1};
}

/// The slot of \p position. \pre \p ring is a ring. \complexity O(1) \source S30; case 68
[[nodiscard]] constexpr auto ring_slot(token_pos position, retention const& ring) -> std::uint32_t {
  QUIRE_EXPECTS(ring.kind == retention_kind::ring);
  auto const sinks = ring.sinks.value();
  if (position.value() < sinks) { return position.value(); }
  return sinks + (position.value() - sinks) % (ring.capacity.value() - sinks);
}

/// The positions whose bytes the ring part still holds once \p written positions were written, sinks aside.
/// \pre \p ring is a ring. \complexity O(1) \source S30
[[nodiscard]] constexpr auto ring_present(token_count written, retention const& ring) -> position_interval {
  QUIRE_EXPECTS(ring.kind == retention_kind::ring);
  auto const sinks = ring.sinks.value();
  auto const slots = ring.capacity.value() - sinks;
  if (written.value() <= sinks) { return {token_pos{written.value()}, token_pos{written.value()}}; }
  auto const behind = written.value() - sinks;
  return {token_pos{sinks + (behind > slots ? behind - slots : 0)}, token_pos{written.value()}};
}

} // namespace quire
