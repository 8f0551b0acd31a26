// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Steps: plan, launch, commit or drop; and the lane, the short way of a decode step.

#include <quire/cache/cache_options.hpp>
#include <quire/cache/detail/cache_core.hpp>
#include <quire/cache/detail/step_slot.hpp>
#include <quire/core/contract.hpp>
#include <quire/core/errc.hpp>
#include <quire/core/expected.hpp>
#include <quire/core/types.hpp>
#include <quire/observe/events.hpp>
#include <quire/sequence/sequence_state.hpp>
#include <quire/view/action.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace quire::detail {

/// \cond INTERNAL
template <class Policies>
template <class ItemOf>
auto cache_core<Policies>::plan(std::size_t count, ItemOf item_of, timeline_id timeline) -> expected<slot_type*> {
  QUIRE_EXPECTS(timeline.value() < timelines);
  reclaim();
  if (open_ != nullptr) { return refuse(errc::plan_open); }
  if (count > options_.max_rows.value()) { return refuse(errc::too_many_rows); }
  auto* const slot = idle_slot();
  if (slot == nullptr) { return refuse(errc::views_in_flight); }
  reserve_retirement();
  slot->results.resize(count);
  slot->items.clear();
  slot->actions.clear();
  slot->claimed.clear();
  slot->ids.clear();
  slot->rows.begin(std::max(columns_, fixed_columns_));
  for (std::size_t g = 0; g < windows_.size(); ++g) { slot->groups[g].rows.begin(group_columns_[g]); }
  slot->timeline = timeline;
  slot->serial = ++serials_;
  slot->phase = step_phase::planned;
  open_ = slot;
  auto guard = undo{this, slot};
  std::uint32_t rows = 0;
  slot->ids.reserve(count);
  for (std::size_t i = 0; (i = add_lanes(*slot, i, count, item_of, rows)) < count; ++i) {
    auto const item = item_of(i);
    auto& record = *item.record;
    if (record.at_block && decodes(record, item) && add_next_block(*slot, record, item.ids.front())) {
      slot->results[i] = {errc::ok, row_id{rows++}};
      continue;
    }
    auto const status = add_item(*slot, record, item.tokens, item.ids);
    if (status == errc::ok) { record.loads = item.loaded; }
    slot->results[i] = {status, status == errc::ok ? row_id{rows++} : row_id::none()};
    if (status != errc::ok) { refused(record, status); }
    slot->ids.reserve(slot->ids.size() + count - i);
  }
  slot->rows.end();
  slot->view = slot->rows.view(static_cast<std::int32_t>(slot_number(*slot)));
  for (auto& group : slot->groups) {
    group.rows.end();
    group.view = group.rows.view(slot->view.buffer);
  }
  guard.disarm();
  return slot;
}

template <class Policies>
auto cache_core<Policies>::launch(slot_type& slot) -> std::span<action const> {
  QUIRE_EXPECTS(slot.phase == step_phase::planned);
  for (auto& window : windows_) { evicted(window.id(), window.confirm()); }
  index_.confirm();
  for (auto const block : slot.claimed) {
    unhang(block);
    pool_.reuse(block);
  }
  for (auto const group : lead_groups_) {
    evicted(group, block_count{static_cast<std::uint32_t>(slot.claimed.size())});
  }
  slot.phase = step_phase::launched;
  open_ = nullptr;
  return slot.actions;
}

