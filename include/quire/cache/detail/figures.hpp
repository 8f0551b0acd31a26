// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What a cache tells of its blocks.

#include <quire/cache/detail/cache_core.hpp>
#include <quire/cache/group_figures.hpp>
#include <quire/core/types.hpp>
#include <quire/prefix/node_id.hpp>
#include <quire/prefix/prefix_pin.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
/// A node of the index, as pins are given back in thought.
struct drained_node {
  node_id parent;
  std::uint32_t busy = 0;
  std::uint32_t length = 0;
};
/// Room for `draining_units`. \throws std::bad_alloc
template <class Policies>
[[nodiscard]] auto room_to_drain(cache_core<Policies> const& c) -> std::vector<drained_node> {
  return std::vector<drained_node>(cache_core<Policies>::immediate ? 0 : std::size_t{c.index.capacity().value()} + 1);
}
/// [units] that become evictable once all pins that wait are given back. \complexity O(nodes) if any waits
template <class Policies>
[[nodiscard]] auto draining_units(cache_core<Policies> const& c, std::vector<drained_node>& nodes) noexcept
    -> std::uint32_t {
  if (c.pins.size() == 0) { return 0; }
  c.index.for_each_node([&](node_id node, node_id parent, auto units, std::uint32_t busy) {
    nodes[node.value()] = {parent, busy, static_cast<std::uint32_t>(units.size())};
  });
  std::uint32_t n = 0;
  c.pins.for_each([&](prefix_pin const& pin) { // as they will be released
    for (auto at = pin.node(); !is_root(at) && --nodes[at.value()].busy == 0; at = nodes[at.value()].parent) {
      n += nodes[at.value()].length;
    }
  });
  return n;
}

/// \param draining [units] as `draining_units` tells
template <class Policies>
[[nodiscard]] auto figures_of(cache_core<Policies> const& c, std::size_t g, std::uint32_t draining) noexcept
    -> group_figures {
  auto const& group = c.groups[g];
  auto const idle = c.index.evictable();
  return {.capacity = block_count{group.capacity()},
          .free = block_count{group.free()},
          .evictable = block_count{c.groups.evictable(group, idle)},
          .available = block_count{c.groups.available(group, idle)},
          .reserved = block_count{group.ledger().reserved()},
          .promised = block_count{group.ledger().promised()},
          .published = block_count{group.published()},
          .waiting = block_count{group.waiting()},
          .draining = block_count{group.by_path() ? draining * group.per_unit() : 0U},
          .lost = block_count{group.lost()}};
}
/// \endcond

} // namespace quire::detail
