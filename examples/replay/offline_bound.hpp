// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The most blocks that any policy can hit, without any cache: an independent computation beside the library.
///
/// A hit needs its block resident from one use to the next, an interval over the requests:
///
/// ```text
///   requests   0   1   2   3   4   5            at most N intervals cross any gap between two requests;
///   block a    ●───────────●                    keep as many as possible: wherever there are more than N, drop the
///   block b        ●───●───────────●            one that ends last (the classic greedy, which is optimal)
/// ```
///
/// A policy here may *bypass*: drop a block at once that a cache on demand would have to write. Blocks that end alike
/// count the same, so a count per end is all the state there is. A block is never needed later than what hangs
/// below it, so what is kept is closed under prefixes.

#include "replay/future.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace replay {

/// [blocks] hit at most in a cache of \p blocks blocks, one request at a time. \complexity O(references + requests²)
[[nodiscard]] inline auto offline_bound(future const& f, trace const& t, std::uint64_t blocks) -> std::uint64_t {
  std::vector<std::uint64_t> ending(t.requests.size()); // intervals kept, by the request they end at
  std::uint64_t kept = 0;
  std::uint64_t hits = 0;
  std::size_t last = 0; // no interval ends later
  auto const keep = [&](std::span<std::uint32_t const> ends) {
    for (auto const end : ends) {
      if (end == future::never) { continue; }
      ++ending[end];
      ++kept;
      if (end > last) { last = end; }
    }
  };
  for (std::size_t i = 0; i < t.requests.size(); ++i) {
    if (!f.fits(i)) { continue; }
    hits += ending[i];
    kept -= ending[i];
    ending[i] = 0;
    keep(f.next_uses(i, 0));
    for (std::uint32_t b = 1; b < t.requests[i].branches; ++b) { keep(f.next_uses(i, b).subspan(f.used(i))); }
    while (kept > blocks) {
      while (ending[last] == 0) { --last; }
      auto const drop = kept - blocks < ending[last] ? kept - blocks : ending[last];
      ending[last] -= drop;
      kept -= drop;
    }
  }
  return hits;
}

} // namespace replay