template <class Policies>
auto cache_core<Policies>::commit(slot_type& slot, ticket until) -> bool {
  QUIRE_EXPECTS(slot.phase == step_phase::launched);
  auto const timeline = slot.timeline;
  slot.phase = step_phase::in_flight;
  slot.until = until;
  auto all = true;
  std::uint32_t decoded = 0;
  auto ids = std::span<token_id const>{slot.ids.begin(), slot.ids.size()};
  for (auto& item : slot.items) {
    auto& record = *item.record;
    record.plan_open = false;
    note_ticket(record, timeline, until);
    if (item.lane > 0 && !record.ending && silent) {
      if (item.fresh) {
        ops_.commit_block(record.state);
        for (std::size_t g = 0; g < windows_.size(); ++g) {
          windows_[g].commit(record.groups[g], record.state.committed,
                             [](block_id, std::uint32_t) {}); // nothing was copied
        }
      }
      commit_in_lane(record, item.lane - 1, ids.front());
      ++decoded;
      ids = ids.subspan(1);
      continue;
    }
    auto const tokens = ids.first(item.lane > 0 || record.ids_known ? item.tokens : 0);
    ids = ids.subspan(tokens.size());
    if (record.ending) {
      all = false;
      auto const retire = retire_after(record);
      roll_back_groups(record, retire);
      ops_.roll_back(record.state, [&](block_id block) { discard(block, retire); });
      finish(record);
      continue;
    }
    auto const copied = static_cast<bool>(record.state.copy_source);
    auto const retire = retire_after(record);
    auto const may_publish = record.epoch == epoch_;
    if (!may_publish) { record.state.publishes = false; }
    for (std::size_t g = 0; g < windows_.size(); ++g) {
      windows_[g].commit(record.groups[g], record.state.committed, retire.of_group(g));
    }
    if (copied) { own_from(record, geometry_.index(record.state.committed)); }
    auto const before = record.state.committed;
    auto const settled = ops_.commit(record.state, tokens, retire, hanger{this, &record});
    if (!windows_.empty() && before < record.state.stored) { hang_again(record, before); }
    give_up(record, retire);
    if (record.state.publishes && settled.published + settled.duplicates > 0) { published(record, settled); }
    committed(record, copied);
    open_lane(record);
  }
  if (decoded > 0) { stats_.on_commit({.computed_output = token_count{decoded}}); }
  return all;
}

template <class Policies>
auto cache_core<Policies>::drop(slot_type& slot) -> void {
  auto const launched = slot.phase == step_phase::launched;
  QUIRE_EXPECTS(launched || slot.phase == step_phase::planned);
  auto const until = launched ? fence_.issue(slot.timeline) : ticket{};
  auto const retire = retirement{this, slot.timeline, until};
  for (auto i = slot.items.size(); i-- > 0;) {
    auto& item = slot.items[i];
    auto& record = *item.record;
    roll_back_groups(record, retire);
    ops_.roll_back(record.state, [&](block_id block) {
      if (pool_.state(block) != pool_type::state_type::condemned) { discard(block, retire); }
    });
    record.plan_open = false;
    if (item.lane == 0 || item.fresh) { promise(record, record.ending ? 0 : record.owed); }
    if (item.lane == 0 && record.diverges) { record.state.stored = record.state.committed + 1; }
    open_lane(record);
    if (launched) { note_ticket(record, slot.timeline, until); }
  }
  if (!launched) {
    for (auto& window : windows_) { window.restore(); }
    index_.restore([&](block_id block) {
      unhang(block);
      pool_.apply(block, block_event_type::evict);
      pool_.reclaim(block);
    });
    for (auto const block : slot.claimed) {
      if (pool_.state(block) == pool_type::state_type::condemned) { pool_.apply(block, block_event_type::restore); }
    }
    open_ = nullptr;
  }
  for (auto& item : slot.items) {
    if (item.record->ending) { finish(*item.record); }
  }
  distrust(slot);
  slot.items.clear();
  slot.phase = launched ? step_phase::in_flight : step_phase::idle;
  slot.until = until;
}

