// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Steps: a plan counts, a launch takes, a commit makes it count.
///
/// ```text
///   plan     numbers are reserved per group; memory that the launch needs is taken       may refuse, may throw
///   launch   victims leave, blocks are taken, tables and rows are filled, actions told   cannot fail
///   commit   lengths advance, full units publish                                         cannot fail
///   drop     before launch: the numbers are given back. After it: blocks retire under a ticket issued then
/// ```

#include <quire/cache/cache_options.hpp>
#include <quire/cache/detail/append_cursor.hpp>
#include <quire/cache/detail/block_group.hpp>
#include <quire/cache/detail/cache_core.hpp>
#include <quire/cache/detail/lifetime.hpp>
#include <quire/cache/detail/settle.hpp>
#include <quire/cache/detail/step_slot.hpp>
#include <quire/cache/step.hpp>
#include <quire/core/contract.hpp>
#include <quire/core/errc.hpp>
#include <quire/core/expected.hpp>
#include <quire/core/types.hpp>
#include <quire/observe/events.hpp>
#include <quire/sequence/block_table.hpp>
#include <quire/sequence/prefix_path.hpp>
#include <quire/view/action.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
/// What a step is asked to do with one record.
template <class Record>
struct wanted_item {
  Record* record;
  std::uint32_t tokens;
  std::span<token_id const> ids;
  bool loads;
  std::uint64_t user;
};

template <class Policies>
class stepper {
  using core_type = cache_core<Policies>;
  using record_type = typename core_type::record_type;
  using slot_type = typename core_type::slot_type;
  using item_type = wanted_item<record_type>;
  using planned_item = typename slot_type::planned_item;
  using copy_note = typename slot_type::copy_note;
  using tickets = typename core_type::tickets;
  using request_event = typename core_type::request_event_type;

public:
  explicit stepper(core_type& core) noexcept : c_{&core} {}

  // --- plan ---------------------------------------------------------------------------------------------------------
  /// An empty plan. \throws std::bad_alloc; nothing has changed then.
  [[nodiscard]] auto begin(timeline_id timeline) -> expected<slot_type*> {
    auto& c = *c_;
    QUIRE_EXPECTS(timeline.value() < core_type::timelines);
    c.reclaim();
    if (c.open != nullptr) { return refuse(errc::plan_open); }
    auto* const slot = c.idle_slot();
    if (slot == nullptr) { return refuse(errc::views_in_flight); }
    c.reserve_pins();
    for (std::size_t g = 0; g < c.groups.size(); ++g) { slot->groups[g].rows.begin(c.columns[g]); }
    slot->results.clear();
    slot->items.clear();
    slot->actions.clear();
    slot->copies.clear();
    slot->ids.clear();
    slot->copies_to_come = 0;
    slot->actions_to_come = core_type::timelines;
    slot->actions.reserve(slot->actions_to_come);
    slot->timeline = timeline;
    slot->serial = ++c.serials;
    slot->phase = step_phase::planned;
    c.open = slot;
    return slot;
  }
  /// Adds items: \p item_of(i) gives a `wanted_item`, for i below \p count. \throws std::bad_alloc; those before it stay
  template <class ItemOf>
  auto add(slot_type& slot, std::size_t count, ItemOf const& item_of) -> void {
    auto const rows = std::size_t{c_->options.max_rows.value()};
    slot.results.reserve(slot.results.size() + count);
    slot.ids.reserve(slot.ids.size() + count);
    for (std::size_t i = 0; i < count; ++i) {
      auto const end = std::min(count, i + rows - slot.items.size());
      i = plan_cursors(*c_, slot, i, end, item_of);
      if (i == count) { break; }
      *slot.results.end_place() = add_one(slot, item_of(i));
      slot.results.add(1);
      slot.ids.reserve(slot.ids.size() + count - i);
    }
  }
  /// Adds one more item. \throws std::bad_alloc; nothing has changed then
  auto try_add(slot_type& slot, item_type const& item) -> step_result {
    add(slot, 1, [only = &item](std::size_t) -> item_type const& { return *only; });
    return slot.results[slot.results.size() - 1];
  }

