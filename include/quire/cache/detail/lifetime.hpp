// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Beginning, forking, cutting back and ending sequences.

#include <quire/cache/detail/append_cursor.hpp>
#include <quire/cache/detail/cache_core.hpp>
#include <quire/cache/detail/figures.hpp>
#include <quire/cache/detail/settle.hpp>
#include <quire/cache/detail/step_slot.hpp>
#include <quire/cache/group_figures.hpp>
#include <quire/cache/preemption.hpp>
#include <quire/core/errc.hpp>
#include <quire/core/expected.hpp>
#include <quire/core/types.hpp>
#include <quire/observe/events.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
/// \p r lives: it gets its number, its budgets and its promises. Its tables and its path stand.
template <class Policies>
auto begin(cache_core<Policies>& c, record_of<Policies>& r) -> void {
  c.registry.begin(r);
  r.plan_open = r.ending = false;
  r.left = 0;
  r.opens = false;
  for (std::size_t g = 0; g < c.groups.size(); ++g) {
    auto& group = c.groups[g];
    auto const budget = group.budget(r.limit, c.append_limit(), r.rewind);
    if (!group.by_path()) { group.set_budget(r.tables[g], budget); }
    c.columns[g] = std::max(c.columns[g], group.columns(r.limit, budget));
  }
  c.promise(r);
}

/// A new sequence with the first \p length positions of \p parent. \throws std::bad_alloc; nothing has changed then.
template <class Policies>
auto fork(cache_core<Policies>& c, record_of<Policies>& parent, std::uint32_t length)
    -> expected<record_of<Policies>*> {
  c.reclaim();
  if (parent.plan_open) { return refuse(errc::plan_open); }
  if (length > parent.at.committed) { return refuse(errc::out_of_range); }
  if (c.registry.full()) { return refuse(errc::too_many_sequences); }
  if (!c.can_resume_at(parent, length)) { return refuse(errc::not_resident); }
  auto& child = c.registry.next();
  auto const most = std::min(parent.limit, c.longest());
  c.reserve_pins();
  child.path.reserve(c.unit().blocks(most) + 1);
  for (std::size_t g = 0; g < c.groups.size(); ++g) {
    child.tables[g].blocks.reserve(c.groups[g].geometry().blocks(most) + c.groups[g].per_unit());
  }

  settle(c, parent);
  open_cursor(c, parent); // its tables may have been pointed elsewhere
  parent.path.fork(c.index, child.path, c.unit().blocks(length));
  child.at = {.committed = length, .known = std::min(parent.at.known, length), .skip_until = 0};
  child.limit = parent.limit;
  child.prompt = parent.prompt;
  child.rewind = parent.rewind;
  // All that it shares was found. Windows that are rebuilt begin where the parent's do.
  auto const exact_from = length > 0 ? parent.reuse.exact_from : 0U;
  child.reuse = {length, exact_from > 0 ? parent.reuse.start : length, exact_from};
  child.epoch = parent.epoch;
  auto fits = true;
  c.count_needs();
  auto const next = c.request_of(child, 0);
  for (std::size_t g = 0; g < c.groups.size(); ++g) {
    auto& group = c.groups[g];
    auto& table = child.tables[g];
    group.fork(parent.tables[g], table, length, child.path.pinned());
    table.skip_until = 0;
    auto const owes = group.by_path() ? group.owes(table, child.limit, next)
                                      : group.budget(child.limit, c.append_limit(), child.rewind);
    auto const idle = c.groups.evictable(group, c.index.evictable());
    auto const room = c.room(g) + idle;
    fits = fits && c.admission.admits({.now = block_count{group.copies(table, next)},
                                       .in_total = block_count{owes},
                                       .promised = block_count{group.ledger().promised()},
                                       .available = block_count{room - std::min(room, group.ledger().reserved())},
                                       .capacity = block_count{group.capacity()}});
    c.need_beside(g, group.ledger().promised() + group.ledger().reserved() + owes, idle);
  }
  fits = fits && c.admission.admits({.now = block_count{next.copies_unit ? 1U : 0U},
                                     .in_total = block_count{c.units_owed(child)},
                                     .promised = block_count{c.promised_units()},
                                     .available = block_count{c.available_units()},
                                     .capacity = block_count{c.index.capacity().value()}});
  if (!fits) {
    for (std::size_t g = 0; g < c.groups.size(); ++g) { // the parent holds every block: nothing retires
      c.groups[g].drop_all(child.tables[g], child.path.pinned(), {});
    }
    c.index.release(child.path.drop(c.index));
    return refuse(errc::no_blocks);
  }
  child.scope = parent.scope;
  child.phase = parent.phase;
  child.last = parent.last;
  child.resumed = parent.resumed;
  child.counted = true; // it is no request of its own: nothing of it is found
  child.hit = 0;
  child.covered = length;
  begin(c, child);
  open_cursor(c, child);
  return &child;
}

