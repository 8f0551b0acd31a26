// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Moving blocks together (S15). Units stay where they are: only the groups' blocks have places.

#include <quire/cache/detail/append_cursor.hpp>
#include <quire/cache/detail/cache_core.hpp>
#include <quire/cache/detail/step_slot.hpp>
#include <quire/core/errc.hpp>
#include <quire/core/expected.hpp>
#include <quire/core/types.hpp>
#include <quire/view/action.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
/// New places of the blocks of \p group: the lowest free place takes the highest block in use. Where groups share memory,
/// places are taken from it, as low as it gives them.
template <class Policies, class Group>
auto choose_places(cache_core<Policies>& c, Group& group, std::span<block_id> to) -> void {
  if constexpr (cache_core<Policies>::shares_memory) {
    group.take_places(to, [&] {
      c.count_needs();
      return c.groups.memory().fits();
    });
  } else {
    group.find_places(to);
  }
}

template <class Policies>
auto compact(cache_core<Policies>& c) -> expected<std::vector<action>> {
  c.reclaim();
  for (auto const& slot : c.slots) {
    if (slot.phase == step_phase::planned || slot.phase == step_phase::launched) { return refuse(errc::plan_open); }
    if (slot.phase == step_phase::in_flight && !c.clock.reached(slot.timeline.value(), slot.until)) {
      return refuse(errc::views_in_flight);
    }
  }
  auto waits = c.pins.size() > 0;
  for (auto const& group : c.groups) { waits = waits || group.waiting() > 0; }
  if (waits) { return refuse(errc::views_in_flight); }

  // All memory first, then all places, then the moves: whatever throws, nothing has moved.
  std::vector<action> moves;
  std::vector<std::vector<block_id>> to;
  std::vector<block_id> scratch;
  std::size_t most = 0;
  std::uint32_t widest = 0;
  for (auto const& group : c.groups) {
    most += group.capacity() * group.members().size();
    widest = std::max(widest, group.capacity());
    to.emplace_back(group.capacity());
  }
  moves.reserve(most);
  scratch.reserve(widest);
  for (std::size_t g = 0; g < c.groups.size(); ++g) { choose_places(c, c.groups[g], to[g]); }
  for (std::size_t g = 0; g < c.groups.size(); ++g) {
    for (auto b = c.groups[g].capacity(); b-- > 0;) {
      if (!to[g][b]) { continue; }
      for (auto const member : c.groups[g].members()) {
        moves.push_back(action::move_block(member, block_id{b}, to[g][b]));
      }
    }
    c.groups[g].relocate(to[g], cache_core<Policies>::shares_memory, scratch);
    for (auto& record : c.registry.live()) { c.groups[g].relocate(record.tables[g], to[g]); }
  }
  for (auto& record : c.registry.live()) { open_cursor(c, record); }
  for (auto& slot : c.slots) { slot.invalidate(); }
  return moves;
}
/// \endcond

} // namespace quire::detail