  // --- launch -------------------------------------------------------------------------------------------------------
  auto launch(slot_type& slot) -> std::span<action const> {
    auto& c = *c_;
    QUIRE_EXPECTS(slot.phase == step_phase::planned);
    make_room();
    wait_for_others(slot);
    for (std::size_t i = 0; i < slot.items.size();) {
      auto same = i;
      while (same < slot.items.size() && slot.items[same].left > 0 && slot.items[same].opens == 0) { ++same; }
      if (same > i) {
        launch_cursors(c, slot, i, static_cast<std::uint32_t>(same - i));
        i = same;
        continue;
      }
      slot.shown[i] = 0;
      auto& item = slot.items[i++];
      if (item.opens != 0) {
        launch_opening(slot, item);
      } else {
        launch_item(slot, item);
      }
    }
    for (auto row = slot.items.size(); row < slot.rows_shown; ++row) { slot.shown[row] = 0; }
    slot.rows_shown = slot.items.size();
    c.unreserve();
    auto const buffer = static_cast<std::int32_t>(c.slot_number(slot));
    for (auto& group : slot.groups) {
      group.rows.end();
      group.view = group.rows.view(buffer);
    }
    slot.phase = step_phase::launched;
    c.open = nullptr;
    return slot.actions;
  }

  // --- commit -------------------------------------------------------------------------------------------------------
  /// \returns false if a sequence of the step ended while it was open.
  auto commit(slot_type& slot, ticket until) -> bool {
    auto& c = *c_;
    slot.phase = step_phase::in_flight;
    slot.until = until;
    auto const timeline = slot.timeline.value();
    auto all = true;
    std::uint32_t decoded = 0;
    auto ids = std::span<token_id const>{slot.ids.begin(), slot.ids.size()};
    auto copies = std::span<copy_note>{slot.copies};
    for (auto const& item : slot.items) {
      auto& r = *item.record;
      r.plan_open = false;
      note_ticket(r, timeline, until);
      if (core_type::silent && item.left > 0 && !r.ending) {
        if (item.opens != 0 || !core_type::immediate) {
          commit_blocks(r, {r.at.committed, 1, 0, true, false}, timeline, until);
        }
        commit_cursor(c, r, item.left - 1, ids.front());
        ids = ids.subspan(1);
        ++decoded;
        continue;
      }
      auto const tokens = ids.first(item.ids_known != 0 ? item.tokens : 0);
      ids = ids.subspan(tokens.size());
      auto const mine = copies_of(r, copies);
      copies = copies.subspan(mine.size());
      if (r.ending) {
        all = false;
        roll_back(r, item.tokens, mine);
        finish(c, r);
        continue;
      }
      auto const next = append_request{.committed = r.at.committed,
                                       .tokens = item.tokens,
                                       .skips = r.at.skips(),
                                       .owns_tail = r.path.owns_tail(),
                                       .copies_unit = !mine.empty()};
      commit_blocks(r, next, timeline, until);
      leave_sources(r, mine, timeline, until);
      if (!tokens.empty()) {
        auto const skipped = std::min(next.skips, item.tokens); // shared units have their tokens already
        r.path.keep_tokens(c.index, c.unit(), r.at.committed + skipped, tokens.subspan(skipped));
        r.at.known = r.at.committed + item.tokens;
      }
      r.path.own_tail();
      r.at.committed += item.tokens;
      if (next.skips > 0) { arrive_again(r, next.committed); }
      settle(c, r);
      trim(c, r);
      account(r, item.loads != 0, mine);
      open_cursor(c, r);
    }
    if (decoded > 0) { c.stats.on_commit({.computed_output = token_count{decoded}}); }
    return all;
  }

