// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The single-owner core of `kv_cache`: no lock, no handle types, records by pointer.
///
/// ```text
///   admit ─▶ record ─▶ plan ──▶ launch ──▶ commit ─▶ … ─▶ end ─▶ (draining) ─▶ unused
///                       │  victims claimed   │ final       publish, statistics
///                       └─ drop: all restored└─ drop: blocks retire under a ticket issued then
/// ```

#include <quire/block/block_pool.hpp>
#include <quire/block/immediate_fence.hpp>
#include <quire/block/limbo.hpp>
#include <quire/cache/admission.hpp>
#include <quire/cache/cache_options.hpp>
#include <quire/cache/detail/late_pins.hpp>
#include <quire/cache/detail/record.hpp>
#include <quire/cache/detail/step_slot.hpp>
#include <quire/cache/refusal.hpp>
#include <quire/cache/requests.hpp>
#include <quire/cache/scope_table.hpp>
#include <quire/core/checked.hpp>
#include <quire/core/config_error.hpp>
#include <quire/core/contract.hpp>
#include <quire/core/errc.hpp>
#include <quire/core/expected.hpp>
#include <quire/core/types.hpp>
#include <quire/identity/compute_identity.hpp>
#include <quire/identity/digest_scheme.hpp>
#include <quire/identity/scope_key.hpp>
#include <quire/identity/sharing_domain.hpp>
#include <quire/observe/admit_event.hpp>
#include <quire/observe/cache_statistics.hpp>
#include <quire/observe/commit_event.hpp>
#include <quire/observe/counting_observer.hpp>
#include <quire/observe/event_ids.hpp>
#include <quire/observe/evict_event.hpp>
#include <quire/observe/null_observer.hpp>
#include <quire/observe/publish_event.hpp>
#include <quire/observe/refuse_event.hpp>
#include <quire/observe/release_event.hpp>
#include <quire/prefix/prefix_match.hpp>
#include <quire/prefix/prefix_pin.hpp>
#include <quire/sequence/block_geometry.hpp>
#include <quire/sequence/sequence_ops.hpp>
#include <quire/view/action.hpp>

#include <boost/intrusive/list.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
template <class Policies>
class cache_core {
public:
  using digest_type = typename Policies::digest;
  using index_type = typename Policies::template index<typename Policies::eviction, digest_type>;
  using pool_type = block_pool<typename Policies::allocation, typename Policies::block_states>;
  using fence_type = typename Policies::fence;
  using phase_type = typename Policies::request_states::state;
  using request_event_type = typename Policies::request_states::event;
  using block_event_type = typename pool_type::event_type;
  using observer_type = typename Policies::observer;
  static constexpr std::size_t timelines = fence_type::timelines;
  using record_type = record<phase_type, timelines>;
  using slot_type = step_slot<record_type>;
  static constexpr bool immediate = std::is_same_v<fence_type, immediate_fence>;
  static constexpr bool silent = std::is_same_v<observer_type, null_observer>; // nobody wants an event per step

  cache_core(block_count blocks, cache_options const& options, digest_type digest,
             typename Policies::admission admission, observer_type observer = {})
      : options_{options}, geometry_{options.block_tokens}, pool_{blocks}, index_{blocks, options.block_tokens, digest},
        ops_{pool_, index_, geometry_}, limbo_{immediate ? block_count{0} : blocks}, admission_{std::move(admission)},
        observer_{std::move(observer)}, records_(at_least_one(options.max_sequences.value(), "max_sequences")) {
    at_least_one(options.max_rows.value(), "max_rows");
    for (auto i = at_least_one(options.batch_buffers, "batch_buffers"); i > 0; --i) {
      slots_.emplace_back(options.max_rows.value(), geometry_);
      slots_.back().items.reserve(options.max_rows.value());
    }
    fixed_columns_ = geometry_.blocks(options.max_context.value());
    for (auto& record : records_) { unused_.push_back(record); }
  }
  cache_core(cache_core const&) = delete;
  auto operator=(cache_core const&) -> cache_core& = delete;
  ~cache_core() {
    unused_.clear();
    live_.clear();
    for (auto& list : draining_) { list.clear(); }
  }

  // --- admission ----------------------------------------------------------------------------------------------------
  [[nodiscard]] auto open_scope(compute_identity const& identity, sharing_domain const& domain) -> scope_number {
    return scopes_.open(scope_key{digest_scheme::of<digest_type>(), options_.block_tokens, identity, domain});
  }

