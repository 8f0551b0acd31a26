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
#include <quire/cache/cache_options.hpp>
#include <quire/cache/detail/batch_rows.hpp>
#include <quire/cache/detail/group_table.hpp>
#include <quire/cache/detail/index_paths.hpp>
#include <quire/cache/detail/late_holds.hpp>
#include <quire/cache/detail/late_pins.hpp>
#include <quire/cache/detail/record.hpp>
#include <quire/cache/detail/shared_memory.hpp>
#include <quire/cache/detail/step_slot.hpp>
#include <quire/cache/detail/unready_blocks.hpp>
#include <quire/cache/detail/window_group.hpp>
#include <quire/cache/refusal.hpp>
#include <quire/cache/requests.hpp>
#include <quire/cache/scope_table.hpp>
#include <quire/core/config_error.hpp>
#include <quire/core/contract.hpp>
#include <quire/core/errc.hpp>
#include <quire/core/expected.hpp>
#include <quire/core/types.hpp>
#include <quire/identity/compute_identity.hpp>
#include <quire/identity/digest_scheme.hpp>
#include <quire/identity/scope_key.hpp>
#include <quire/identity/sharing_domain.hpp>
#include <quire/observe/cache_statistics.hpp>
#include <quire/observe/counting_observer.hpp>
#include <quire/observe/events.hpp>
#include <quire/observe/null_observer.hpp>
#include <quire/prefix/prefix_pin.hpp>
#include <quire/sequence/block_geometry.hpp>
#include <quire/sequence/sequence_ops.hpp>
#include <quire/sequence/sequence_state.hpp>
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
  static constexpr bool shares_memory = shared_memory<typename Policies::allocation>::shared;
  static constexpr bool immediate = std::is_same_v<fence_type, immediate_fence>;
  static constexpr bool silent = std::is_same_v<observer_type, null_observer>; // nobody wants an event per step

  cache_core(block_count blocks, cache_options const& options, digest_type digest,
             typename Policies::admission admission, observer_type observer = {})
      : options_{options}, geometry_{options.block_tokens}, memory_{options},
        pool_{memory_.template pool<pool_type>(0, blocks)}, index_{pool_.capacity(), options.block_tokens, digest},
        ops_{pool_, index_, geometry_}, limbo_{immediate ? block_count{0} : pool_.capacity()},
        admission_{std::move(admission)}, observer_{std::move(observer)},
        records_(at_least_one(options.max_sequences.value(), "max_sequences")) {
    at_least_one(options.max_rows.value(), "max_rows");
    add_groups(pool_.capacity());
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

  auto admit(admit_request const& request) -> expected<record_type*, refusal>;
  auto try_admit(admit_request const& request, refuse_event& why) -> expected<record_type*, refusal>;

  /// A new sequence with the first \p length positions of \p parent.
  auto fork(record_type& parent, std::uint32_t length) -> expected<record_type*>;

  // --- steps --------------------------------------------------------------------------------------------------------
  /// \p item_of(i) gives {record or nullptr, tokens wanted, token ids or empty} of item i.
  template <class ItemOf>
  auto plan(std::size_t count, ItemOf item_of, timeline_id timeline) -> expected<slot_type*>;

  auto launch(slot_type& slot) -> std::span<action const>;

  /// \returns false if a sequence of the step ended while it was open.
  auto commit(slot_type& slot, ticket until) -> bool;

  /// Drops an open plan: before launch the state equals the state before `plan`; after it, blocks retire under a ticket.
  auto drop(slot_type& slot) -> void;

  // --- sequences ----------------------------------------------------------------------------------------------------
  auto truncate(record_type& record, std::uint32_t length) -> expected<void>;
  auto resolve(record_type& record, std::span<token_id const> tokens) -> expected<void>;
  /// Ends a sequence for good; its handle is used up. \p why must be legal in the life cycle.
  auto end(record_type& record, request_event_type why) -> expected<void>;

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
  /// [blocks] The same of all groups; those of the lead count once.
  [[nodiscard]] auto lost_in_all() const noexcept -> block_count {
    auto all = lost();
    for (auto const& window : windows_) { all += window.lost(); }
    return all;
  }
  [[nodiscard]] auto statistics() const noexcept -> cache_statistics {
    auto out = stats_.statistics();
    out.hash_collisions = index_.hash_collisions();
    return out;
  }
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

  /// [tokens] that a step may add to a sequence.
  [[nodiscard]] auto append_limit() const noexcept -> std::uint32_t {
    auto const bounded = !windows_.empty() && options_.max_append != token_count{};
    return bounded ? options_.max_append.value() : static_cast<std::uint32_t>(max_positions);
  }
  /// The window group with number \p group; null if that group keeps everything. \pre there is such a group
  [[nodiscard]] auto window_number(group_id group) const -> std::optional<std::size_t> {
    QUIRE_EXPECTS(group.value() < window_of_.size());
    auto const w = window_of_[group.value()];
    return w == no_window ? std::nullopt : std::optional<std::size_t>{w};
  }
  [[nodiscard]] auto window(std::size_t w) const noexcept -> window_type const& { return windows_[w]; }
  /// [tokens] that a hit is a multiple of.
  [[nodiscard]] auto alignment() const noexcept -> std::uint32_t { return alignment_; }
  /// The first length from \p target on to which \p record can be cut back and go on; none if there is none.
  [[nodiscard]] auto resumable(record_type const& record, std::uint32_t target) const -> std::optional<std::uint32_t>;

  /// [tokens] of what was found that \p record computes again to rebuild its windows.
  [[nodiscard]] auto rebuilt(record_type const& record) const noexcept -> std::uint32_t {
    return record.rebuilds ? exact_from(record) - record.attached : 0;
  }

  // --- maintenance, in cache_audit.hpp, cache_abandon.hpp and cache_compact.hpp -------------------------------------
  [[nodiscard]] auto audit() const -> std::string;
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
    std::uint32_t unready = 0; // [blocks] at the end of a pin that its sequence wrote and that may not be finished
    record_type const* record =
        nullptr; // whose blocks of window groups they are; none: all of them were written just now
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
      auto const from = record == nullptr ? 0 : core->unready_from(*record, g);
      return [how = *this, g, from](block_id block, std::uint32_t end) { how.end_hold(g, block, end > from); };
    }
    auto end_hold(std::size_t g, block_id block, bool unready_block) const -> void {
      if (at_once()) {
        core->windows_[g].let_go(block);
      } else {
        core->late_holds_[timeline.value()].push(static_cast<std::uint32_t>(g), block, until, unready_block);
      }
    }
  };
  /// What sequences give up when a timeline is lost: what the device may still write is never used again.
  struct loss {
    cache_core* core;
    retirement rest;
    unready_blocks const* unready;
    auto operator()(block_id block) const -> void {
      if (unready->has(block)) {
        core->lose(block);
      } else {
        rest(block);
      }
    }
    [[nodiscard]] auto of_group(std::size_t g) const noexcept {
      return [how = *this, g](block_id block, std::uint32_t end) {
        if (how.unready->has(g, block)) {
          how.core->windows_[g].lose(block);
        } else {
          how.rest.of_group(g)(block, end);
        }
      };
    }
  };
  /// Never uses \p block again, which is retiring: a lost device may still write it. Without a group that keeps everything
  /// there is nothing to write to.
  auto lose(block_id block) -> void {
    if (lead_groups_.empty()) { return pool_.reclaim(block); }
    ++lost_;
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

  [[nodiscard]] auto find_unready(timeline_id timeline, index_paths const& paths) const -> unready_blocks;
  auto cut_back(record_type& record, unready_blocks const& unready, index_paths const& paths) -> bool;
  [[nodiscard]] auto audit_group(std::size_t g, std::span<std::uint8_t const> in_index) const -> std::string;
  [[nodiscard]] static auto places(pool_type const& pool, std::span<group_id const> groups, std::vector<action>& moves)
      -> std::vector<block_id>;

  template <class F>
  auto observe(F f) noexcept -> void {
    if constexpr (!silent) { f(observer_); }
  }

  auto start(record_type& record, std::uint32_t prompt, std::uint32_t limit, scope_number scope) -> void;
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
  auto add_groups(block_count lead) -> void;
  /// \throws std::bad_alloc; nothing has changed then.
  auto reserve_tables(record_type& record, std::uint32_t limit) -> void {
    for (std::size_t g = 0; g < windows_.size(); ++g) {
      record.groups[g].blocks.reserve(windows_[g].geometry().blocks(limit) + 1);
    }
  }
  /// How much of a hit is of use.
  struct reuse {
    std::uint32_t tokens; // computing begins behind them
    bool rebuilds;        // the windows have nothing of them: what is computed first rebuilds them, and is not exact
  };
  /// Where positions that rebuild windows end: what is found may end inside a block of another group, and of a hit of the
  /// whole prompt the last position's output has to be exact.
  [[nodiscard]] auto exact_end(std::uint32_t found, std::uint32_t prompt) const noexcept -> std::uint32_t {
    return std::min(found - found % alignment_, prompt - 1);
  }
  /// The first position at which \p record is exact, if it rebuilds its windows; 0 otherwise.
  [[nodiscard]] auto exact_from(record_type const& record) const noexcept -> std::uint32_t {
    return record.rebuilds ? exact_end(record.found, record.prompt) : 0;
  }
  [[nodiscard]] auto usable(std::span<block_id const> lead, std::uint32_t prompt) const -> reuse;
  /// The longest hit that every group can serve: a fixed point, because it only shrinks. \source S29
  [[nodiscard]] auto longest_hit(std::span<block_id const> lead, std::uint32_t prompt, std::uint32_t hit) const
      -> std::uint32_t;
  /// [tokens] Writes that group \p g skips: none once the sequence diverges from what is stored.
  [[nodiscard]] auto group_skips(record_type const& record, std::size_t g) const noexcept -> std::uint32_t {
    return std::min(record.state.skips(), record.groups[g].skips(record.state.committed));
  }
  /// [tokens] of a hit that \p window attaches: without skipped writes a last block of one token has no front to copy.
  [[nodiscard]] auto attached_to(window_type const& window, std::uint32_t prompt, std::uint32_t hit) const noexcept
      -> std::uint32_t {
    return !options_.skip_writes && hit == prompt && window.geometry().block_tokens() == 1 ? hit - 1 : hit;
  }
  /// True if \p record, cut back to \p length, could go on there as far as group \p g is concerned.
  [[nodiscard]] auto goes_on(record_type const& record, std::size_t g, std::uint32_t length) const -> bool;
  /// [blocks] that \p q more positions take from all window groups; \p why tells if that cannot be.
  [[nodiscard]] auto needs_of_groups(record_type const& record, std::uint32_t q, errc& why) const -> std::uint32_t;
  auto reserve_in_groups(slot_type& slot, record_type& record, std::uint32_t q, bool idle_first) -> void;
  /// What views show of \p table.
  [[nodiscard]] auto shown(group_table& table) noexcept -> batch_rows::source {
    if (table.stamp == 0) { table.stamp = ++stamps_; }
    return {table.stamp, table.blocks, table.base, table.gone};
  }
  /// True if row \p k from the ones added so far shows the tables of \p record.
  [[nodiscard]] auto groups_show(slot_type& slot, record_type const& record, std::size_t k) const noexcept -> bool;
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
  auto give_up(record_type& record, retirement const& retire) -> void;
  [[nodiscard]] auto groups_have_next(record_type& record) -> bool;
  auto count_needs() -> void;
  [[nodiscard]] auto room(std::size_t part, block_count own, std::uint32_t idle) -> block_count;
  auto need_beside(std::size_t part, std::uint32_t promised, std::uint32_t idle) -> void;
  [[nodiscard]] auto evict_for_others() -> bool;
  [[nodiscard]] auto idle_goes_first(record_type const& record, std::uint32_t q, std::uint32_t lead, errc& why) -> bool;
  auto hang_again(record_type& record, std::uint32_t before) -> void;
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
  auto open_lane(record_type& record) noexcept -> void;
  /// Adds items from \p i on while they need nothing but the next slot of a block that their row shows already; returns the
  /// first that needs more. Nothing is called in this loop, so that what it writes through stays in registers.
  /// \pre there is room for the items and their ids
  template <class ItemOf>
  auto add_lanes(slot_type& slot, std::size_t i, std::size_t count, ItemOf const& item_of, std::uint32_t& rows)
      -> std::size_t;
  template <class Item>
  [[nodiscard]] auto decodes(record_type const& record, Item const& item) const noexcept -> bool {
    return item.ids.size() == 1 && !item.loaded && record.epoch >= restart_below_;
  }
  /// The step of a decoding sequence whose last block is full: one block, one slot. False if that takes more.
  /// \pre there is room for the item and its id
  auto add_next_block(slot_type& slot, record_type& record, token_id id) -> bool;
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
  [[gnu::noinline]] auto leave_lane(record_type& record) -> void;

  [[nodiscard]] auto other_tokens(sequence_state const& s, std::span<token_id const> ids) const -> bool;
  /// True if admission lets somebody have one block that nobody was promised.
  [[nodiscard]] auto affords_one() -> bool {
    count_needs();
    return admission_.admits({block_count{1}, block_count{1}, block_count{promised_},
                              room(0, pool_.free_blocks(), evictable().value()), pool_.capacity()});
  }
  auto add_item(slot_type& slot, record_type& record, std::uint32_t q, std::span<token_id const> ids) -> errc;
  [[gnu::noinline]] auto reserve_with_blocks(slot_type& slot, record_type& record, std::uint32_t q, std::uint32_t need,
                                             bool idle_first) -> void;

  /// Fills `slot.fresh` with \p need blocks: free ones first, then victims. \pre that many are available
  auto take(slot_type& slot, std::uint32_t need, bool idle_first = false) -> void;
  auto add_actions(slot_type& slot, record_type const& record, std::uint32_t need, std::uint32_t from) -> void;
  /// Content that another timeline may still be writing is waited for before this step reads it.
  auto wait_for_others(slot_type& slot, record_type const& record) -> void;

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
        return {this, timeline_id{t}, latest_[t], pinned - std::min(pinned, first_unready(record)), &record};
      }
    }
    return {this, timeline_id{0}, ticket{}};
  }
  /// First block of its table that \p record wrote and that may not be finished.
  [[nodiscard]] auto first_unready(record_type const& record) const noexcept -> std::uint32_t {
    return std::max(geometry_.index(record.ready), record.matched);
  }
  /// [tokens] The same for window group \p g: blocks that reach beyond may not be finished. It may have computed again what
  /// the lead found, and skips the last write of a prompt that was found whole.
  [[nodiscard]] auto unready_from(record_type const& record, std::size_t g) const noexcept -> std::uint32_t {
    auto const found = std::max(record.attached, record.groups[g].stored);
    return std::max(record.ready, std::min(found, record.matched * geometry_.block_tokens()));
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
      windows_[g].truncate(record.groups[g], length, retire.of_group(g));
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
      auto pins_to_come = slots_.size() * options_.max_rows.value() + records_.size() + 1;
      for (auto& pins : late_pins_) {
        pins.reserve(pins_to_come);
        pins_to_come += pins.size(); // what waits for a timeline may have to wait for the later ones as well
      }
      reserve_late_holds(0);
    }
  }
  /// Room for every hold on a block of a window group, and \p more. \throws std::bad_alloc; nothing has changed then.
  auto reserve_late_holds(std::uint32_t more) -> void {
    if constexpr (!immediate) {
      std::size_t holds = more;
      for (auto const& window : windows_) { holds += window.held(); }
      for (auto& late : late_holds_) {
        late.reserve(holds);
        holds += late.size(); // as above
      }
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
      late_holds_[t].drain(
          here, [&](std::uint32_t g, block_id block, bool unready) { after(t, 0).end_hold(g, block, unready); });
    }
  }
  /// What waited for timeline \p t waits for the later ones too, which may have used it as well.
  [[nodiscard]] auto after(std::uint32_t t, std::uint32_t unready) -> retirement {
    for (auto later = t + 1; later < timelines; ++later) {
      if (reached(timeline_id{later}, latest_[later])) { continue; }
      return {this, timeline_id{later}, latest_[later], unready};
    }
    return {this, timeline_id{0}, ticket{}};
  }
  template <class Retire>
  auto discard(block_id block, Retire const& retire) -> void {
    if (pool_.release_and_retire(block)) { retire(block); }
  }
  /// Gives back what an ended record holds, now or when in-flight work is done with it.
  auto finish(record_type& record) -> void;
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
  auto committed(record_type& record, bool copied) -> void;

  cache_options options_;
  block_geometry geometry_;
  shared_memory<typename Policies::allocation> memory_;
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
  std::uint32_t alignment_ = 1;              // [tokens] where blocks of all groups end together
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
