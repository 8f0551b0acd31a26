// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Moving blocks together (S15). Units stay where they are: only the groups' blocks have places.

#include <quire/cache/detail/append_cursor.hpp>
#include <quire/cache/detail/cache_core.hpp>
#include <quire/core/errc.hpp>
#include <quire/core/expected.hpp>
#include <quire/core/types.hpp>
#include <quire/view/action.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
/// New places of the blocks of \p group, none = stays: the lowest free place takes the highest block in use. The moves are
/// added to \p moves.
template <class Group>
auto new_places(Group const& group, std::vector<action>& moves) -> std::vector<block_id> {
  auto const& pool = group.pool();
  using states = typename std::remove_cvref_t<decltype(pool)>::state_type;
  auto const movable = [&](block_id block) {
    auto const state = pool.state(block);
    return state == states::private_ || state == states::published;
  };
  std::vector<block_id> to(group.capacity());
  auto low = std::uint32_t{0};
  auto high = group.capacity();
  for (;;) {
    while (low < high && pool.state(block_id{low}) != states::free) { ++low; }
    while (low < high && !movable(block_id{high - 1})) { --high; }
    if (low >= high) { return to; }
    to[high - 1] = block_id{low};
    for (auto const member : group.members()) {
      moves.push_back(action::move_block(member, block_id{high - 1}, block_id{low}));
    }
    ++low;
    --high;
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
  if (c.shares_memory) { return refuse(errc::not_supported); } // pages of shared memory stay where they are
  auto waits = c.pins.size() > 0;
  for (auto const& group : c.groups) { waits = waits || group.waiting() > 0; }
  if (waits) { return refuse(errc::views_in_flight); }

  std::vector<action> moves;
  std::vector<std::vector<block_id>> to; // nothing has moved before all are known
  for (auto const& group : c.groups) { to.push_back(new_places(group, moves)); }
  for (std::size_t g = 0; g < c.groups.size(); ++g) {
    c.groups[g].relocate(to[g]);
    for (auto& record : c.registry.live()) { c.groups[g].relocate(record.tables[g], to[g]); }
  }
  for (auto& record : c.registry.live()) { open_cursor(c, record); }
  for (auto& slot : c.slots) {
    for (auto& group : slot.groups) { group.rows.invalidate(); }
  }
  return moves;
}
/// \endcond

} // namespace quire::detail