  auto admit(admit_request const& request) -> expected<record_type*, refusal> {
    reclaim();
    auto const prompt = request.prompt.size();
    auto const refuse_with = [&](errc code, block_count needed = {}, block_count missing = {}) {
      auto const event = refuse_event{.scope = request.scope, .reason = code, .missing = missing};
      stats_.on_refuse(event);
      observe([&](auto& o) { o.on_refuse(event); });
      return tl::unexpected<refusal>{refusal{code, needed, block_count{promised_}, available(), pool_.capacity()}};
    };
    if (prompt == 0) { return refuse_with(errc::empty_prompt); }
    if (request.max_output.value() == 0) { return refuse_with(errc::zero_output); }
    auto const limit = prompt + request.max_output.value() + std::uint64_t{request.draft.value()};
    auto const most = std::uint64_t{pool_.capacity().value()} * geometry_.block_tokens();
    if (options_.max_context.value() != 0 && limit > options_.max_context.value()) {
      return refuse_with(errc::beyond_context);
    }
    if (limit > most || limit > max_positions) {
      return refuse_with(errc::never_fits,
                         block_count{static_cast<std::uint32_t>(std::min<std::uint64_t>(
                             ceil_div<std::uint64_t>(limit, geometry_.block_tokens()), 0xffff'ffffU))});
    }
    auto const root = scopes_.root(request.scope, epoch_, index_);
    if (unused_.empty()) { return refuse_with(errc::too_many_sequences); }

    auto& record = unused_.front();
    auto& s = record.state;
    auto const p = static_cast<std::uint32_t>(prompt);
    auto const budget = geometry_.blocks(static_cast<std::uint32_t>(limit));
    s.table.reserve(budget + 1);
    auto found = prefix_match{block_count{0}, root, 0};
    if (request.reuse == reuse_rule::read_and_write) {
      // Without skipped writes the last block is attached to copy its front: of a block of one token there is none.
      auto const last = !options_.skip_writes && geometry_.block_tokens() == 1 ? p - 1 : geometry_.index(p);
      found = index_.match(root, request.prompt, s.table.open(last));
    }
    auto const hit = found.blocks.value();
    auto const copies = !options_.skip_writes && hit * geometry_.block_tokens() == p ? 1U : 0U;
    if (budget + copies > pool_.capacity().value()) {
      s.table.shrink(0);
      return refuse_with(errc::never_fits, block_count{budget + copies});
    }
    auto const pins = index_.would_pin(found);
    auto const query =
        admission_query{block_count{geometry_.blocks(p) - hit + copies}, block_count{budget - hit + copies},
                        block_count{promised_}, available() - std::min(pins, evictable()), pool_.capacity()};
    if (!admission_.admits(query)) {
      s.table.shrink(0);
      auto const spare = query.available - std::min(query.available, query.promised);
      return refuse_with(errc::no_blocks, query.in_total, query.in_total - std::min(spare, query.in_total));
    }

    ops_.attach(s, found, p, options_.skip_writes);
    s.publishes = request.reuse != reuse_rule::none;
    s.writer = false;
    start(record, p, static_cast<std::uint32_t>(limit), request.scope);
    record.resumed = request.resumed;
    record.attached = s.committed;
    record.matched = hit;
    record.ready = all_quiet() ? s.committed : 0;
    if (hit > 0) { record.last = latest_; } // what it found may be anybody's work in flight
    stats_.on_admit(admitted(record));
    observe([&](auto& o) { o.on_admit(admitted(record)); });
    return &record;
  }

  /// A new sequence with the first \p length positions of \p parent.
  auto fork(record_type& parent, std::uint32_t length) -> expected<record_type*> {
    reclaim();
    if (parent.plan_open) { return refuse(errc::plan_open); }
    if (length > parent.state.committed) { return refuse(errc::out_of_range); }
    if (unused_.empty()) { return refuse(errc::too_many_sequences); }
    auto& child = unused_.front();
    child.state.table.reserve(geometry_.blocks(parent.limit) + 1);
    ops_.fork(parent.state, child.state, length);
    child.limit = parent.limit;
    auto const owed = owes(child);
    if (!admission_.admits({block_count{ops_.must_copy(child.state) ? 1U : 0U}, block_count{owed},
                            block_count{promised_}, available(), pool_.capacity()})) {
      ops_.drop(child.state, [](block_id) {}); // the parent holds every block: nothing retires
      return refuse(errc::no_blocks);
    }
    start(child, parent.prompt, parent.limit, parent.scope);
    child.epoch = parent.epoch;
    child.phase = parent.phase;
    child.last = parent.last;
    child.ready = std::min(parent.ready, length);
    child.counted = true;
    child.covered = std::max(length, parent.prompt);
    child.attached = length;
    child.matched = std::min(parent.matched, child.state.table.size());
    return &child;
  }

  // --- steps --------------------------------------------------------------------------------------------------------
  /// \p item_of(i) gives {record or nullptr, tokens wanted, token ids or empty} of item i.
  template <class ItemOf>
  auto plan(std::size_t count, ItemOf item_of, timeline_id timeline) -> expected<slot_type*> {
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
    guard.disarm();
    return slot;
  }

  auto launch(slot_type& slot) -> std::span<action const> {
    QUIRE_EXPECTS(slot.phase == step_phase::planned);
    index_.confirm();
    for (auto const block : slot.claimed) { pool_.reuse(block); }
    if (!slot.claimed.empty()) {
      auto const event =
          evict_event{.group = group_id{0}, .blocks = block_count{static_cast<std::uint32_t>(slot.claimed.size())}};
      stats_.on_evict(event);
      observe([&](auto& o) { o.on_evict(event); });
    }
    slot.phase = step_phase::launched;
    open_ = nullptr;
    return slot.actions;
  }

  /// \returns false if a sequence of the step ended while it was open.
  auto commit(slot_type& slot, ticket until) -> bool {
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
        if (item.fresh) { ops_.commit_block(record.state); }
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
        ops_.roll_back(record.state, [&](block_id block) { discard(block, retire); });
        finish(record);
        continue;
      }
      auto const copied = static_cast<bool>(record.state.copy_source);
      auto const retire = retire_after(record);
      if (copied) { own_from(record, geometry_.index(record.state.committed)); }
      auto const may_publish = record.epoch == epoch_;
      if (!may_publish) { record.state.publishes = false; }
      auto const settled = ops_.commit(record.state, tokens, retire);
      if (record.state.publishes && settled.published + settled.duplicates > 0) { published(record, settled); }
      committed(record, copied);
      open_lane(record);
    }
    if (decoded > 0) { stats_.on_commit({.computed_output = token_count{decoded}}); }
    return all;
  }

  /// Drops an open plan: before launch the state equals the state before `plan`; after it, blocks retire under a ticket.
  auto drop(slot_type& slot) -> void {
    auto const launched = slot.phase == step_phase::launched;
    QUIRE_EXPECTS(launched || slot.phase == step_phase::planned);
    auto const until = launched ? fence_.issue(slot.timeline) : ticket{};
    auto const retire = retirement{this, slot.timeline, until, 0};
    for (auto i = slot.items.size(); i-- > 0;) {
      auto& item = slot.items[i];
      auto& record = *item.record;
      ops_.roll_back(record.state, [&](block_id block) {
        if (pool_.state(block) != pool_type::state_type::condemned) { discard(block, retire); }
      });
      record.plan_open = false;
      if (item.lane == 0 || item.fresh) { promise(record, record.ending ? 0 : record.owed); }
      if (item.lane == 0) { record.state.skip_write = record.state.skip_write || record.diverges; }
      open_lane(record);
      if (launched) { note_ticket(record, slot.timeline, until); }
    }
    if (!launched) {
      index_.restore([&](block_id block) {
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
    slot.rows.distrust();
    slot.items.clear();
    slot.phase = launched ? step_phase::in_flight : step_phase::idle;
    slot.until = until;
  }

  // --- sequences ----------------------------------------------------------------------------------------------------
  auto truncate(record_type& record, std::uint32_t length) -> expected<void> {
    if (record.plan_open) { return refuse(errc::plan_open); }
    if (length > record.state.committed) { return refuse(errc::out_of_range); }
    if (length == record.state.committed) { return {}; }
    reserve_retirement();
    // What was shared is promised again, beside what comes back.
    auto const retire = retire_after(record);
    auto const settled = record.outstanding + ops_.would_free(record.state, length, retire.at_once());
    auto const owed =
        geometry_.blocks(record.limit) - geometry_.blocks(length) + (ops_.would_copy(record.state, length) ? 1U : 0U);
    auto const query = admission_query{block_count{0}, block_count{owed - std::min(owed, settled)},
                                       block_count{promised_}, available(), pool_.capacity()};
    if (owed > settled && !admission_.admits(query)) { return refuse(errc::no_blocks); }
    cut(record, length, retire);
    promise(record, owes(record));
    open_lane(record);
    return {};
  }
  auto resolve(record_type& record, std::span<token_id const> tokens) -> expected<void> {
    if (record.plan_open) { return refuse(errc::plan_open); }
    if (record.state.known + tokens.size() > record.state.committed) { return refuse(errc::out_of_range); }
    if (record.epoch != epoch_) { record.state.publishes = false; }
    auto const settled = ops_.resolve(record.state, tokens);
    if (settled.published + settled.duplicates > 0) { published(record, settled); }
    open_lane(record);
    return {};
  }
  /// Ends a sequence for good; its handle is used up. \p why must be legal in the life cycle.
  auto end(record_type& record, request_event_type why) -> expected<void> {
    auto const to = Policies::request_states::table.next(record.phase, why);
    if (!to) { return refuse(errc::illegal_transition); }
    record.phase = *to;
    ++record.generation;
    promise(record, 0);
    auto const event =
        release_event{.scope = record.scope,
                      .sequence = record.number,
                      .length = token_count{record.state.committed},
                      .returned = block_count{record.state.table.size() - record.state.pinned + record.state.twins},
                      .kept = block_count{record.state.pinned - record.state.twins},
                      .preempted = why == request_event_type::preempt};
    stats_.on_release(event);
    observe([&](auto& o) { o.on_release(event); });
    if (record.plan_open) {
      record.ending = true;
    } else {
      finish(record);
    }
    return {};
  }

  /// Frees what waited for tickets that are reached now.
  auto reclaim() -> void {
    if constexpr (!immediate) {
      drain_limbo();
      for (std::uint32_t t = 0; t < timelines; ++t) {
        auto& list = draining_[t];
        while (!list.empty() && reached(timeline_id{t}, list.front().last[t])) {
          auto& record = list.front();
          list.pop_front();
          live_.push_back(record);
          finish(record);
        }
      }
    }
  }
  /// New weights: everything cached becomes unreachable at once. O(1), cannot fail.
  auto advance_epoch(running_requests rule) noexcept -> void {
    ++epoch_;
    restart_below_ = rule == running_requests::must_restart ? epoch_ : restart_below_;
  }

  // --- figures ------------------------------------------------------------------------------------------------------
  [[nodiscard]] auto evictable() const noexcept -> block_count {
    return const_cast<index_type&>(index_).eviction().victim() ? index_.evictable() : block_count{0};
  }
  [[nodiscard]] auto available() const noexcept -> block_count { return pool_.free_blocks() + evictable(); }
  [[nodiscard]] auto promised() const noexcept -> block_count { return block_count{promised_}; }
  [[nodiscard]] auto waiting() const noexcept -> block_count { return limbo_.size(); }
  [[nodiscard]] auto lost() const noexcept -> block_count { return block_count{lost_}; }
  [[nodiscard]] auto statistics() const noexcept -> cache_statistics { return stats_.statistics(); }
  [[nodiscard]] auto pool() const noexcept -> pool_type const& { return pool_; }
  [[nodiscard]] auto index() noexcept -> index_type& { return index_; }
  [[nodiscard]] auto index() const noexcept -> index_type const& { return index_; }
  [[nodiscard]] auto fence() noexcept -> fence_type& { return fence_; }
  [[nodiscard]] auto observer() noexcept -> observer_type& { return observer_; }
  [[nodiscard]] auto geometry() const noexcept -> block_geometry const& { return geometry_; }
  [[nodiscard]] auto options() const noexcept -> cache_options const& { return options_; }
  [[nodiscard]] auto live() const noexcept -> std::size_t { return live_.size(); }
  [[nodiscard]] auto draining() const noexcept -> std::size_t {
    std::size_t n = 0;
    for (auto const& list : draining_) { n += list.size(); }
    return n;
  }
  [[nodiscard]] auto slot_at(std::size_t i) noexcept -> slot_type& { return slots_[i]; }
  [[nodiscard]] auto slot_number(slot_type const& slot) const noexcept -> std::size_t {
    std::size_t i = 0;
    while (&slots_[i] != &slot) { ++i; }
    return i;
  }

  // --- maintenance, in cache_maintenance.hpp and cache_audit.hpp ----------------------------------------------------
  [[nodiscard]] auto audit() const -> std::string;
  auto abandon(timeline_id timeline) -> expected<block_count>;
  auto compact() -> expected<std::vector<action>>;

private:
  using list_type = boost::intrusive::list<
      record_type, boost::intrusive::member_hook<record_type, decltype(record_type::hook), &record_type::hook>>;
  static constexpr std::uint64_t max_positions = 0x7fff'ffffU; // the views carry positions as int32

  static auto at_least_one(std::uint32_t n, char const* what) -> std::uint32_t {
    if (n == 0) { throw config_error{std::string{"kv_cache: "} + what + " is 0, it must be at least 1"}; }
    return n;
  }

  /// Drops the plan at hand if building it throws.
  struct undo {
    cache_core* core;
    slot_type* slot;
    auto disarm() noexcept -> void { slot = nullptr; }
    ~undo() {
      if (slot != nullptr) { core->drop(*slot); }
    }
  };

  template <class F>
  auto observe(F f) noexcept -> void {
    if constexpr (!silent) { f(observer_); }
  }

  [[nodiscard]] auto movable(block_id block) const -> bool {
    using states = typename pool_type::state_type;
    auto const state = pool_.state(block);
    return state == states::private_ || state == states::published;
  }
  auto start(record_type& record, std::uint32_t prompt, std::uint32_t limit, scope_number scope) -> void {
    unused_.erase(unused_.iterator_to(record));
    live_.push_back(record);
    record.limit = limit;
    record.outstanding = 0;
    record.prompt = prompt;
    record.attached = record.covered = record.ready = 0;
    record.epoch = epoch_;
    record.scope = scope;
    record.number = sequence_number{++numbers_};
    record.last = {};
    record.plan_open = record.ending = record.counted = record.resumed = false;
    record.phase = phase_type::waiting;
    record.lane = 0;
    record.at_block = false;
    record.stamp = ++stamps_;
    promise(record, owes(record));
    columns_ = std::max(columns_, geometry_.blocks(limit));
  }
  [[nodiscard]] auto owes(record_type const& record) const noexcept -> std::uint32_t {
    auto const most = geometry_.blocks(record.limit);
    auto const held = record.state.table.size();
    return (most > held ? most - held : 0) + (ops_.must_copy(record.state) ? 1U : 0U);
  }
  auto promise(record_type& record, std::uint32_t blocks) noexcept -> void {
    promised_ = promised_ - record.outstanding + blocks;
    record.outstanding = blocks;
  }

  auto refused(record_type const& record, errc why) noexcept -> void {
    auto const event = refuse_event{.scope = record.scope, .sequence = record.number, .reason = why};
    stats_.on_refuse(event);
    observe([&](auto& o) { o.on_refuse(event); });
  }

  /// How far \p record may go on without anything but writing: inside its own last block, decoding, within its budget.
  auto open_lane(record_type& record) noexcept -> void {
    auto const& s = record.state;
    auto const j = geometry_.index(s.committed);
    auto const offset = geometry_.offset(s.committed);
    record.lane = 0;
    record.at_block = false;
    if (s.known != s.committed || !record.counted || record.covered < record.prompt || record.covered > s.committed) {
      return;
    }
    if (j >= s.table.size()) {
      record.at_block = record.limit > s.committed && options_.scrub != scrub_rule::on_reuse;
      return;
    }
    if (offset == 0 || j < s.pinned || !s.writer || s.skip_write) { return; }
    record.lane = std::min(geometry_.block_tokens() - offset, record.limit - s.committed);
    record.lane_blocks = s.table.size();
    record.lane_slot = s.table.slot(geometry_, token_pos{s.committed});
  }
  /// Adds items from \p i on while they need nothing but the next slot of a block that their row shows already; returns the
  /// first that needs more. Nothing is called in this loop, so that what it writes through stays in registers.
  /// \pre there is room for the items and their ids
  template <class ItemOf>
  auto add_lanes(slot_type& slot, std::size_t i, std::size_t count, ItemOf const& item_of, std::uint32_t& rows)
      -> std::size_t {
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
      if (!out.shows(k, record.stamp, record.lane_blocks)) { break; }
      results[k] = {errc::ok, row_id{rows + k}};
      items[k] = {&record, 1, 0, record.lane};
      ids[k] = item.ids.front();
      record.lane = 0;
      record.plan_open = true;
      s.reserved = s.committed + 1;
    }
    for (std::uint32_t j = 0; j < k; ++j) { // a loop of its own: together they need more registers than there are
      auto& record = *items[j].record;
      out.write(j, record.state.committed, record.lane_slot);
      if constexpr (timelines > 1) { wait_for_others(slot, record); }
    }
    slot.items.add(k);
    slot.ids.add(k);
    slot.rows.take(k);
    rows += k;
    return i;
  }
  template <class Item>
  [[nodiscard]] auto decodes(record_type const& record, Item const& item) const noexcept -> bool {
    return item.ids.size() == 1 && !item.loaded && record.epoch >= restart_below_;
  }
  /// The step of a decoding sequence whose last block is full: one block, one slot. False if that takes more.
  /// \pre there is room for the item and its id
  auto add_next_block(slot_type& slot, record_type& record, token_id id) -> bool {
    auto& s = record.state;
    if (record.plan_open) { return false; }
    auto block = pool_.try_allocate();
    if (!block) {
      if (evictable() == block_count{}) { return false; }
      slot.fresh.resize(1);
      take(slot, 1);
      block = slot.fresh.front();
    }
    note_lane(record);
    *slot.items.end_place() = {&record, 1, 1, std::min(geometry_.block_tokens(), record.limit - s.committed)};
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
    slot.rows.add(record.stamp, s.table, s.committed, record.lane_slot);
    return true;
  }
  auto commit_in_lane(record_type& record, std::uint32_t left, token_id id) -> void {
    auto& s = record.state;
    index_.token_at(record.lane_slot++) = id;
    s.known = s.committed = s.reserved;
    record.lane = left;
    if (left == 0) { leave_lane(record); }
  }
  /// Notes what a lane has added; its commits counted it already.
  auto note_lane(record_type& record) noexcept -> void {
    // A branch: gcc makes a vector instruction of std::max here and waits for a failed store forwarding.
    if (record.counted && record.covered < record.state.committed) { record.covered = record.state.committed; }
  }
  /// The last block is full, or the budget is used up.
  [[gnu::noinline]] auto leave_lane(record_type& record) -> void {
    note_lane(record);
    if (record.epoch != epoch_) { record.state.publishes = false; }
    auto const settled = ops_.settle(record.state);
    if (settled.published + settled.duplicates > 0) { published(record, settled); }
    open_lane(record);
  }

  auto add_item(slot_type& slot, record_type& record, std::uint32_t q, std::span<token_id const> ids) -> errc {
    auto& s = record.state;
    if (q == 0) { return errc::zero_tokens; }
    if (record.plan_open) {
      auto const here =
          std::any_of(slot.items.begin(), slot.items.end(), [&](auto const& item) { return item.record == &record; });
      return here ? errc::duplicate_item : errc::plan_open;
    }
    if (record.epoch < restart_below_) { return errc::stale_epoch; }
    if (std::uint64_t{s.committed} + q > record.limit) { return errc::over_budget; }
    if (!ids.empty() && s.known != s.committed) { return errc::unresolved; }
    // A skipped write is right for the token that is stored there; another one is written, into a copy.
    auto const diverges =
        s.skip_write && !ids.empty() && ids.front() != index_.token_at(s.table.slot(geometry_, token_pos{s.committed}));
    if (diverges) { s.skip_write = false; }
    auto const need = ops_.blocks_for(s, q);
    if (need > 0) {
      auto const why = !Policies::copy::allowed && ops_.must_copy(s) ? errc::not_supported
                       : need > available().value()                  ? errc::no_blocks
                                                                     : errc::ok;
      if (why != errc::ok) {
        s.skip_write = s.skip_write || diverges;
        return why;
      }
    }
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
      reserve_with_blocks(slot, record, q, need);
    } else {
      ops_.reserve(s, q, {});
    }
    if constexpr (timelines > 1) { wait_for_others(slot, record); }
    slot.rows.add(record.stamp, s.table, s.committed, q, s.skip_write);
    return errc::ok;
  }
  [[gnu::noinline]] auto reserve_with_blocks(slot_type& slot, record_type& record, std::uint32_t q, std::uint32_t need)
      -> void {
    auto& s = record.state;
    slot.fresh.resize(need);
    s.table.reserve(s.table.size() + need);
    take(slot, need);
    ops_.reserve(s, q, slot.fresh);
    promise(record, record.outstanding - std::min(record.outstanding, need));
    if (s.copy_source) { record.stamp = ++stamps_; }
    add_actions(slot, record, need, s.committed);
  }

  /// Fills `slot.fresh` with \p need blocks: free ones first, then victims. \pre that many are available
  auto take(slot_type& slot, std::uint32_t need) -> void {
    auto const fresh = std::span{slot.fresh};
    auto const free = std::min(need, pool_.free_blocks().value());
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
  auto add_actions(slot_type& slot, record_type const& record, std::uint32_t need, std::uint32_t from) -> void {
    auto const& s = record.state;
    if (options_.scrub == scrub_rule::on_reuse) {
      for (std::uint32_t i = 0; i < need; ++i) {
        slot.actions.push_back(action::scrub_block(group_id{0}, slot.fresh[i]));
      }
    }
    if (s.copy_source && geometry_.offset(from) > 0) {
      slot.actions.push_back(Policies::copy::copy(group_id{0}, s.copy_source, s.table[geometry_.index(from)],
                                                  token_count{geometry_.offset(from)}, options_.block_tokens));
    }
  }
  /// Content that another timeline may still be writing is waited for before this step reads it.
  auto wait_for_others(slot_type& slot, record_type const& record) -> void {
    for (std::uint32_t t = 0; t < timelines; ++t) {
      auto const until = last_use(record, t);
      if (t == slot.timeline.value() || reached(timeline_id{t}, until)) { continue; }
      auto const wait = action::wait_for(timeline_id{t}, until);
      if (std::find(slot.actions.begin(), slot.actions.end(), wait) == slot.actions.end()) {
        slot.actions.insert(slot.actions.begin(), wait);
      }
    }
  }

  // --- tickets ------------------------------------------------------------------------------------------------------
  [[nodiscard]] auto reached(timeline_id t, ticket k) const noexcept -> bool {
    return k <= abandoned_[t.value()] || fence_.reached(t, k);
  }
  [[nodiscard]] auto all_quiet() const noexcept -> bool {
    for (std::uint32_t t = 0; t < timelines; ++t) {
      if (!reached(timeline_id{t}, latest_[t])) { return false; }
    }
    return true;
  }
  auto note_ticket(record_type& record, timeline_id t, ticket until) noexcept -> void {
    if constexpr (!immediate) {
      if (reached_everywhere(record)) { record.ready = record.state.committed; }
      record.last[t.value()] = std::max(record.last[t.value()], until);
      latest_[t.value()] = std::max(latest_[t.value()], until);
    }
  }
  [[nodiscard]] auto reached_everywhere(record_type const& record) const noexcept -> bool {
    for (std::uint32_t t = 0; t < timelines; ++t) {
      if (!reached(timeline_id{t}, record.last[t])) { return false; }
    }
    return true;
  }
  /// The last work in flight that may touch what \p record holds. Private blocks of forks are not only its own: another
  /// holder may have left while its steps were in flight, so that nobody's record names them.
  [[nodiscard]] auto last_use(record_type const& record, std::uint32_t t) const noexcept -> ticket {
    return record.state.forked ? latest_[t] : record.last[t];
  }
  /// Frees blocks in state `retiring`, and releases pins, as soon as \p until is reached on \p timeline.
  struct retirement {
    cache_core* core;
    timeline_id timeline;
    ticket until;
    std::uint32_t unready; // [blocks] at the end of a pin that its sequence wrote and that may not be finished
    [[nodiscard]] auto at_once() const noexcept -> bool { return immediate || core->reached(timeline, until); }
    auto operator()(block_id block) const -> void {
      if (at_once()) {
        core->pool_.reclaim(block);
      } else {
        core->limbo_.retire(block, timeline, until);
      }
    }
    auto operator()(prefix_pin&& pin) const -> void {
      if (at_once()) {
        core->index_.release(std::move(pin));
      } else {
        core->late_pins_[timeline.value()].push(std::move(pin), until, unready);
      }
    }
  };
  /// The same for what the last step of \p record was the last to use. It waits for the timelines in their order, each time
  /// for the latest ticket, because tickets of a limbo do not decrease.
  [[nodiscard]] auto retire_after(record_type const& record) noexcept -> retirement {
    auto const pinned = record.state.pinned;
    for (std::uint32_t t = 0; t < timelines; ++t) {
      if (!reached(timeline_id{t}, last_use(record, t))) {
        return {this, timeline_id{t}, latest_[t], pinned - std::min(pinned, first_unready(record))};
      }
    }
    return {this, timeline_id{0}, ticket{}, 0};
  }
  /// First block of its table that \p record wrote and that may not be finished.
  [[nodiscard]] auto first_unready(record_type const& record) const noexcept -> std::uint32_t {
    return std::max(geometry_.index(record.ready), record.matched);
  }
  /// From block \p j on \p record has written its table itself, in work that is in flight.
  auto own_from(record_type& record, std::uint32_t j) const noexcept -> void {
    record.matched = std::min(record.matched, j);
    record.ready = std::min(record.ready, j * geometry_.block_tokens());
  }
  /// Cuts \p record back. Promises and lane are the caller's business.
  template <class Retire>
  auto cut(record_type& record, std::uint32_t length, Retire retire) -> void {
    note_lane(record);
    ops_.truncate(record.state, length, retire);
    record.stamp = ++stamps_;
    record.ready = std::min(record.ready, length);
    record.matched = std::min(record.matched, geometry_.blocks(length));
  }
  /// Room for what every step in flight, and the operation at hand, may retire: blocks under a ticket each, a pin per row and per sequence.
  /// \throws std::bad_alloc; nothing has changed then.
  auto reserve_retirement() -> void {
    if constexpr (!immediate) {
      limbo_.reserve(timelines + slots_.size());
      for (auto& pins : late_pins_) { pins.reserve(slots_.size() * options_.max_rows.value() + records_.size() + 1); }
    }
  }
  auto drain_limbo() -> void {
    if (limbo_.size() == block_count{} &&
        std::all_of(late_pins_.begin(), late_pins_.end(), [](auto const& pins) { return pins.empty(); })) {
      return;
    }
    reserve_retirement();
    for (std::uint32_t t = 0; t < timelines; ++t) {
      auto const here = [&](ticket k) { return reached(timeline_id{t}, k); };
      limbo_.drain(timeline_id{t}, here, [&](block_id block) { after(t, 0)(block); });
      late_pins_[t].drain(here, [&](prefix_pin&& pin, std::uint32_t unready) { after(t, unready)(std::move(pin)); });
    }
  }
  /// What waited for timeline \p t waits for the later ones too, which may have used it as well.
  [[nodiscard]] auto after(std::uint32_t t, std::uint32_t unready) -> retirement {
    for (auto later = t + 1; later < timelines; ++later) {
      if (reached(timeline_id{later}, latest_[later])) { continue; }
      return {this, timeline_id{later}, latest_[later], unready};
    }
    return {this, timeline_id{0}, ticket{}, 0};
  }
  template <class Retire>
  auto discard(block_id block, Retire const& retire) -> void {
    if (pool_.release_and_retire(block)) { retire(block); }
  }
  /// Gives back what an ended record holds, now or when in-flight work is done with it.
  auto finish(record_type& record) -> void {
    record.ending = false;
    live_.erase(live_.iterator_to(record));
    for (std::uint32_t t = 0; t < timelines; ++t) {
      if (!immediate && !reached(timeline_id{t}, record.last[t])) {
        draining_[t].push_back(record);
        return;
      }
    }
    if (!immediate && record.state.forked) {
      ops_.drop(record.state, retire_after(record)); // another holder's step may still read what this one gives up
    } else {
      ops_.drop(record.state);
    }
    if (auto const to = Policies::request_states::table.next(record.phase, request_event_type::release)) {
      record.phase = *to;
    }
    unused_.push_front(record);
  }
  [[nodiscard]] auto idle_slot() noexcept -> slot_type* {
    for (auto& slot : slots_) {
      if (slot.phase == step_phase::in_flight && reached(slot.timeline, slot.until)) { slot.phase = step_phase::idle; }
      if (slot.phase == step_phase::idle) { return &slot; }
    }
    return nullptr;
  }

  // --- accounts -----------------------------------------------------------------------------------------------------
  [[nodiscard]] auto admitted(record_type const& record) const noexcept -> admit_event {
    return {.scope = record.scope,
            .sequence = record.number,
            .prompt = token_count{record.prompt},
            .attached = token_count{record.attached},
            .promised = block_count{record.outstanding},
            .resumed = record.resumed};
  }
  auto published(record_type const& record, settle_result const& settled) noexcept -> void {
    auto const event = publish_event{.scope = record.scope,
                                     .sequence = record.number,
                                     .blocks = block_count{settled.published},
                                     .duplicates = block_count{settled.duplicates}};
    stats_.on_publish(event);
    observe([&](auto& o) { o.on_publish(event); });
  }
  /// Positions that no earlier commit counted: what is computed again after a truncation counts once.
  auto grown(record_type& record) noexcept -> std::uint32_t {
    auto const before = record.covered;
    record.covered = std::max(record.covered, record.state.committed);
    return record.covered - before;
  }
  auto committed(record_type& record, bool copied) -> void {
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

  cache_options options_;
  block_geometry geometry_;
  pool_type pool_;
  index_type index_;
  sequence_ops<pool_type, index_type> ops_;
  limbo<timelines> limbo_;
  fence_type fence_{};
  [[no_unique_address]] typename Policies::admission admission_;
  [[no_unique_address]] observer_type observer_{};
  counting_observer stats_;
  scope_table scopes_;
  std::vector<record_type> records_;
  list_type unused_;
  list_type live_; // oldest first
  std::array<list_type, timelines> draining_;
  std::array<late_pins, timelines> late_pins_;
  std::deque<slot_type> slots_;
  slot_type* open_ = nullptr; // planned, not launched
  std::array<ticket, timelines> latest_{};
  std::array<ticket, timelines> abandoned_{};
  std::uint64_t serials_ = 0;
  std::uint64_t numbers_ = 0;
  std::uint64_t stamps_ = 0;
  std::uint32_t promised_ = 0;
  std::uint32_t columns_ = 1;       // blocks of the longest budget admitted so far
  std::uint32_t fixed_columns_ = 0; // of `max_context`
  std::uint32_t epoch_ = 0;
  std::uint32_t restart_below_ = 0;
  std::uint32_t lost_ = 0;
};
/// \endcond

} // namespace quire::detail