  // --- drop ---------------------------------------------------------------------------------------------------------
  auto drop(slot_type& slot) -> void {
    auto& c = *c_;
    auto const launched = slot.phase == step_phase::launched;
    QUIRE_EXPECTS(launched || slot.phase == step_phase::planned);
    auto const until = launched ? c.clock.issue(slot.timeline) : ticket{};
    auto copies = std::span<copy_note>{slot.copies};
    for (auto const& item : slot.items) {
      auto& r = *item.record;
      r.plan_open = false;
      if (launched) {
        auto const mine = copies_of(r, copies);
        copies = copies.subspan(mine.size());
        note_ticket(r, slot.timeline.value(), until);
        roll_back(r, item.tokens, mine);
        if (!r.ending) { c.promise(r); }
      }
      open_cursor(c, r);
      if (r.ending) { finish(c, r); }
    }
    if (!launched) {
      c.unreserve();
      c.open = nullptr;
    }
    slot.invalidate();
    slot.items.clear();
    slot.copies.clear();
    slot.phase = launched ? step_phase::in_flight : step_phase::idle;
    slot.until = until;
  }

private:
  // --- planning one item --------------------------------------------------------------------------------------------
  auto add_one(slot_type& slot, item_type const& item) -> step_result {
    auto& c = *c_;
    auto& r = *item.record;
    auto const row = row_id{static_cast<std::uint32_t>(slot.items.size())};
    if (row.value() == c.options.max_rows.value()) { return refused(r, errc::too_many_rows, item.user); }
    if (r.opens && !r.plan_open && decodes(c, r, item) && add_opening(slot, r, item.ids.front())) {
      return {errc::ok, row, token_count{}, item.user};
    }
    auto const why = check(slot, item);
    if (why != errc::ok) { return refused(r, why, item.user); }
    auto const next = c.request_of(r, item.tokens);
    if (auto const short_of = reserve(slot, r, next); short_of != errc::ok) { return refused(r, short_of, item.user); }
    note_cursor(c, r);
    *slot.items.end_place() = {
        &r, item.tokens & planned_item::most_tokens, 0, item.ids.empty() ? 0U : 1U, item.loads ? 1U : 0U, 0};
    slot.items.add(1);
    slot.ids.append(item.ids); // there is room
    r.left = 0;
    r.opens = false;
    r.plan_open = true;
    return {errc::ok, row, token_count{std::min(next.skips, item.tokens)}, item.user};
  }
  [[nodiscard]] auto refused(record_type const& r, errc why, std::uint64_t user) -> step_result {
    auto const event = refuse_event{.scope = r.scope, .sequence = r.number, .reason = why, .missing = {}};
    c_->stats.on_refuse(event);
    c_->observe([&](auto& o) { o.on_refuse(event); });
    return {why, row_id::none(), token_count{}, user};
  }
  /// What is wrong with the item itself.
  [[nodiscard]] auto check(slot_type const& slot, item_type const& item) const -> errc {
    auto const& c = *c_;
    auto const& r = *item.record;
    if (item.tokens == 0) { return errc::zero_tokens; }
    if (r.plan_open) {
      auto const here =
          std::any_of(slot.items.begin(), slot.items.end(), [&](auto const& i) { return i.record == &r; });
      return here ? errc::duplicate_item : errc::plan_open;
    }
    if (r.epoch < c.restart_below) { return errc::stale_epoch; }
    if (std::uint64_t{r.at.committed} + item.tokens > r.limit) { return errc::over_budget; }
    if (item.tokens > std::min(c.append_limit(), planned_item::most_tokens)) { return errc::beyond_append; }
    if (!item.ids.empty() && r.at.known != r.at.committed) { return errc::unresolved; }
    // A skipped write is right for the token that is stored there, and for no other.
    for (std::size_t i = 0; i < std::min<std::size_t>(item.ids.size(), r.at.skips()); ++i) {
      auto const at = r.at.committed + static_cast<std::uint32_t>(i);
      if (item.ids[i] != r.path.token(c.index, c.unit(), at)) { return errc::other_tokens; }
    }
    return errc::ok;
  }
  /// Reserves what the item takes of every group, and the memory that its launch will need.
  /// \throws std::bad_alloc; nothing has changed then
  [[nodiscard]] auto reserve(slot_type& slot, record_type& r, append_request const& next) -> errc {
    auto& c = *c_;
    auto const units = r.path.units_for(c.index, c.unit(), r.at, next.tokens);
    auto const idle = c.index.evictable();
    auto why = units > c.available_units() ? errc::no_blocks : errc::ok;
    std::size_t copies = next.copies_unit ? 1 : 0;
    std::size_t actions = 0;
    for (std::size_t g = 0; g < c.groups.size(); ++g) {
      auto const& group = c.groups[g];
      auto const of_group = group.copies(r.tables[g], next);
      auto const needs = group.needs(r.tables[g], next);
      if (!Policies::copy::allowed && of_group > 0) { return errc::not_supported; }
      if (!core_type::shares_memory && needs > c.groups.available(group, idle)) { why = errc::no_blocks; }
      copies += of_group;
      actions += (std::size_t{of_group} + needs) * group.members().size();
    }
    if (why == errc::ok && core_type::shares_memory) { why = fit_memory(r, next); }
    if (why != errc::ok) { return why; }

    r.path.reserve(r.path.size() + units);
    grow(slot.copies, slot.copies_to_come + copies);
    grow(slot.actions, slot.actions_to_come + actions);
    slot.items.reserve(slot.items.size() + 1);
    slot.ids.reserve(slot.ids.size() + next.tokens);
    for (std::size_t g = 0; g < c.groups.size(); ++g) {
      auto const needs = c.groups[g].needs(r.tables[g], next);
      r.tables[g].blocks.reserve(r.tables[g].blocks.size() + needs);
      slot.groups[g].rows.make_ready(next.tokens);
    }
    for (std::size_t g = 0; g < c.groups.size(); ++g) {
      slot.groups[g].rows.expect(next.tokens);
      c.groups[g].ledger().reserve(c.groups[g].needs(r.tables[g], next));
    }
    slot.copies_to_come += copies;
    slot.actions_to_come += actions;
    c.reserved_units += units;
    return errc::ok;
  }
  template <class T>
  static auto grow(std::vector<T>& list, std::size_t size) -> void {
    if (size > list.capacity()) { list.reserve(2 * size); }
  }
  /// Where groups share memory: whether the blocks of all of them can be had together, idle ones included. If not, idle blocks
  /// of other groups go now.
  [[nodiscard]] auto fit_memory(record_type const& r, append_request const& next) -> errc {
    auto& c = *c_;
    if constexpr (core_type::shares_memory) {
      auto const fits = [&] {
        for (std::size_t g = 0; g < c.groups.size(); ++g) {
          c.need_beside(g, c.groups[g].needs(r.tables[g], next) + c.groups[g].ledger().reserved(),
                        c.groups.evictable(c.groups[g], c.index.evictable()));
        }
        return c.groups.memory().fits();
      };
      while (!fits()) {
        if (!c.evict_for_others()) { return errc::no_blocks; }
      }
    }
    return errc::ok;
  }
  /// The step of a decoding sequence that needs blocks and nothing else. False if it takes more, or they are not there.
  [[nodiscard]] auto add_opening(slot_type& slot, record_type& r, token_id id) -> bool {
    auto& c = *c_;
    for (auto& group : slot.groups) { group.rows.make_ready(1); }
    r.path.reserve(r.path.size() + 1);
    for (auto& table : r.tables) { table.blocks.reserve(table.blocks.size() + 1); }
    if (!reserve_next(c, r)) { return false; }
    for (auto& group : slot.groups) { group.rows.expect(1); }
    note_cursor(c, r);
    *slot.items.end_place() = {&r, 1, 1, 1, 0, 1}; // how far it goes on is known at launch
    slot.items.add(1);
    *slot.ids.end_place() = id;
    slot.ids.add(1);
    r.opens = false;
    r.plan_open = true;
    return true;
  }

