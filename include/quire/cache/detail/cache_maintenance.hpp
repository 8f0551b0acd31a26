// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The rare operations of `cache_core`: giving up a lost timeline, and moving blocks together.

#include <quire/cache/detail/cache_core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
template <class Policies>
auto cache_core<Policies>::abandon(timeline_id timeline) -> expected<block_count> {
  QUIRE_EXPECTS(timeline.value() < timelines);
  for (auto const& slot : slots_) {
    if (slot.phase == step_phase::planned || slot.phase == step_phase::launched) { return refuse(errc::plan_open); }
  }
  auto const t = timeline.value();
  auto const lost_before = lost_;
  // Content is not ready from the first position on that a sequence wrote after its last reached ticket.
  std::vector<std::uint8_t> unready(pool_.capacity().value(), 0);
  auto const mark = [&](record_type const& record) {
    if (reached(timeline, record.last[t])) { return; }
    for (auto j = geometry_.index(record.ready); j < record.state.table.size(); ++j) { unready[record.state.table[j].value()] = 1; }
  };
  for (auto const& record : live_) { mark(record); }
  for (auto const& list : draining_) {
    for (auto const& record : list) { mark(record); }
  }
  auto const give_up = [&](block_id) { ++lost_; };
  for (auto& record : live_) {
    auto length = reached(timeline, record.last[t]) ? record.state.committed : std::min(record.ready, record.state.committed);
    for (std::uint32_t j = 0; j < record.state.table.size(); ++j) {
      if (unready[record.state.table[j].value()] != 0) {
        length = std::min(length, std::max(j * geometry_.block_tokens(), std::min(record.ready, length)));
        break;
      }
    }
    if (length == record.state.committed) { continue; }
    note_lane(record);
    ops_.truncate(record.state, length, give_up);
    record.ready = std::min(record.ready, length);
    record.stamp = ++stamps_;
    promise(record, owes(record));
    open_lane(record);
  }
  for (auto& list : draining_) {
    for (auto at = list.begin(); at != list.end();) {
      auto& record = *at;
      if (reached(timeline, record.last[t])) {
        ++at;
        continue;
      }
      at = list.erase(at);
      ops_.drop(record.state, give_up);
      if (auto const to = Policies::request_states::table.next(record.phase, request_event_type::release)) { record.phase = *to; }
      unused_.push_front(record);
    }
  }
  late_pins_[t].drain([](ticket) { return true; }, [&](prefix_pin&& pin) { index_.release(std::move(pin)); });
  index_.remove(unready, [&](block_id block) {
    pool_.apply(block, block_event_type::retire);
    ++lost_;
  });
  limbo_.abandon(timeline, give_up);
  abandoned_[t] = std::max(latest_[t], fence_.issued(timeline));
  for (auto& slot : slots_) { slot.rows.distrust(); }
  return block_count{lost_ - lost_before};
}

template <class Policies>
auto cache_core<Policies>::compact() -> expected<std::vector<action>> {
  reclaim();
  for (auto const& slot : slots_) {
    if (slot.phase == step_phase::planned || slot.phase == step_phase::launched) { return refuse(errc::plan_open); }
    if (slot.phase == step_phase::in_flight && !reached(slot.timeline, slot.until)) { return refuse(errc::views_in_flight); }
  }
  if (draining() > 0 || limbo_.size().value() > 0) { return refuse(errc::views_in_flight); } // pins name nodes, not blocks

  using states = typename pool_type::state_type;
  auto const n = pool_.capacity().value();
  std::vector<block_id> to(n); // new place of a block; none = stays
  std::vector<action> moves;
  auto low = std::uint32_t{0};
  auto high = n;
  for (;;) { // the lowest free place takes the highest block in use
    while (low < high && pool_.state(block_id{low}) != states::free) { ++low; }
    while (low < high && !movable(block_id{high - 1})) { --high; }
    if (low >= high) { break; }
    to[high - 1] = block_id{low};
    moves.push_back(action::move_block(group_id{0}, block_id{high - 1}, block_id{low}));
    ++low;
    --high;
  }
  pool_.relocate(to);
  index_.relocate(to);
  for (auto& record : live_) {
    auto& table = record.state.table;
    for (std::uint32_t j = 0; j < table.size(); ++j) {
      if (auto const place = to[table[j].value()]) { table.remap(j, place); }
    }
    record.stamp = ++stamps_;
    open_lane(record);
  }
  for (auto& slot : slots_) { slot.rows.distrust(); }
  return moves;
}
/// \endcond

} // namespace quire::detail
