// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Publishing what a sequence has filled: the path settles, and the blocks of every group follow it to the units. Giving up
/// what it has left behind.

#include <quire/cache/detail/cache_core.hpp>
#include <quire/core/types.hpp>
#include <quire/observe/events.hpp>
#include <quire/sequence/prefix_path.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace quire::detail {

/// \cond INTERNAL
/// Blocks of \p record that belong to logical unit \p u, which lies in the index, hang there.
template <class Policies>
auto arrive(cache_core<Policies>& c, record_of<Policies>& r, std::uint32_t u, unit_origin origin) -> void {
  for (std::size_t g = 0; g < c.groups.size(); ++g) {
    c.groups[g].arrive(r.tables[g], u, r.path.units()[u], origin, r.last);
  }
}

/// Publishes full units of \p record, moves onto equal ones, and turns holds on units that others published into pins.
/// \param publishes false: only the last of these
template <class Policies>
auto settle(cache_core<Policies>& c, record_of<Policies>& r, bool publishes = true) -> void {
  if (r.epoch != c.epoch) { publishes = false; } // work of an old epoch never publishes
  std::uint32_t published = 0;
  std::uint32_t twins = 0;
  while (r.path.pinned() < r.path.size()) {
    auto const done = r.path.settle(c.index, c.unit(), r.at, publishes);
    if (done.empty()) { break; }
    auto const last = done.end - 1;
    auto const fresh = done.last == unit_origin::published ? done.end : last;
    for (std::size_t g = 0; g < c.groups.size(); ++g) {
      c.groups[g].arrive(r.tables[g], done.first, fresh, r.path.units(), r.last);
    }
    published += fresh - done.first;
    if (fresh < done.end) {
      if (done.replaced) { // whatever hangs there is the new unit's
        for (auto& group : c.groups) { group.move(done.replaced, r.path.units()[last]); }
      }
      arrive(c, r, last, done.last);
      twins += done.last == unit_origin::adopted ? 0U : 1U;
      if (done.last != unit_origin::adopted) { join(r.last, c.clock.latest()); } // others may still write it
    }
  }
  if (published + twins == 0) { return; }
  auto const event = publish_event{
      .scope = r.scope, .sequence = r.number, .blocks = block_count{published}, .duplicates = block_count{twins}};
  c.stats.on_publish(event);
  c.observe([&](auto& o) { o.on_publish(event); });
}

/// Gives up what no later query of \p r can see, except for what may be taken back.
template <class Policies>
auto trim(cache_core<Policies>& c, record_of<Policies>& r) -> void {
  auto const oldest = r.at.committed - std::min(r.rewind, r.at.committed);
  for (std::size_t g = 0; g < c.groups.size(); ++g) { c.groups[g].trim(r.tables[g], oldest, r.last); }
}
/// \endcond

} // namespace quire::detail