/// Cuts \p r back. Promises and cursor are the caller's business. \pre everything is settled
template <class Policies>
auto cut(cache_core<Policies>& c, record_of<Policies>& r, std::uint32_t length) -> void {
  note_cursor(c, r);
  auto const pinned = r.path.pinned();
  c.pins.release(c.index, r.path.truncate(c.index, c.unit().blocks(length)), r.last);
  for (std::size_t g = 0; g < c.groups.size(); ++g) {
    c.groups[g].truncate(r.tables[g], length, pinned, r.last);
    if (c.groups[g].shared_end(r.tables[g], length)) { r.path.disown_tail(); }
  }
  r.at.truncate(length);
  if (length == 0) { r.reuse.exact_from = 0; } // nothing is rebuilt any more: all of it is computed from the beginning
  if (!r.counted) { r.hit = std::min(r.hit, length); } // what is given back before anything is counted was no hit
}

template <class Policies>
auto truncate(cache_core<Policies>& c, record_of<Policies>& r, std::uint32_t length) -> expected<void> {
  if (r.plan_open) { return refuse(errc::plan_open); }
  if (length > r.at.committed) { return refuse(errc::out_of_range); }
  if (length == r.at.committed) { return {}; }
  if (!c.can_resume_at(r, length)) { return refuse(errc::not_resident); }
  c.reserve_pins();
  settle(c, r);
  // What was shared is promised again, beside what comes back.
  auto const units = c.unit().blocks(length);
  auto const at_once = c.clock.reached(r.last);
  auto const released = at_once ? r.path.would_release(c.index, units).value() : 0U;
  auto const u = c.unit().index(length);
  auto const copies = c.unit().offset(length) != 0 && (u < r.path.pinned() || c.index.holders(r.path.units()[u]) > 1);
  c.count_needs();
  for (std::size_t g = 0; g < c.groups.size(); ++g) {
    auto const& group = c.groups[g];
    if (!group.by_path()) { continue; } // budgets stay
    auto const& table = r.tables[g];
    auto const settled = table.owed + released * group.per_unit() + group.would_free(table, length, r.path.pinned());
    auto const owed = group.geometry().blocks(r.limit) - group.geometry().blocks(length) +
                      (copies ? group.geometry().blocks(length) - u * group.per_unit() : 0U);
    if (owed <= settled) { continue; }
    auto const room = c.room(g) + c.groups.evictable(group, c.index.evictable());
    if (!c.admission.admits({.now = block_count{0},
                             .in_total = block_count{owed - settled},
                             .promised = block_count{group.ledger().promised()},
                             .available = block_count{room - std::min(room, group.ledger().reserved())},
                             .capacity = block_count{group.capacity()}})) {
      open_cursor(c, r);
      return refuse(errc::no_blocks);
    }
  }
  auto const settled = r.owed_units + released + r.path.would_free(c.index, units);
  auto const owed = c.unit().blocks(r.limit) - units + (copies ? 1U : 0U);
  if (owed > settled && !c.admission.admits({.now = block_count{0},
                                             .in_total = block_count{owed - settled},
                                             .promised = block_count{c.promised_units()},
                                             .available = block_count{c.available_units()},
                                             .capacity = block_count{c.index.capacity().value()}})) {
    open_cursor(c, r);
    return refuse(errc::no_blocks);
  }
  cut(c, r, length);
  trim(c, r);
  c.promise(r);
  open_cursor(c, r);
  return {};
}

template <class Policies>
auto resolve(cache_core<Policies>& c, record_of<Policies>& r, std::span<token_id const> tokens) -> expected<void> {
  if (r.plan_open) { return refuse(errc::plan_open); }
  if (r.at.known + tokens.size() > r.at.committed) { return refuse(errc::out_of_range); }
  auto const shared = r.path.shared_until(c.unit());
  for (std::size_t i = 0; i < tokens.size(); ++i) { // positions in published units have their tokens
    auto const at = r.at.known + static_cast<std::uint32_t>(i);
    if (at >= shared) { break; }
    if (r.path.token(c.index, c.unit(), at) != tokens[i]) { return refuse(errc::other_tokens); }
  }
  auto const skipped = std::min<std::size_t>(shared - std::min(shared, r.at.known), tokens.size());
  auto const from = r.at.known + static_cast<std::uint32_t>(skipped);
  r.path.keep_tokens(c.index, c.unit(), from, tokens.subspan(skipped));
  r.at.known += static_cast<std::uint32_t>(tokens.size());
  settle(c, r);
  open_cursor(c, r);
  return {};
}

/// Gives back what an ended record holds, now or when work in flight is done with it.
template <class Policies>
auto finish(cache_core<Policies>& c, record_of<Policies>& r) -> void {
  using event = typename cache_core<Policies>::request_event_type;
  r.ending = false;
  settle(c, r, false);
  for (std::size_t g = 0; g < c.groups.size(); ++g) { c.groups[g].drop_all(r.tables[g], r.path.pinned(), r.last); }
  c.pins.release(c.index, r.path.drop(c.index), r.last);
  if (auto const to = Policies::request_states::table.next(r.phase, event::release)) { r.phase = *to; }
  r.at = {};
  r.left = 0;
  r.opens = false;
  c.registry.end(r);
}

