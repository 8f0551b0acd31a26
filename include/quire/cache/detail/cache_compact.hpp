// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Moving the blocks of a cache together.

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
/// New places of the blocks of \p pool, none = stays: the lowest free place takes the highest block in use. The moves are
/// added to \p moves, one for each of \p groups, whose blocks have these numbers.
template <class Policies>
auto cache_core<Policies>::places(pool_type const& pool, std::span<group_id const> groups, std::vector<action>& moves)
    -> std::vector<block_id> {
  using states = typename pool_type::state_type;
  auto const movable = [&](block_id block) {
    auto const state = pool.state(block);
    return state == states::private_ || state == states::published;
  };
  std::vector<block_id> to(pool.capacity().value());
  auto low = std::uint32_t{0};
  auto high = pool.capacity().value();
  for (;;) {
    while (low < high && pool.state(block_id{low}) != states::free) { ++low; }
    while (low < high && !movable(block_id{high - 1})) { --high; }
    if (low >= high) { return to; }
    to[high - 1] = block_id{low};
    for (auto const group : groups) { moves.push_back(action::move_block(group, block_id{high - 1}, block_id{low})); }
    ++low;
    --high;
  }
}

template <class Policies>
auto cache_core<Policies>::compact() -> expected<std::vector<action>> {
  reclaim();
  for (auto const& slot : slots_) {
    if (slot.phase == step_phase::planned || slot.phase == step_phase::launched) { return refuse(errc::plan_open); }
    if (slot.phase == step_phase::in_flight && !reached(slot.timeline, slot.until)) {
      return refuse(errc::views_in_flight);
    }
  }
  if (shares_memory) { return refuse(errc::not_supported); } // pages of shared memory stay where they are
  auto const late =
      std::any_of(late_holds_.begin(), late_holds_.end(), [](auto const& holds) { return !holds.empty(); });
  if (draining() > 0 || limbo_.size().value() > 0 || late) { return refuse(errc::views_in_flight); }

  std::vector<action> moves;
  std::vector<std::vector<block_id>> to; // of the lead, then by window group: nothing has moved before all are known
  to.push_back(lead_groups_.empty() ? std::vector<block_id>(pool_.capacity().value())
                                    : places(pool_, lead_groups_, moves));
  for (auto const& window : windows_) {
    auto const id = window.id();
    to.push_back(places(window.pool(), {&id, 1}, moves));
  }
  pool_.relocate(to.front());
  index_.relocate(to.front()); // pins name nodes, not blocks
  for (std::size_t g = 0; g < windows_.size(); ++g) {
    windows_[g].relocate_lead(to.front());
    windows_[g].relocate(to[g + 1]);
  }
  for (auto& record : live_) {
    auto& table = record.state.table;
    for (std::uint32_t j = 0; j < table.size(); ++j) {
      if (auto const place = to.front()[table[j].value()]) { table.remap(j, place); }
    }
    for (std::size_t g = 0; g < windows_.size(); ++g) { windows_[g].relocate(record.groups[g], to[g + 1]); }
  }
  for (auto& record : live_) {
    record.stamp = ++stamps_;
    open_lane(record);
  }
  for (auto& slot : slots_) { distrust(slot); }
  return moves;
}
/// \endcond

} // namespace quire::detail