template <class Policies>
auto cache_core<Policies>::open_lane(record_type& record) noexcept -> void {
  auto const& s = record.state;
  auto const j = geometry_.index(s.committed);
  auto const offset = geometry_.offset(s.committed);
  record.lane = 0;
  record.at_block = false;
  if (s.known != s.committed || !record.counted || record.covered < record.prompt || record.covered > s.committed) {
    return;
  }
  if (j >= s.table.size()) {
    record.at_block = !shares_memory && record.limit > s.committed && options_.scrub != scrub_rule::on_reuse &&
                      (s.writer || windows_.empty()); // who did not write the last block of a group may have to copy it
    return;
  }
  if (offset == 0 || j < s.pinned || !s.writer || s.skips() > 0) { return; }
  auto lane = std::min(geometry_.block_tokens() - offset, record.limit - s.committed);
  for (std::size_t g = 0; g < windows_.size(); ++g) {
    lane = std::min(lane, windows_[g].lane(record.groups[g], s.committed));
  }
  record.lane = lane;
  record.lane_blocks = s.table.size();
  record.lane_slot = s.table.slot(geometry_, token_pos{s.committed});
}

template <class Policies>
template <class ItemOf>
auto cache_core<Policies>::add_lanes(slot_type& slot, std::size_t i, std::size_t count, ItemOf const& item_of,
                                     std::uint32_t& rows) -> std::size_t {
  auto const out = slot.rows.appender();
  auto* const items = slot.items.end_place();
  auto* const ids = slot.ids.end_place();
  auto* const results = slot.results.data() + i;
  std::uint32_t k = 0;
  for (; i < count; ++i, ++k) {
    auto const& item = item_of(i);
    auto& record = *item.record;
    auto& s = record.state;
    if (record.lane == 0 || !decodes(record, item)) { break; }
    if (!out.shows(k, record.stamp, record.lane_blocks) || (!windows_.empty() && !groups_show(slot, record, k))) {
      break;
    }
    results[k] = {errc::ok, row_id{rows + k}};
    items[k] = {&record, 1, 0, record.lane};
    ids[k] = item.ids.front();
    record.lane = 0;
    record.plan_open = true;
    s.reserved = s.committed + 1;
  }
  slot.items.add(k); // from here on a plan that fails takes them back
  slot.ids.add(k);
  for (std::uint32_t j = 0; j < k; ++j) { // a loop of its own: together they need more registers than there are
    auto& record = *items[j].record;
    out.write(j, record.state.committed, record.lane_slot);
    if constexpr (timelines > 1) { wait_for_others(slot, record); }
  }
  slot.rows.take(k);
  for (std::size_t g = 0; g < windows_.size(); ++g) {
    auto& shown_rows = slot.groups[g].rows;
    auto const at = shown_rows.appender();
    for (std::uint32_t j = 0; j < k; ++j) {
      auto const& record = *items[j].record;
      at.write(j, record.state.committed, record.state.committed + record.groups[g].lane_shift);
    }
    shown_rows.take(k);
  }
  rows += k;
  return i;
}

template <class Policies>
auto cache_core<Policies>::add_next_block(slot_type& slot, record_type& record, token_id id) -> bool {
  auto& s = record.state;
  if (record.plan_open || (!windows_.empty() && !groups_have_next(record))) { return false; }
  auto block = pool_.try_allocate();
  if (!block) {
    if (evictable() == block_count{}) { return false; }
    slot.fresh.resize(1);
    take(slot, 1);
    block = slot.fresh.front();
  }
  note_lane(record);
  auto& item = *slot.items.end_place();
  item = {&record, 1, 1, std::min(geometry_.block_tokens(), record.limit - s.committed)};
  slot.items.add(1);
  *slot.ids.end_place() = id;
  slot.ids.add(1);
  record.at_block = false;
  record.plan_open = true;
  record.owed = record.outstanding;
  promise(record, record.outstanding - std::min(record.outstanding, 1U));
  s.table_before = s.table.size();
  s.table.push_back(block);
  s.reserved = s.committed + 1;
  record.lane_blocks = s.table.size();
  record.lane_slot = std::int64_t{block.value()} * geometry_.block_tokens();
  if constexpr (timelines > 1) { wait_for_others(slot, record); }
  slot.rows.add({record.stamp, s.table.blocks()}, s.committed, record.lane_slot);
  for (std::size_t g = 0; g < windows_.size(); ++g) {
    auto& table = record.groups[g];
    item.lane = std::min(item.lane, windows_[g].next(table, s.committed));
    slot.groups[g].rows.add(shown(table), s.committed, s.committed + table.lane_shift);
  }
  return true;
}

