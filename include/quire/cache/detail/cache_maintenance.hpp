// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The rare operations of `cache_core`: giving up a lost timeline, and moving blocks together.

#include <quire/cache/detail/cache_core.hpp>
#include <quire/cache/detail/step_slot.hpp>
#include <quire/core/contract.hpp>
#include <quire/core/errc.hpp>
#include <quire/core/expected.hpp>
#include <quire/core/types.hpp>
#include <quire/prefix/node_id.hpp>
#include <quire/prefix/prefix_pin.hpp>
#include <quire/view/action.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
template <class Policies>
auto cache_core<Policies>::abandon(timeline_id timeline) -> expected<block_count> {
  QUIRE_EXPECTS(timeline.value() < timelines);
  if (!windows_.empty()) { return refuse(errc::not_supported); }
  for (auto const& slot : slots_) {
    if (slot.phase == step_phase::planned || slot.phase == step_phase::launched) { return refuse(errc::plan_open); }
  }
  reclaim();
  auto const t = timeline.value();
  auto const lost_before = lost_;
  auto const last = std::max(latest_[t], fence_.issued(timeline));
  if (reached(timeline, last)) { return block_count{0}; } // nothing is in flight
  // Paths of the index, for pins that name only their end.
  std::vector<std::uint32_t> above(std::size_t{pool_.capacity().value()} + 1);
  std::vector<std::vector<block_id>> blocks_of(above.size());
  index_.for_each_node([&](node_id node, node_id parent, auto blocks, std::uint32_t) {
    above[node.value()] = parent.value();
    for (auto const block : blocks) { blocks_of[node.value()].push_back(block_id{block}); }
  });
  auto const walk = [&](prefix_pin const& pin, auto visit) { // upwards: visit(blocks from the end, block)
    std::uint32_t i = 0;
    for (auto at = pin.node(); at && !is_root(at); at = node_id{above[at.value()]}) {
      auto const& blocks = blocks_of[at.value()];
      std::for_each(blocks.rbegin(), blocks.rend(), [&](block_id block) { visit(i++, block); });
    }
  };
  // A block is not ready if a sequence whose tickets are not all reached wrote it, or may still write behind what is read of
  // it. A private block of forks may have been left by another holder that was writing.
  std::vector<std::uint8_t> unready(pool_.capacity().value(), 0);
  auto const mark = [&](record_type const& record) {
    auto const& s = record.state;
    auto from = s.table.size();
    if (s.forked && geometry_.offset(s.committed) != 0) { from = std::max(geometry_.index(s.committed), s.pinned); }
    if (!reached(timeline, record.last[t])) { from = std::min(from, first_unready(record)); }
    for (auto j = from; j < s.table.size(); ++j) { unready[s.table[j].value()] = 1; }
  };
  auto const cut_back = [&](record_type& record) { // to before the first block that is not ready
    auto const& s = record.state;
    auto first = s.table.size();
    for (std::uint32_t j = 0; j < first; ++j) {
      if (unready[s.table[j].value()] != 0) { first = j; }
    }
    walk(s.pin, [&](std::uint32_t i, block_id block) {
      if (unready[block.value()] != 0) { first = std::min(first, s.pinned - 1 - i); }
    });
    if (first == s.table.size()) { return false; }
    cut(record, std::min(first * geometry_.block_tokens(), s.committed), [&](block_id) { ++lost_; });
    return true;
  };
  for (auto const& record : live_) { mark(record); }
  for (auto const& list : draining_) {
    for (auto const& record : list) { mark(record); }
  }
  for (std::uint32_t u = 0; u <= t; ++u) { // who waits for an earlier timeline would wait for this one next
    late_pins_[u].for_each([&](prefix_pin const& pin, std::uint32_t count) {
      walk(pin, [&](std::uint32_t i, block_id block) {
        if (i < count) { unready[block.value()] = 1; }
      });
    });
  }
  for (auto& record : live_) {
    if (!cut_back(record)) { continue; }
    promise(record, owes(record));
    open_lane(record);
  }
  for (auto& list : draining_) {
    for (auto& record : list) { static_cast<void>(cut_back(record)); }
  }
  for (std::uint32_t u = 0; u < timelines; ++u) {
    late_pins_[u].change_each([&](prefix_pin& pin, std::uint32_t& count) {
      std::uint32_t back = 0;
      walk(pin, [&](std::uint32_t i, block_id block) {
        if (unready[block.value()] != 0) { back = i + 1; }
      });
      if (back == 0) { return; }
      auto shorter = index_.pin_back(pin, block_count{back});
      index_.release(std::move(pin));
      pin = std::move(shorter);
      count = 0;
    });
  }
  index_.remove(unready, [&](block_id block) {
    pool_.apply(block, block_event_type::retire);
    ++lost_;
  });
  for (std::uint32_t u = 0; u <= t; ++u) {
    limbo_.abandon(timeline_id{u}, [&](block_id) { ++lost_; });
  }
  abandoned_[t] = last;
  for (auto& slot : slots_) { distrust(slot); }
  return block_count{lost_ - lost_before};
}

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
