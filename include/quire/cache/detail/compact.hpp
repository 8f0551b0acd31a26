// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Moving blocks together (S15). Units stay where they are: only the groups' blocks have places.

#include "quire/cache/detail/step_slot.hpp"
#include <quire/cache/detail/append_cursor.hpp>
#include <quire/cache/detail/cache_core.hpp>
#include <quire/core/errc.hpp>
#include <quire/core/expected.hpp>
#include <quire/core/types.hpp>
#include <quire/view/action.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
/// New places of the blocks of \p group, none = stays: the lowest free place takes the highest block in use. Where groups
/// share memory, places are taken from it, as low as it gives them. \throws std::bad_alloc
template <class Policies, class Group>
auto new_places(cache_core<Policies>& c, Group& group) -> std::vector<block_id> {
  if constexpr (cache_core<Policies>::shares_memory) {
    return group.take_places([&] {
      c.count_needs();
      return c.groups.memory().fits();
    });
  } else {
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
      to[--high] = block_id{low++};
    }
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

  std::vector<action> moves;
  std::vector<std::vector<block_id>> to; // nothing has moved before all are known
  std::size_t most = 0;
  for (auto const& group : c.groups) { most += group.capacity() * group.members().size(); }
  moves.reserve(most);
  to.reserve(c.groups.size());
  for (auto& group : c.groups) { to.push_back(new_places(c, group)); }
  for (std::size_t g = 0; g < c.groups.size(); ++g) {
    for (auto b = c.groups[g].capacity(); b-- > 0;) {
      if (!to[g][b]) { continue; }
      for (auto const member : c.groups[g].members()) {
        moves.push_back(action::move_block(member, block_id{b}, to[g][b]));
      }
    }
    c.groups[g].relocate(to[g], cache_core<Policies>::shares_memory);
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