  // --- launching ----------------------------------------------------------------------------------------------------
  /// Evicts what the step lacks. \post every group has as many free blocks as are reserved, and the index units
  auto make_room() -> void {
    auto& c = *c_;
    auto const free_first = c.free_first();
    for (auto& group : c.groups) {
      auto const wanted = group.ledger().reserved();
      if constexpr (core_type::shares_memory) {
        if (!free_first && wanted > 0) { c.evict(group, wanted); }
      } else if (wanted > group.free()) {
        c.evict(group, wanted - group.free());
      }
    }
    if (auto const free = c.index.free_units().value(); free < c.reserved_units) {
      c.evict_units(c.reserved_units - free);
    }
  }
  /// Content that another timeline may still be writing is waited for before this step reads it.
  auto wait_for_others(slot_type& slot) -> void {
    if constexpr (core_type::timelines > 1) {
      auto& c = *c_;
      tickets all{};
      for (auto const& item : slot.items) { join(all, c.last_use(*item.record)); }
      for (std::uint32_t t = 0; t < core_type::timelines; ++t) {
        if (t == slot.timeline.value() || c.clock.reached(t, all[t])) { continue; }
        slot.actions.push_back(action::wait_for(timeline_id{t}, all[t]));
      }
    }
  }
  auto launch_opening(slot_type& slot, planned_item& item) -> void {
    auto& c = *c_;
    auto& r = *item.record;
    auto const at = r.at.committed;
    item.left = take_next(c, r);
    for (std::size_t g = 0; g < c.groups.size(); ++g) { slot.groups[g].rows.add_next(stamped(r.tables[g]), at); }
  }
  auto launch_item(slot_type& slot, planned_item const& item) -> void {
    auto& c = *c_;
    auto& r = *item.record;
    settle(c, r, false); // the unit that is copied may have been published by its writer since the plan
    auto const next = c.request_of(r, item.tokens);
    auto const owed = r.path.units_for(c.index, c.unit(), r.at, item.tokens);
    if (auto const source = r.path.take(c.index, c.unit(), r.at, item.tokens)) {
      slot.copies.push_back({&r, copy_note::unit, c.unit().index(next.committed), block_id{source.value()}});
    }
    c.owe_units(r, r.owed_units - std::min(r.owed_units, owed));
    for (std::size_t g = 0; g < c.groups.size(); ++g) {
      auto& group = c.groups[g];
      auto& table = r.tables[g];
      auto const before = table.size();
      auto const block = group.geometry().block_tokens();
      auto const first_copy = slot.copies.size();
      group.take(table, next, [&](std::uint32_t j, block_id source, block_id) {
        slot.copies.push_back({&r, static_cast<std::uint32_t>(g), j, source});
      });
      if (c.options.scrub == scrub_rule::on_reuse) {
        for (auto i = first_copy; i < slot.copies.size(); ++i) { scrub(slot, group, table.blocks[slot.copies[i].at]); }
        for (auto j = before; j < table.size(); ++j) { scrub(slot, group, table.blocks[j]); }
      }
      for (auto i = first_copy; i < slot.copies.size(); ++i) {
        auto const& copy = slot.copies[i];
        auto const tokens = std::min(block, next.committed - copy.at * block);
        if (tokens == 0) { continue; }
        for (auto const member : group.members()) {
          slot.actions.push_back(Policies::copy::copy(member, copy.source, table.blocks[copy.at], token_count{tokens},
                                                      token_count{block}));
        }
      }
      slot.groups[g].rows.add(stamped(table), next.committed, item.tokens, group.skips(table, next));
    }
  }
  template <class Group>
  static auto scrub(slot_type& slot, Group const& group, block_id block) -> void {
    for (auto const member : group.members()) { slot.actions.push_back(action::scrub_block(member, block)); }
  }
  [[nodiscard]] auto stamped(block_table& table) noexcept -> block_table const& {
    if (table.version == 0) { table.version = ++c_->versions; }
    return table;
  }

