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
#include <quire/cache/detail/late_holds.hpp>
#include <quire/cache/detail/late_pins.hpp>
#include <quire/cache/detail/record.hpp>
#include <quire/cache/detail/step_slot.hpp>
#include <quire/cache/detail/window_group.hpp>
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
#include <optional>
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
  using window_type = window_group<pool_type>;
  static constexpr bool immediate = std::is_same_v<fence_type, immediate_fence>;
  static constexpr bool silent = std::is_same_v<observer_type, null_observer>; // nobody wants an event per step

  cache_core(block_count blocks, cache_options const& options, digest_type digest,
             typename Policies::admission admission, observer_type observer = {})
      : options_{options}, geometry_{options.block_tokens}, pool_{blocks}, index_{blocks, options.block_tokens, digest},
        ops_{pool_, index_, geometry_}, limbo_{immediate ? block_count{0} : blocks}, admission_{std::move(admission)},
        observer_{std::move(observer)}, records_(at_least_one(options.max_sequences.value(), "max_sequences")) {
    at_least_one(options.max_rows.value(), "max_rows");
    add_groups(blocks);
    for (auto i = at_least_one(options.batch_buffers, "batch_buffers"); i > 0; --i) {
      slots_.emplace_back(options.max_rows.value(), geometry_);
      slots_.back().items.reserve(options.max_rows.value());
      for (auto const& window : windows_) {
        slots_.back().groups.push_back({batch_rows{options.max_rows.value(), window.geometry()}, {}});
      }
    }
    fixed_columns_ = geometry_.blocks(options.max_context.value());
    for (auto& record : records_) {
      record.groups.resize(windows_.size());
      unused_.push_back(record);
    }
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
    auto const refuse_with = [&](errc code, block_count needed = {}, block_count missing = {},
                                 window_type const* of = nullptr) {
      auto const event = refuse_event{.scope = request.scope, .reason = code, .missing = missing};
      stats_.on_refuse(event);
      observe([&](auto& o) { o.on_refuse(event); });
      if (of == nullptr) {
        return tl::unexpected<refusal>{refusal{code, needed, block_count{promised_}, available(), pool_.capacity()}};
      }
      return tl::unexpected<refusal>{
          refusal{code, needed, block_count{of->promised()}, of->available(), of->pool().capacity(), of->id()}};
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
    reserve_tables(record, static_cast<std::uint32_t>(limit));
    auto found = prefix_match{block_count{0}, root, 0};
    if (request.reuse == reuse_rule::read_and_write) {
      // Without skipped writes the last block is attached to copy its front: of a block of one token there is none.
      auto const last = !options_.skip_writes && geometry_.block_tokens() == 1 ? p - 1 : geometry_.index(p);
      found = index_.match(root, request.prompt, s.table.open(last));
      if (auto const found_tokens = found.blocks.value() * geometry_.block_tokens(); !windows_.empty()) {
        if (auto const whole = longest_hit(s.table.blocks(), p, found_tokens); whole != found_tokens) {
          found = index_.match(root, request.prompt.first(whole), s.table.open(geometry_.index(whole)));
        }
      }
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

    auto const found_tokens = hit * geometry_.block_tokens();
    for (auto const& window : windows_) {
      auto const most = window.budget(limit, append_limit(limit), request.draft.value());
      auto const attached = attached_to(window, p, found_tokens);
      auto const here = window.needed(p, attached);
      auto const wanted = admission_query{
          block_count{std::min(most, window.geometry().blocks(p)) -
                      std::min({here, most, window.geometry().blocks(p)})},
          block_count{most - std::min(here, most)}, block_count{window.promised()},
          window.available() - block_count{window.would_hold(s.table.blocks(), p, attached)}, window.pool().capacity()};
      auto const fits = most <= window.pool().capacity().value();
      if (fits && admission_.admits(wanted)) { continue; }
      s.table.shrink(0);
      auto const spare = wanted.available - std::min(wanted.available, wanted.promised);
      return fits ? refuse_with(errc::no_blocks, wanted.in_total, wanted.in_total - std::min(spare, wanted.in_total),
                                &window)
                  : refuse_with(errc::never_fits, block_count{most}, {}, &window);
    }

    for (std::size_t g = 0; g < windows_.size(); ++g) {
      windows_[g].attach(record.groups[g], s.table.blocks(), p, attached_to(windows_[g], p, found_tokens));
      windows_[g].allow(record.groups[g], windows_[g].budget(limit, append_limit(limit), request.draft.value()));
    }
    ops_.attach(s, found, p, options_.skip_writes);
    s.publishes = request.reuse != reuse_rule::none;
    s.writer = false;
    start(record, p, static_cast<std::uint32_t>(limit), request.scope);
    record.resumed = request.resumed;
    record.rewind = request.draft.value();
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
    for (std::size_t g = 0; g < windows_.size(); ++g) {
      if (!goes_on(parent, g, length)) { return refuse(errc::not_resident); }
    }
    child.state.table.reserve(geometry_.blocks(parent.limit) + 1);
    reserve_tables(child, parent.limit);
    ops_.fork(parent.state, child.state, length);
    auto fits = true;
    for (std::size_t g = 0; g < windows_.size(); ++g) {
      auto& table = child.groups[g];
      auto const promised = block_count{windows_[g].promised()};
      windows_[g].fork(parent.groups[g], table, length);
      windows_[g].allow(table, parent.groups[g].budget);
      auto const copies = windows_[g].must_copy(table, length, false, false);
      fits = fits && admission_.admits({block_count{copies ? 1U : 0U}, block_count{table.outstanding}, promised,
                                        windows_[g].available(), windows_[g].pool().capacity()});
    }
    child.limit = parent.limit;
    auto const owed = owes(child);
    if (!fits || !admission_.admits({block_count{ops_.must_copy(child.state) ? 1U : 0U}, block_count{owed},
                                     block_count{promised_}, available(), pool_.capacity()})) {
      ops_.drop(child.state, [](block_id) {}); // the parent holds every block: nothing retires
      for (std::size_t g = 0; g < windows_.size(); ++g) {
        windows_[g].drop(child.groups[g], [&](block_id block) { windows_[g].let_go(block); });
      }
      return refuse(errc::no_blocks);
    }
    start(child, parent.prompt, parent.limit, parent.scope);
    child.epoch = parent.epoch;
    child.phase = parent.phase;
    child.last = parent.last;
    child.rewind = parent.rewind;
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

  auto launch(slot_type& slot) -> std::span<action const> {
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
        roll_back_groups(record, retire);
        ops_.roll_back(record.state, [&](block_id block) { discard(block, retire); });
        finish(record);
        continue;
      }
      auto const copied = static_cast<bool>(record.state.copy_source);
      auto const retire = retire_after(record);
      if (copied) { own_from(record, geometry_.index(record.state.committed)); }
      auto const may_publish = record.epoch == epoch_;
      if (!may_publish) { record.state.publishes = false; }
      for (std::size_t g = 0; g < windows_.size(); ++g) {
        windows_[g].commit(record.groups[g], record.state.committed, retire.of_group(g));
      }
      auto const settled = ops_.commit(record.state, tokens, retire, hanger{this, &record});
      give_up(record, retire);
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
      roll_back_groups(record, retire);
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

  // --- sequences ----------------------------------------------------------------------------------------------------
  auto truncate(record_type& record, std::uint32_t length) -> expected<void> {
    if (record.plan_open) { return refuse(errc::plan_open); }
    if (length > record.state.committed) { return refuse(errc::out_of_range); }
    if (length == record.state.committed) { return {}; }
    for (std::size_t g = 0; g < windows_.size(); ++g) {
      if (!goes_on(record, g, length)) { return refuse(errc::not_resident); }
    }
    reserve_retirement();
    // What was shared is promised again, beside what comes back.
    auto const retire = retire_after(record);
    auto const settled = record.outstanding + ops_.would_free(record.state, length, retire.at_once());
    auto const owed =
        geometry_.blocks(record.limit) - geometry_.blocks(length) + (ops_.would_copy(record.state, length) ? 1U : 0U);
    auto const query = admission_query{block_count{0}, block_count{owed - std::min(owed, settled)},
                                       block_count{promised_}, available(), pool_.capacity()};
    if (owed > settled && !admission_.admits(query)) { return refuse(errc::no_blocks); }
    for (std::size_t g = 0; g < windows_.size(); ++g) {
      if (!truncation_fits(windows_[g], record.groups[g], length, retire.at_once())) { return refuse(errc::no_blocks); }
    }
    cut(record, length, retire);
    give_up(record, retire);
    promise(record, owes(record));
    open_lane(record);
    return {};
  }
  auto resolve(record_type& record, std::span<token_id const> tokens) -> expected<void> {
    if (record.plan_open) { return refuse(errc::plan_open); }
    if (record.state.known + tokens.size() > record.state.committed) { return refuse(errc::out_of_range); }
    if (record.epoch != epoch_) { record.state.publishes = false; }
    auto const settled = ops_.resolve(record.state, tokens, hanger{this, &record});
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
    for (std::size_t g = 0; g < windows_.size(); ++g) { windows_[g].allow(record.groups[g], 0); }
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

  /// The window group with number \p group; null if that group keeps everything. \pre there is such a group
  [[nodiscard]] auto window_number(group_id group) const -> std::optional<std::size_t> {
    if (options_.groups.empty() && group == group_id{0}) { return std::nullopt; }
    QUIRE_EXPECTS(group.value() < window_of_.size());
    auto const w = window_of_[group.value()];
    return w == no_window ? std::nullopt : std::optional<std::size_t>{w};
  }
  [[nodiscard]] auto window(std::size_t w) const noexcept -> window_type const& { return windows_[w]; }
  /// The first length from \p target on to which \p record can be cut back and go on; none if there is none.
  [[nodiscard]] auto resumable(record_type const& record, std::uint32_t target) const -> std::optional<std::uint32_t> {
    for (auto again = true; std::exchange(again, false);) {
      for (std::size_t g = 0; g < windows_.size(); ++g) {
        auto const from = windows_[g].resumable(record.groups[g], target, record.state.committed);
        if (!from) { return std::nullopt; }
        again = again || from->value() != target;
        target = from->value();
      }
    }
    return target;
  }

  // --- maintenance, in cache_maintenance.hpp and cache_audit.hpp ----------------------------------------------------
  [[nodiscard]] auto audit() const -> std::string;
  [[nodiscard]] auto audit_group(std::size_t g, std::span<std::uint8_t const> in_index) const -> std::string;
  auto abandon(timeline_id timeline) -> expected<block_count>;
  auto compact() -> expected<std::vector<action>>;

private:
  using list_type = boost::intrusive::list<
      record_type, boost::intrusive::member_hook<record_type, decltype(record_type::hook), &record_type::hook>>;
  static constexpr std::uint64_t max_positions = 0x7fff'ffffU; // the views carry positions as int32
  static constexpr std::uint32_t no_window = 0xffff'ffffU;

  static auto at_least_one(std::uint32_t n, char const* what) -> std::uint32_t {
    if (n == 0) { throw config_error{std::string{"kv_cache: "} + what + " is 0, it must be at least 1"}; }
    return n;
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
    /// Ends holds on blocks of window group \p g.
    [[nodiscard]] auto of_group(std::size_t g) const noexcept {
      return [how = *this, g](block_id block) {
        if (how.at_once()) {
          how.core->windows_[g].let_go(block);
        } else {
          how.core->late_holds_[how.timeline.value()].push(static_cast<std::uint32_t>(g), block, how.until);
        }
      };
    }
  };
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
    for (std::size_t g = 0; g < windows_.size(); ++g) {
      group_columns_[g] = std::max(group_columns_[g], windows_[g].columns(limit, record.groups[g].budget));
    }
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

  // --- window groups ------------------------------------------------------------------------------------------------
  /// Makes the groups of the options: those that keep everything share the lead table.
  auto add_groups(block_count lead) -> void {
    if (options_.groups.empty()) { lead_groups_.push_back(group_id{0}); }
    for (std::size_t i = 0; i < options_.groups.size(); ++i) {
      auto spec = options_.groups[i];
      auto const id = group_id{static_cast<std::uint32_t>(i)};
      if (spec.block_tokens == token_count{}) { spec.block_tokens = options_.block_tokens; }
      if (spec.blocks == block_count{}) { spec.blocks = lead; }
      if (spec.keeps.keeps_all()) {
        if (spec.block_tokens != options_.block_tokens) {
          throw config_error{"kv_cache: group " + std::to_string(i) + " keeps everything in blocks of " +
                             std::to_string(spec.block_tokens.value()) + " tokens: use cache_options::block_tokens (" +
                             std::to_string(options_.block_tokens.value()) +
                             ") for all such groups, they share a table"};
        }
        lead_groups_.push_back(id);
        window_of_.push_back(no_window);
        continue;
      }
      window_of_.push_back(static_cast<std::uint32_t>(windows_.size()));
      windows_.emplace_back(id, spec, lead, options_.block_tokens);
    }
    group_columns_.resize(windows_.size());
    if (options_.max_context != token_count{}) {
      for (std::size_t g = 0; g < windows_.size(); ++g) {
        auto const most = options_.max_context.value();
        group_columns_[g] = windows_[g].columns(most, windows_[g].budget(most, append_limit(most), 0));
      }
    }
  }
  /// [tokens] that a step may add to a sequence.
  [[nodiscard]] auto append_limit(std::uint64_t limit) const noexcept -> std::uint64_t {
    return options_.max_append == token_count{} ? limit : options_.max_append.value();
  }
  /// \throws std::bad_alloc; nothing has changed then.
  auto reserve_tables(record_type& record, std::uint32_t limit) -> void {
    for (std::size_t g = 0; g < windows_.size(); ++g) {
      record.groups[g].blocks.reserve(windows_[g].geometry().blocks(limit) + 1);
    }
  }
  /// The longest hit that every group can serve: a fixed point, because it only shrinks. \source S29
  [[nodiscard]] auto longest_hit(std::span<block_id const> lead, std::uint32_t prompt, std::uint32_t hit) const
      -> std::uint32_t {
    for (auto again = hit > 0; std::exchange(again, false);) {
      for (auto const& window : windows_) {
        auto const whole = window.longest_hit(lead, prompt, hit);
        if (whole == hit) { continue; }
        hit = whole - geometry_.offset(whole);
        again = hit > 0;
      }
    }
    return hit;
  }
  /// [tokens] of a hit that \p window attaches: without skipped writes a last block of one token has no front to copy.
  [[nodiscard]] auto attached_to(window_type const& window, std::uint32_t prompt, std::uint32_t hit) const noexcept
      -> std::uint32_t {
    return !options_.skip_writes && hit == prompt && window.geometry().block_tokens() == 1 ? hit - 1 : hit;
  }
  /// True if \p record, cut back to \p length, could go on there as far as group \p g is concerned.
  [[nodiscard]] auto goes_on(record_type const& record, std::size_t g, std::uint32_t length) const -> bool {
    auto const from = windows_[g].resumable(record.groups[g], length, record.state.committed);
    return from && from->value() == length;
  }
  /// True if what a truncation opens again of a budget fits beside what is promised.
  [[nodiscard]] auto truncation_fits(window_type const& window, group_table const& table, std::uint32_t length,
                                     bool at_once) const -> bool {
    auto const settled = table.outstanding + (at_once ? window.would_free(table, length) : 0U);
    auto const size = window.geometry().blocks(length);
    auto const dropped = table.size() > size ? table.size() - size : 0U;
    auto const held = table.held - std::min(table.held, dropped);
    auto const owed = table.budget > held ? table.budget - held : 0U;
    return owed <= settled ||
           admission_.admits({block_count{0}, block_count{owed - settled}, block_count{window.promised()},
                              window.available(), window.pool().capacity()});
  }
  /// [blocks] that \p q more positions take from all window groups; \p why tells if that cannot be.
  [[nodiscard]] auto needs_of_groups(record_type const& record, std::uint32_t q, errc& why) const -> std::uint32_t {
    auto const& s = record.state;
    std::uint32_t all = 0;
    for (std::size_t g = 0; g < windows_.size(); ++g) {
      auto const& table = record.groups[g];
      auto const need = windows_[g].blocks_for(table, s.committed, q, s.writer, s.skip_write);
      if (!Policies::copy::allowed && windows_[g].must_copy(table, s.committed, s.writer, s.skip_write)) {
        why = errc::not_supported;
      } else if (need > windows_[g].available().value()) {
        why = errc::no_blocks;
      }
      all += need;
    }
    return all;
  }
  auto reserve_in_groups(slot_type& slot, record_type& record, std::uint32_t q) -> void {
    auto const& s = record.state;
    for (std::size_t g = 0; g < windows_.size(); ++g) { // first what may throw
      auto const need = windows_[g].blocks_for(record.groups[g], s.committed, q, s.writer, s.skip_write);
      windows_[g].reserve_claims(need);
    }
    for (std::size_t g = 0; g < windows_.size(); ++g) {
      auto& window = windows_[g];
      auto& table = record.groups[g];
      window.reserve(table, s.committed, q, s.writer, s.skip_write);
      auto const at = window.geometry().index(s.committed);
      if (options_.scrub == scrub_rule::on_reuse) {
        if (table.copy_source) { slot.actions.push_back(action::scrub_block(window.id(), table.blocks[at])); }
        for (auto j = table.before; j < table.size(); ++j) {
          slot.actions.push_back(action::scrub_block(window.id(), table.blocks[j]));
        }
      }
      if (auto const offset = window.geometry().offset(s.committed); table.copy_source && offset > 0) {
        slot.actions.push_back(Policies::copy::copy(window.id(), table.copy_source, table.blocks[at],
                                                    token_count{offset},
                                                    token_count{window.geometry().block_tokens()}));
      }
      slot.groups[g].rows.add(shown(table), s.committed, q, s.skip_write);
    }
  }
  /// What views show of \p table.
  [[nodiscard]] auto shown(group_table& table) noexcept -> batch_rows::source {
    if (table.stamp == 0) { table.stamp = ++stamps_; }
    return {table.stamp, table.blocks, table.base, table.gone};
  }
  /// True if row \p k from the ones added so far shows the tables of \p record.
  [[nodiscard]] auto groups_show(slot_type& slot, record_type const& record, std::size_t k) const noexcept -> bool {
    for (std::size_t g = 0; g < windows_.size(); ++g) {
      auto const& table = record.groups[g];
      if (!slot.groups[g].rows.appender().shows(k, table.stamp, table.size() - table.base, table.gone)) {
        return false;
      }
    }
    return true;
  }
  auto distrust(slot_type& slot) noexcept -> void {
    slot.rows.distrust();
    for (auto& group : slot.groups) { group.rows.distrust(); }
  }
  auto roll_back_groups(record_type& record, retirement const& retire) -> void {
    for (auto g = windows_.size(); g-- > 0;) {
      windows_[g].roll_back(record.groups[g], record.state.committed, retire.of_group(g));
    }
  }
  auto drop_groups(record_type& record, retirement const& retire) -> void {
    for (std::size_t g = 0; g < windows_.size(); ++g) { windows_[g].drop(record.groups[g], retire.of_group(g)); }
  }
  /// Gives up what no later query of \p record can see, except for what may be taken back.
  auto give_up(record_type& record, retirement const& retire) -> void {
    auto const oldest = record.state.committed - std::min(record.rewind, record.state.committed);
    for (std::size_t g = 0; g < windows_.size(); ++g) {
      windows_[g].give_up(record.groups[g], oldest, retire.of_group(g));
    }
  }
  auto unhang(block_id lead) -> void {
    for (auto& window : windows_) { window.unhang(lead); }
  }
  /// Hangs blocks of the window groups where the index has taken the lead's.
  struct hanger {
    cache_core* core;
    record_type* record;
    auto published(std::uint32_t j, block_id lead) const -> void {
      for (std::size_t g = 0; g < core->windows_.size(); ++g) { core->windows_[g].publish(record->groups[g], j, lead); }
    }
    auto replaced(block_id from, block_id to) const -> void {
      for (auto& window : core->windows_) { window.rehang(from, to); }
    }
  };
  auto evicted(group_id group, block_count blocks) noexcept -> void {
    if (blocks == block_count{}) { return; }
    auto const event = evict_event{.group = group, .blocks = blocks};
    stats_.on_evict(event);
    observe([&](auto& o) { o.on_evict(event); });
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
      record.at_block = windows_.empty() && record.limit > s.committed && options_.scrub != scrub_rule::on_reuse;
      return;
    }
    if (offset == 0 || j < s.pinned || !s.writer || s.skip_write) { return; }
    auto lane = std::min(geometry_.block_tokens() - offset, record.limit - s.committed);
    for (std::size_t g = 0; g < windows_.size(); ++g) {
      lane = std::min(lane, windows_[g].lane(record.groups[g], s.committed));
    }
    record.lane = lane;
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
    for (std::uint32_t j = 0; j < k; ++j) { // a loop of its own: together they need more registers than there are
      auto& record = *items[j].record;
      out.write(j, record.state.committed, record.lane_slot);
      if constexpr (timelines > 1) { wait_for_others(slot, record); }
    }
    slot.items.add(k);
    slot.ids.add(k);
    slot.rows.take(k);
    for (std::size_t g = 0; g < windows_.size(); ++g) {
      auto& rows = slot.groups[g].rows;
      auto const at = rows.appender();
      for (std::uint32_t j = 0; j < k; ++j) {
        auto const& record = *items[j].record;
        at.write(j, record.state.committed, record.state.committed + record.groups[g].lane_shift);
      }
      rows.take(k);
    }
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
    slot.rows.add({record.stamp, s.table.blocks()}, s.committed, record.lane_slot);
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
    auto const settled = ops_.settle(record.state, hanger{this, &record});
    if (!windows_.empty()) { give_up(record, retire_after(record)); }
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
    if (!windows_.empty() && q > append_limit(record.limit)) { return errc::beyond_append; }
    if (!ids.empty() && s.known != s.committed) { return errc::unresolved; }
    // A skipped write is right for the token that is stored there; another one is written, into a copy.
    auto const diverges =
        s.skip_write && !ids.empty() && ids.front() != index_.token_at(s.table.slot(geometry_, token_pos{s.committed}));
    if (diverges) { s.skip_write = false; }
    auto const need = ops_.blocks_for(s, q);
    auto why = errc::ok;
    if (need > 0) {
      why = !Policies::copy::allowed && ops_.must_copy(s) ? errc::not_supported
            : need > available().value()                  ? errc::no_blocks
                                                          : errc::ok;
    }
    auto const group_needs = windows_.empty() || why != errc::ok ? 0U : needs_of_groups(record, q, why);
    if (why != errc::ok) {
      s.skip_write = s.skip_write || diverges;
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
      reserve_with_blocks(slot, record, q, need);
    } else {
      ops_.reserve(s, q, {});
    }
    if (!windows_.empty()) { reserve_in_groups(slot, record, q); }
    if constexpr (timelines > 1) { wait_for_others(slot, record); }
    slot.rows.add({record.stamp, s.table.blocks()}, s.committed, q, s.skip_write);
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
    for (std::size_t g = 0; g < windows_.size(); ++g) {
      if constexpr (requires { retire.of_group(g); }) {
        windows_[g].truncate(record.groups[g], length, retire.of_group(g));
      }
      if (windows_[g].shared_end(record.groups[g], length)) { record.state.writer = false; }
    }
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
      reserve_late_holds(0);
    }
  }
  /// Room for every hold on a block of a window group, and \p more. \throws std::bad_alloc; nothing has changed then.
  auto reserve_late_holds(std::uint32_t more) -> void {
    if constexpr (!immediate) {
      std::size_t holds = more;
      for (auto const& window : windows_) { holds += window.held(); }
      for (auto& late : late_holds_) { late.reserve(holds); }
    }
  }
  auto drain_limbo() -> void {
    auto const none = [](auto const& late) { return late.empty(); };
    if (limbo_.size() == block_count{} && std::all_of(late_pins_.begin(), late_pins_.end(), none) &&
        std::all_of(late_holds_.begin(), late_holds_.end(), none)) {
      return;
    }
    reserve_retirement();
    for (std::uint32_t t = 0; t < timelines; ++t) {
      auto const here = [&](ticket k) { return reached(timeline_id{t}, k); };
      limbo_.drain(timeline_id{t}, here, [&](block_id block) { after(t, 0)(block); });
      late_pins_[t].drain(here, [&](prefix_pin&& pin, std::uint32_t unready) { after(t, unready)(std::move(pin)); });
      late_holds_[t].drain(here, [&](std::uint32_t g, block_id block) { after(t, 0).of_group(g)(block); });
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
      auto const retire = retire_after(record); // another holder's step may still read what this one gives up
      drop_groups(record, retire);
      ops_.drop(record.state, retire);
    } else {
      drop_groups(record, retirement{this, timeline_id{0}, ticket{}, 0});
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
  std::vector<window_type> windows_;         // groups that do not keep everything
  std::vector<std::uint32_t> window_of_;     // by group: which of them, or `no_window`
  std::vector<std::uint32_t> group_columns_; // by window group, as `columns_`
  std::vector<group_id> lead_groups_; // groups that keep everything; none = the lead is identity only, without bytes
  std::array<late_holds, timelines> late_holds_;
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