template <class Policies>
[[gnu::noinline]] auto cache_core<Policies>::leave_lane(record_type& record) -> void {
  note_lane(record);
  if (record.epoch != epoch_) { record.state.publishes = false; }
  auto const settled = ops_.settle(record.state, hanger{this, &record});
  if (!windows_.empty()) { give_up(record, retire_after(record)); }
  if (settled.published + settled.duplicates > 0) { published(record, settled); }
  open_lane(record);
}

/// True if positions whose writes would be skipped get other tokens than those that are stored there.
template <class Policies>
auto cache_core<Policies>::other_tokens(sequence_state const& s, std::span<token_id const> ids) const -> bool {
  for (std::size_t i = 0; i < std::min<std::size_t>(ids.size(), s.skips()); ++i) {
    auto const at = s.committed + static_cast<std::uint32_t>(i);
    if (ids[i] != index_.tokens(s.table[geometry_.index(at)])[geometry_.offset(at)]) { return true; }
  }
  return false;
}

template <class Policies>
auto cache_core<Policies>::add_item(slot_type& slot, record_type& record, std::uint32_t q,
                                    std::span<token_id const> ids) -> errc {
  auto& s = record.state;
  if (q == 0) { return errc::zero_tokens; }
  if (record.plan_open) {
    auto const here =
        std::any_of(slot.items.begin(), slot.items.end(), [&](auto const& item) { return item.record == &record; });
    return here ? errc::duplicate_item : errc::plan_open;
  }
  if (record.epoch < restart_below_) { return errc::stale_epoch; }
  if (std::uint64_t{s.committed} + q > record.limit) { return errc::over_budget; }
  if (q > append_limit()) { return errc::beyond_append; }
  if (!ids.empty() && s.known != s.committed) { return errc::unresolved; }
  // A skipped write is right for the token that is stored there; another one is written, into a copy.
  auto const diverges = s.skips() > 0 && !ids.empty() && other_tokens(s, ids);
  if (diverges && (s.skips() > 1 || s.committed < exact_from(record))) { return errc::other_tokens; }
  if (diverges) { s.stored = s.committed; }
  auto const need = ops_.blocks_for(s, q);
  auto why = errc::ok;
  if (need > 0) {
    why = !Policies::copy::allowed && ops_.must_copy(s) ? errc::not_supported
          : need > available().value()                  ? errc::no_blocks
                                                        : errc::ok;
  }
  if (diverges && why == errc::ok && !affords_one()) { why = errc::no_blocks; }
  auto const group_needs = windows_.empty() || why != errc::ok ? 0U : needs_of_groups(record, q, why);
  auto const idle_first = why == errc::ok && need + group_needs > 0 && idle_goes_first(record, q, need, why);
  if (why != errc::ok) {
    if (diverges) { s.stored = s.committed + 1; }
    return why;
  }
  if (group_needs > 0) { reserve_late_holds(group_needs); }
  record.diverges = diverges;
  note_lane(record);
  *slot.items.end_place() = {&record, q & 0x7fff'ffffU, 0, 0}; // within `max_positions`
  slot.items.add(1);
  record.lane = 0;
  record.at_block = false;
  record.owed = record.outstanding;
  record.ids_known = !ids.empty();
  slot.ids.append(ids);
  record.plan_open = true;
  if (need > 0) {
    reserve_with_blocks(slot, record, q, need, idle_first);
  } else {
    ops_.reserve(s, q, {});
  }
  if (!windows_.empty()) { reserve_in_groups(slot, record, q, idle_first); }
  if constexpr (timelines > 1) { wait_for_others(slot, record); }
  slot.rows.add({record.stamp, s.table.blocks()}, s.committed, q, s.skips());
  return errc::ok;
}

template <class Policies>
[[gnu::noinline]] auto cache_core<Policies>::reserve_with_blocks(slot_type& slot, record_type& record, std::uint32_t q,
                                                                 std::uint32_t need, bool idle_first) -> void {
  auto& s = record.state;
  slot.fresh.resize(need);
  s.table.reserve(s.table.size() + need);
  take(slot, need, idle_first);
  ops_.reserve(s, q, slot.fresh);
  auto const owed = need - (record.diverges ? 1U : 0U); // the copy of a block that was found was promised to nobody
  promise(record, record.outstanding - std::min(record.outstanding, owed));
  if (s.copy_source) { record.stamp = ++stamps_; }
  add_actions(slot, record, need, s.committed);
}

template <class Policies>
auto cache_core<Policies>::take(slot_type& slot, std::uint32_t need, bool idle_first) -> void {
  auto const fresh = std::span{slot.fresh};
  auto const free =
      idle_first ? need - std::min(need, evictable().value()) : std::min(need, pool_.free_blocks().value());
  auto const victims = need - free;
  if (victims > 0) {
    index_.reserve_claims(block_count{victims});
    slot.claimed.reserve(slot.claimed.size() + victims);
  }
  static_cast<void>(pool_.try_allocate(fresh.first(free)));
  if (victims == 0) { return; }
  auto const claimed = index_.claim(fresh.subspan(free));
  QUIRE_EXPECTS(claimed.value() == victims); // an eviction policy yields every idle node in the end
  for (auto const block : fresh.subspan(free)) {
    pool_.apply(block, block_event_type::claim);
    slot.claimed.push_back(block);
  }
}

template <class Policies>
auto cache_core<Policies>::add_actions(slot_type& slot, record_type const& record, std::uint32_t need,
                                       std::uint32_t from) -> void {
  auto const& s = record.state;
  for (auto const group : lead_groups_) {
    if (options_.scrub == scrub_rule::on_reuse) {
      for (std::uint32_t i = 0; i < need; ++i) { slot.actions.push_back(action::scrub_block(group, slot.fresh[i])); }
    }
    if (s.copy_source && geometry_.offset(from) > 0) {
      slot.actions.push_back(Policies::copy::copy(group, s.copy_source, s.table[geometry_.index(from)],
                                                  token_count{geometry_.offset(from)}, options_.block_tokens));
    }
  }
}

template <class Policies>
auto cache_core<Policies>::wait_for_others(slot_type& slot, record_type const& record) -> void {
  for (std::uint32_t t = 0; t < timelines; ++t) {
    auto const until = last_use(record, t);
    if (t == slot.timeline.value() || reached(timeline_id{t}, until)) { continue; }
    auto const wait = action::wait_for(timeline_id{t}, until);
    if (std::find(slot.actions.begin(), slot.actions.end(), wait) == slot.actions.end()) {
      slot.actions.insert(slot.actions.begin(), wait);
    }
  }
}

template <class Policies>
auto cache_core<Policies>::committed(record_type& record, bool copied) -> void {
  commit_event event{.scope = record.scope,
                     .sequence = record.number,
                     .first = !record.counted,
                     .resumed = record.resumed,
                     .length = token_count{record.state.committed},
                     .copied = block_count{copied ? 1U : 0U}};
  if (!record.counted) {
    event.hit = token_count{record.attached};
    record.covered = record.attached;
    record.counted = true;
  }
  auto const from = record.covered;
  auto const n = grown(record);
  auto const of_prompt = from < record.prompt ? std::min(n, record.prompt - from) : 0U;
  (std::exchange(record.loads, false) ? event.loaded : event.computed_prompt) = token_count{of_prompt};
  event.computed_output = token_count{n - of_prompt};
  auto const why = record.state.committed < record.prompt ? request_event_type::start : request_event_type::decode;
  if (auto const to = Policies::request_states::table.next(record.phase, why)) { record.phase = *to; }
  stats_.on_commit(event);
  observe([&](auto& o) { o.on_commit(event); });
}
/// \endcond

} // namespace quire::detail