  // --- committing and undoing ---------------------------------------------------------------------------------------
  auto note_ticket(record_type& r, std::uint32_t timeline, ticket until) noexcept -> void {
    if constexpr (!core_type::immediate) {
      r.last[timeline] = std::max(r.last[timeline], until);
      c_->clock.note(timeline, until);
    }
  }
  [[nodiscard]] static auto copies_of(record_type const& r, std::span<copy_note> copies) -> std::span<copy_note> {
    std::size_t n = 0;
    while (n < copies.size() && copies[n].record == &r) { ++n; }
    return copies.first(n);
  }
  auto commit_blocks(record_type& r, append_request const& next, std::uint32_t timeline, ticket until) -> void {
    for (std::size_t g = 0; g < c_->groups.size(); ++g) { c_->groups[g].commit(r.tables[g], next, timeline, until); }
  }
  /// Targets of copies are the sequence's own, their sources are given up.
  auto leave_sources(record_type& r, std::span<copy_note> copies, std::uint32_t timeline, ticket until) -> void {
    if (copies.empty()) { return; }
    auto& c = *c_;
    adopt_sources(r, copies);
    for (auto const& copy : copies) {
      if (copy.group == copy_note::unit) { continue; }
      auto& group = c.groups[copy.group];
      group.own(r.tables[copy.group].blocks[copy.at], timeline, until);
      group.leave_source(r.tables[copy.group], copy.source, r.path.pinned() * group.per_unit() > copy.at, r.last);
    }
    for (auto const& copy : copies) {
      if (copy.group != copy_note::unit) { continue; }
      c.pins.release(c.index, r.path.leave_source(c.index, copy.at, unit_id{copy.source.value()}), r.last);
    }
  }
  /// A source that its writer has published since the launch is held by a pin now: the copy steps aside while that settles.
  auto adopt_sources(record_type& r, std::span<copy_note> copies) -> void {
    auto& c = *c_;
    auto const whole = copies.front();
    if (whole.group != copy_note::unit || whole.at < r.path.pinned() ||
        !c.index.published(unit_id{whole.source.value()})) {
      return;
    }
    auto const step_aside = [&] {
      for (auto& copy : copies) {
        if (copy.group == copy_note::unit) {
          copy.source = block_id{r.path.swap(copy.at, unit_id{copy.source.value()}).value()};
        } else {
          std::swap(r.tables[copy.group].blocks[copy.at], copy.source);
        }
      }
    };
    step_aside();
    settle(c, r, false);
    step_aside();
  }
  /// Undoes what the launch did for \p r.
  auto roll_back(record_type& r, std::uint32_t tokens, std::span<copy_note> copies) -> void {
    auto& c = *c_;
    auto const next = append_request{.committed = r.at.committed,
                                     .tokens = tokens,
                                     .skips = r.at.skips(),
                                     .owns_tail = r.path.owns_tail(),
                                     .copies_unit = !copies.empty()};
    for (std::size_t g = 0; g < c.groups.size(); ++g) { c.groups[g].note_writes(r.tables[g], next, r.last); }
    auto unit_source = unit_id::none();
    for (auto const& copy : copies) {
      if (copy.group == copy_note::unit) {
        unit_source = unit_id{copy.source.value()};
      } else {
        c.groups[copy.group].undo_copy(r.tables[copy.group], copy.at, copy.source, r.last);
      }
    }
    for (std::size_t g = 0; g < c.groups.size(); ++g) {
      auto const before = std::max(r.at.committed, r.tables[g].skip_until);
      c.groups[g].give_back(r.tables[g], c.groups[g].geometry().blocks(before), r.last);
    }
    r.path.give_back(c.index, c.unit(), r.at, unit_source);
  }
  /// Positions that the index had already, while windows had given them up, are computed again: their blocks hang on the
  /// units again. Not so if they were computed without what the window shows: then they are not exact.
  auto arrive_again(record_type& r, std::uint32_t before) -> void {
    auto& c = *c_;
    if (r.reuse.exact_from > 0 || r.path.publish_end() == 0 || r.epoch != c.epoch) { return; }
    auto const end = c.unit().index(std::min({r.at.committed, r.at.known, r.at.skip_until}));
    for (auto u = c.unit().index(before); u < std::min(end, r.path.pinned()); ++u) {
      arrive(c, r, u, unit_origin::pinned);
    }
  }
  /// Counts what the step did, and moves the request on in its life cycle.
  auto account(record_type& r, bool loads, std::span<copy_note> copies) -> void {
    auto& c = *c_;
    auto const copied =
        std::count_if(copies.begin(), copies.end(), [](auto const& copy) { return copy.group == copy_note::unit; });
    commit_event event{.scope = r.scope,
                       .sequence = r.number,
                       .first = !r.counted,
                       .resumed = r.resumed,
                       .length = token_count{r.at.committed},
                       .copied = block_count{static_cast<std::uint32_t>(copied)}};
    if (!r.counted) {
      event.hit = token_count{r.hit};
      r.covered = r.hit;
      r.counted = true;
    }
    auto const from = r.covered;
    r.covered = std::max(r.covered, r.at.committed); // what is computed again after a cut counts once
    auto const n = r.covered - from;
    auto const of_prompt = from < r.prompt ? std::min(n, r.prompt - from) : 0U;
    (loads ? event.loaded : event.computed_prompt) = token_count{of_prompt};
    event.computed_output = token_count{n - of_prompt};
    auto const why = r.at.committed < r.prompt ? request_event::start : request_event::decode;
    if (auto const to = Policies::request_states::table.next(r.phase, why)) { r.phase = *to; }
    c.stats.on_commit(event);
    c.observe([&](auto& o) { o.on_commit(event); });
  }

  core_type* c_;
};
/// \endcond

} // namespace quire::detail