/// The first length from \p target on to which \p r can be cut back and go on; none if there is none.
template <class Policies>
[[nodiscard]] auto resumable(cache_core<Policies> const& c, record_of<Policies> const& r, std::uint32_t target)
    -> std::optional<std::uint32_t> {
  if (target > 0) { target = std::max(target, r.reuse.exact_from); }
  if (target > r.at.committed) { return std::nullopt; }
  for (auto again = true; std::exchange(again, false);) {
    for (std::size_t g = 0; g < c.groups.size(); ++g) {
      auto const from = c.groups[g].resumable(r.tables[g], target, r.at.committed);
      if (!from) { return std::nullopt; }
      again = again || *from != target;
      target = *from;
    }
  }
  return target;
}

/// Ends a sequence for good; its handle is used up. \p why must be legal in the life cycle.
template <class Policies>
auto end(cache_core<Policies>& c, record_of<Policies>& r, typename cache_core<Policies>::request_event_type why)
    -> expected<void> {
  using event_type = typename cache_core<Policies>::request_event_type;
  auto const to = Policies::request_states::table.next(r.phase, why);
  if (!to) { return refuse(errc::illegal_transition); }
  auto const kept = r.path.pinned();
  auto const event = release_event{.scope = r.scope,
                                   .sequence = r.number,
                                   .length = token_count{r.at.committed},
                                   .returned = block_count{r.path.size() - kept},
                                   .kept = block_count{kept},
                                   .preempted = why == event_type::preempt};
  r.phase = *to;
  ++r.generation;
  c.owe_units(r, 0);
  if (r.plan_open && c.open != nullptr) { // what it has reserved stays reserved, and was promised to nobody
    for (auto const& item : c.open->items) {
      if (item.record != &r) { continue; }
      auto const next = c.request_of(r, item.tokens);
      c.reserved_by_ended += r.path.units_for(c.index, c.unit(), r.at, item.tokens);
      for (std::size_t g = 0; g < c.groups.size(); ++g) {
        c.groups[g].ledger().end_reserved(c.groups[g].needs(r.tables[g], next));
      }
    }
  }
  for (auto& slot : c.slots) { // sources of copies in flight are nobody's use any more either
    for (auto const& copy : slot.copies) {
      if (r.plan_open && copy.record == &r && copy.group != copy.unit && slot.phase == step_phase::launched) {
        c.groups[copy.group].end_use(r.tables[copy.group], copy.source);
      }
    }
  }
  for (std::size_t g = 0; g < c.groups.size(); ++g) { c.groups[g].set_budget(r.tables[g], 0); }
  c.stats.on_release(event);
  c.observe([&](auto& o) { o.on_release(event); });
  if (r.plan_open) {
    r.ending = true;
  } else {
    finish(c, r);
  }
  return {};
}

/// Ends a sequence that will come back, and tells what that brings.
template <class Policies>
auto preempt(cache_core<Policies>& c, record_of<Policies>& r) -> expected<preemption> {
  using event_type = typename cache_core<Policies>::request_event_type;
  std::vector<group_figures> before;
  auto room = room_to_drain(c); // nothing may fail once the sequence has ended
  auto const drained = draining_units(c, room);
  for (std::size_t g = 0; g < c.groups.size(); ++g) { before.push_back(figures_of(c, g, drained)); }
  auto last = r.last;
  for (std::size_t g = 0; g < c.groups.size(); ++g) { c.groups[g].join_uses(r.tables[g], r.path.pinned(), last); }
  auto const open = r.plan_open; // then everything comes back when the plan is committed or dropped
  std::vector<std::uint32_t> at_end(c.groups.size());
  for (std::size_t g = 0; g < c.groups.size() && open; ++g) {
    auto const& group = c.groups[g];
    auto const units = group.by_path() ? r.path.would_release(c.index, 0).value() : 0U;
    at_end[g] = units * group.per_unit() + group.would_free(r.tables[g], 0, r.path.pinned());
  }
  if (auto const done = end(c, r, event_type::preempt); !done) { return refuse(done.error()); }
  auto const draining = draining_units(c, room);
  for (std::uint32_t group = 0; group < c.groups.layer_groups(); ++group) {
    auto const g = c.groups.part_of(group_id{group});
    auto const now = figures_of(c, g, draining);
    auto const at_hand = [](group_figures const& f) { return f.free + f.evictable; };
    auto const later = [](group_figures const& f) { return f.waiting + f.draining; };
    auto const gain = [](block_count a, block_count b) { return a > b ? a - b : block_count{}; };
    c.returned[group] = {gain(at_hand(now), at_hand(before[g])), gain(later(now), later(before[g]))};
    if (open) { c.returned[group].later = block_count{at_end[g]}; }
  }
  c.returned_until = last;
  return preemption{c.returned, c.returned_until};
}
/// \endcond

} // namespace quire::detail
