// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The whole, kept consistent: the KV cache of one model on one device, without an engine around it.
///
/// ```text
///   admit ──▶ sequence ──▶ plan_step ──▶ launch ──▶ (executor, backend) ──▶ commit ──▶ … ──▶ release
///               cached()      view()       actions        forward             publishes
/// ```
///
/// Handles (`sequence`, `step_plan`) are move-only; dropping one undoes or releases what it stands for. They refer to the
/// cache, which outlives them. One thread owns a cache, unless its lock policy says otherwise.

#include <quire/block/concepts.hpp>
#include <quire/block/immediate_fence.hpp>
#include <quire/cache/admission.hpp>
#include <quire/cache/cache_options.hpp>
#include <quire/cache/detail/cache_abandon.hpp> // IWYU pragma: keep, definitions
#include <quire/cache/detail/cache_admit.hpp>   // IWYU pragma: keep, definitions
#include <quire/cache/detail/cache_audit.hpp>   // IWYU pragma: keep, definitions
#include <quire/cache/detail/cache_compact.hpp> // IWYU pragma: keep, definitions
#include <quire/cache/detail/cache_core.hpp>
#include <quire/cache/detail/cache_groups.hpp> // IWYU pragma: keep, definitions
#include <quire/cache/detail/cache_steps.hpp>  // IWYU pragma: keep, definitions
#include <quire/cache/detail/fit_groups.hpp>
#include <quire/cache/detail/step_slot.hpp>
#include <quire/cache/fwd.hpp>
#include <quire/cache/group_figures.hpp>
#include <quire/cache/lock.hpp>
#include <quire/cache/policies.hpp> // IWYU pragma: keep, a default
#include <quire/cache/refusal.hpp>
#include <quire/cache/requests.hpp>
#include <quire/cache/step.hpp>
#include <quire/core/checked.hpp>
#include <quire/core/config_error.hpp>
#include <quire/core/contract.hpp>
#include <quire/core/errc.hpp>
#include <quire/core/expected.hpp>
#include <quire/core/types.hpp>
#include <quire/identity/compute_identity.hpp>
#include <quire/identity/sharing_domain.hpp>
#include <quire/model/cache_layout.hpp>
#include <quire/model/model_spec.hpp>
#include <quire/observe/cache_statistics.hpp>
#include <quire/observe/concepts.hpp>
#include <quire/observe/event_ids.hpp>
#include <quire/prefix/concepts.hpp>
#include <quire/sequence/concepts.hpp>
#include <quire/view/action.hpp>
#include <quire/view/batch_view.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <mutex> // std::scoped_lock
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace quire {

/// The cache. \tparam Policies one struct with a policy per role; see `default_policies`.
template <class Policies>
class kv_cache {
  static_assert(allocation_policy<typename Policies::allocation>,
                "kv_cache: allocation must model quire::allocation_policy (docs/concepts/allocation_policy.md)");
  static_assert(block_lifecycle<typename Policies::block_states>,
                "kv_cache: block_states must model quire::block_lifecycle (docs/concepts/lifecycle_policy.md)");
  static_assert(fence_policy<typename Policies::fence>,
                "kv_cache: fence must model quire::fence_policy (docs/concepts/fence_policy.md)");
  static_assert(admission_policy<typename Policies::admission>,
                "kv_cache: admission must model quire::admission_policy (docs/concepts/admission_policy.md)");
  static_assert(copy_policy<typename Policies::copy>,
                "kv_cache: copy must model quire::copy_policy (docs/concepts/copy_policy.md)");
  static_assert(residency_policy<typename Policies::residency>,
                "kv_cache: residency must model quire::residency_policy (docs/concepts/residency_policy.md)");
  static_assert(request_lifecycle<typename Policies::request_states>,
                "kv_cache: request_states must model quire::request_lifecycle (docs/concepts/lifecycle_policy.md)");
  static_assert(prefix_index<typename Policies::template index<typename Policies::eviction, typename Policies::digest>>,
                "kv_cache: index must model quire::prefix_index (docs/concepts/prefix_index.md)");
  static_assert(lock_policy<typename Policies::lock>,
                "kv_cache: lock must model quire::lock_policy (docs/concepts/lock_policy.md)");
  static_assert(observer<typename Policies::observer>,
                "kv_cache: observer must model quire::observer (docs/concepts/observer.md)");

  using core_type = detail::cache_core<Policies>;
  using record_type = typename core_type::record_type;
  using slot_type = typename core_type::slot_type;
  struct state {
    core_type core;
    typename Policies::lock lock{};
    template <class... Args>
    explicit state(Args&&... args) : core(std::forward<Args>(args)...) {}
  };
  /// Holds the lock for one call; in QUIRE_AUDIT builds it also proves the invariants when the call ends.
  using end_event = typename core_type::request_event_type;
  class guard {
  public:
    explicit guard(state& s) : state_{&s}, hold_{s.lock} {}
    guard(guard const&) = delete;
    auto operator=(guard const&) -> guard& = delete;
    ~guard() {
#ifdef QUIRE_AUDIT
      if (auto const broken = state_->core.audit(); !broken.empty()) { detail::audit_failed(broken.c_str()); }
#endif
    }

  private:
    [[maybe_unused]] state* state_;
    std::scoped_lock<typename Policies::lock> hold_;
  };

public:
  /// The digest policy.
  using digest_type = typename Policies::digest;
  /// The admission policy.
  using admission_type = typename Policies::admission;
  /// The observer.
  using observer_type = typename Policies::observer;
  /// The prefix index.
  using index_type = typename core_type::index_type;
  /// One request's hold on the cache. Move-only; the destructor releases it.
  class sequence {
  public:
    /// Refers to nothing.
    sequence() noexcept = default;
    /// Leaves \p other empty.
    sequence(sequence&& other) noexcept
        : state_{std::exchange(other.state_, nullptr)}, record_{other.record_}, generation_{other.generation_} {}
    /// Releases what it held and leaves \p other empty.
    auto operator=(sequence&& other) noexcept -> sequence& {
      if (this != &other) {
        reset();
        state_ = std::exchange(other.state_, nullptr);
        record_ = other.record_;
        generation_ = other.generation_;
      }
      return *this;
    }
    ~sequence() { reset(); }
    /// True while it refers to a live sequence.
    [[nodiscard]] explicit operator bool() const noexcept { return state_ != nullptr; }
    /// [tokens] of the prompt that were found in the cache and need no compute; at most P − 1 (S22).
    [[nodiscard]] auto cached() const -> token_count { return token_count{record().attached}; }
    /// [tokens] of the prompt that the groups which keep everything have. Where windows have lost what belongs to it, fewer
    /// are `cached()`: the rest is computed again, without writing what is there.
    [[nodiscard]] auto found() const -> token_count { return token_count{record().found}; }
    /// [tokens] from `cached()` on whose outputs are not exact, because they rebuild windows from nothing (S28): at most
    /// N_w · (w − 1), and block rounding. Their tokens must be the prompt's.
    [[nodiscard]] auto rebuilt() const -> token_count { return token_count{state_->core.rebuilt(record())}; }
    /// What is left to compute of \p prompt, which is the one it was admitted with: everything behind `length()`.
    [[nodiscard]] auto remaining(std::span<token_id const> prompt) const -> std::span<token_id const> {
      return prompt.subspan(std::min<std::size_t>(length().value(), prompt.size()));
    }
    /// [tokens] committed: readable by the next step, L.
    [[nodiscard]] auto length() const -> token_count { return token_count{record().state.committed}; }
    /// [tokens] committed whose ids are known.
    [[nodiscard]] auto resolved() const -> token_count { return token_count{record().state.known}; }
    /// [blocks] in its table of group 0, an open plan's included.
    [[nodiscard]] auto blocks() const -> std::span<block_id const> { return blocks(group_id{0}); }
    /// [blocks] in its table of layer group \p group; `none()` where a window has given a block up.
    [[nodiscard]] auto blocks(group_id group) const -> std::span<block_id const> {
      auto const& held = record();
      auto const w = state_->core.window_number(group);
      return w ? std::span<block_id const>{held.groups[*w].blocks} : held.state.table.blocks();
    }
    /// [blocks] of them that other sequences can match.
    [[nodiscard]] auto shared_blocks() const -> block_count {
      return block_count{record().state.pinned - record().state.twins};
    }
    /// Where the request stands in its life cycle.
    [[nodiscard]] auto phase() const { return record().phase; }
    /// Its number in events.
    [[nodiscard]] auto number() const -> sequence_number { return record().number; }

  private:
    friend class kv_cache;
    sequence(state* s, record_type& record) noexcept : state_{s}, record_{&record}, generation_{record.generation} {}
    /// \pre the handle is not empty and not used up.
    [[nodiscard]] auto record() const -> record_type& {
      QUIRE_EXPECTS(state_ != nullptr);
      QUIRE_EXPECTS(record_->generation == generation_);
      return *record_;
    }
    auto reset() noexcept -> void {
      if (auto* const s = std::exchange(state_, nullptr); s != nullptr) {
        guard const hold{*s};
        static_cast<void>(s->core.end(*record_, end_event::finish));
      }
    }
    state* state_ = nullptr;
    record_type* record_ = nullptr;
    std::uint32_t generation_ = 0;
  };

  /// What one step does with one sequence.
  struct step_item {
    sequence const* target = nullptr;          ///< The sequence.
    token_count tokens{};                      ///< q, positions to add.
    std::span<token_id const> ids{};           ///< Their ids, or empty: then `resolve` tells them later (B17).
    step_source source = step_source::compute; ///< Who brings the bytes; the plan is the same.
    std::uint64_t user = 0;                    ///< Comes back in the result.

    step_item() = default;
    /// Adds the positions of \p token_ids.
    step_item(sequence const& s, std::span<token_id const> token_ids, step_source from = step_source::compute,
              std::uint64_t user_word = 0) noexcept
        : target{&s}, tokens{static_cast<std::uint32_t>(token_ids.size())}, ids{token_ids}, source{from},
          user{user_word} {}
    /// Adds \p n positions whose ids are not known yet.
    step_item(sequence const& s, token_count n, step_source from = step_source::compute,
              std::uint64_t user_word = 0) noexcept
        : target{&s}, tokens{n}, source{from}, user{user_word} {}
  };

  /// A step that is planned or launched. Move-only; the destructor drops it: before launch everything is as before the
  /// plan, after it the step's blocks retire under a ticket issued then.
  class step_plan {
  public:
    /// Refers to nothing.
    step_plan() noexcept = default;
    /// Leaves \p other empty.
    step_plan(step_plan&& other) noexcept
        : state_{std::exchange(other.state_, nullptr)}, slot_{other.slot_}, serial_{other.serial_} {}
    /// Drops what it held and leaves \p other empty.
    auto operator=(step_plan&& other) noexcept -> step_plan& {
      if (this != &other) {
        reset();
        state_ = std::exchange(other.state_, nullptr);
        slot_ = other.slot_;
        serial_ = other.serial_;
      }
      return *this;
    }
    ~step_plan() { reset(); }
    /// True while it refers to an open plan.
    [[nodiscard]] explicit operator bool() const noexcept { return state_ != nullptr; }
    /// One answer per item, in the order of the items.
    [[nodiscard]] auto results() const -> std::span<step_result const> { return slot().results; }
    /// True if every item is part of the step.
    [[nodiscard]] auto complete() const -> bool { return slot().items.size() == slot().results.size(); }
    /// Makes evictions final and returns what an executor has to do before the forward pass, in order.
    /// \pre not launched yet. The span is valid until the plan is committed or dropped.
    auto launch() -> std::span<action const> {
      auto& s = slot();
      guard const hold{*state_};
      return state_->core.launch(s);
    }
    /// What the backend reads and writes for the layers of group 0; immutable until the ticket given at commit is reached.
    [[nodiscard]] auto view() const -> batch_view const& { return view(group_id{0}); }
    /// The same for the layers of \p group. Of a window, cells are -1 where no query of the step can see.
    [[nodiscard]] auto view(group_id group) const -> batch_view const& {
      auto const& s = slot();
      auto const w = state_->core.window_number(group);
      return w ? s.groups[*w].view : s.view;
    }

  private:
    friend class kv_cache;
    step_plan(state* s, slot_type const& slot) noexcept
        : state_{s}, slot_{&const_cast<slot_type&>(slot)}, serial_{slot.serial} {}
    [[nodiscard]] auto slot() const -> slot_type& {
      QUIRE_EXPECTS(state_ != nullptr && slot_->serial == serial_);
      return *slot_;
    }
    auto reset() noexcept -> void {
      if (auto* const s = std::exchange(state_, nullptr); s != nullptr) {
        guard const hold{*s};
        s->core.drop(*slot_);
      }
    }
    state* state_ = nullptr;
    slot_type* slot_ = nullptr;
    std::uint64_t serial_ = 0;
  };

  /// A cache of a fixed number of blocks, for those who size it themselves.
  /// \throws config_error if an option is impossible.
  explicit kv_cache(cache_options const& options, digest_type digest = {}, admission_type admission = {},
                    observer_type observer = {})
      : state_{std::make_unique<state>(sized(options.blocks), options, digest, std::move(admission),
                                       std::move(observer))} {}

  /// A cache for \p model: its layer groups with what each retains, and as many blocks as `options.bytes` hold. They are
  /// split so that sequences of `options.max_context` positions (the model's longest, if it is 0 and one fits) find room in
  /// all groups; what is left goes to those that keep everything. Groups or blocks that \p options give are taken as they are.
  /// \throws config_error if an option is impossible or not one block fits.
  explicit kv_cache(model_spec const& model, cache_options options, digest_type digest = {},
                    admission_type admission = {}, observer_type observer = {})
      : kv_cache{detail::group_fit{model, std::move(options), core_type::shares_memory}.options(), digest,
                 std::move(admission), std::move(observer)} {}

  /// The same as the constructors, with the error returned. \errors the `config_error` that was thrown
  [[nodiscard]] static auto create(model_spec const& model, cache_options const& options, digest_type digest = {},
                                   admission_type admission = {}, observer_type observer = {})
      -> expected<kv_cache, config_error> {
    try {
      return kv_cache{model, options, digest, std::move(admission), std::move(observer)};
    } catch (config_error const& error) { return tl::unexpected<config_error>{error}; }
  }

  /// Bytes of one block of \p model over all its layers. \throws config_error on overflow. \source S10
  [[nodiscard]] static auto block_bytes_of(model_spec const& model, token_count block_tokens) -> byte_count {
    std::uint64_t bytes = 0;
    for (auto const& group : model.groups()) {
      bytes = checked_add(bytes, cache_layout{group, block_tokens}.block_bytes().value(), "bytes of a block");
    }
    return byte_count{bytes};
  }

  /// Opens the scope of everything computed under \p identity and shared within \p domain; equal arguments give the same
  /// scope. \complexity O(scopes), cold path. \source S33, S36
  [[nodiscard]] auto open_scope(compute_identity const& identity, sharing_domain const& domain) -> scope_number {
    guard const hold{*state_};
    return state_->core.open_scope(identity, domain);
  }

  /// Lets a request in: finds and pins its longest resident prefix and promises it its budget.
  /// \errors a `refusal` with the figures; nothing has changed then
  /// \throws std::bad_alloc with nothing changed. \complexity one comparison of the prompt + O(nodes)
  /// \source S17, S21, S22, S26 (1)
  [[nodiscard]] auto admit(admit_request const& request) -> expected<sequence, refusal> {
    guard const hold{*state_};
    return state_->core.admit(request).map([this](record_type* r) { return sequence{state_.get(), *r}; });
  }

  /// Plans one step over many sequences, with an answer per item: an item that cannot be served is left out and changes
  /// nothing. \errors errc::plan_open if another plan is not launched; errc::views_in_flight; errc::too_many_rows
  /// \throws std::bad_alloc with nothing changed. Allocates nothing in a steady decode.
  /// \complexity O(items + new blocks). \source S18, S19, S26 (2, 3)
  [[nodiscard]] auto plan_step(std::span<step_item const> items, timeline_id timeline = timeline_id{0})
      -> expected<step_plan> {
    guard const hold{*state_};
    struct wanted {
      record_type* record;
      std::uint32_t tokens;
      std::span<token_id const> ids;
      bool loaded;
    };
    auto const item_of = [&](std::size_t i) {
      auto const& item = items[i];
      QUIRE_EXPECTS(item.target != nullptr && item.target->state_ == state_.get());
      auto* const record = item.target->record_;
      QUIRE_EXPECTS(record->generation == item.target->generation_);
      return wanted{record, item.tokens.value(), item.ids, item.source == step_source::load};
    };
    return state_->core.plan(items.size(), item_of, timeline).map([&](slot_type* s) {
      for (std::size_t i = 0; i < items.size(); ++i) { // a shim: the core says it itself
        auto& result = s->results[i];
        result.user = items[i].user;
        result.skipped = {};
        if (result.status != errc::ok) { continue; }
        for (auto at = s->view.query_start[result.row.value()]; at < s->view.query_start[result.row.value() + 1];
             ++at) {
          if (s->view.slot[static_cast<std::size_t>(at)] < 0) { result.skipped += token_count{1}; }
        }
      }
      return step_plan{state_.get(), *s};
    });
  }

  /// The same for a list of items.
  [[nodiscard]] auto plan_step(std::initializer_list<step_item> items, timeline_id timeline = timeline_id{0})
      -> expected<step_plan> {
    return plan_step(std::span{items.begin(), items.size()}, timeline);
  }

  /// Makes a launched step count: lengths advance, full blocks publish, statistics are born.
  /// \param until ticket of the step's work on its timeline; without one the work is over or ordered before every reader.
  /// \pre \p plan is launched and belongs to this cache. \errors errc::stale if a sequence of the step ended meanwhile:
  /// the others are committed, nothing of the ended one is published. \source S26 (4), B17
  [[nodiscard]] auto commit(step_plan&& plan, ticket until) -> expected<void> {
    QUIRE_EXPECTS(plan.state_ == state_.get());
    auto& slot = plan.slot();
    QUIRE_EXPECTS(slot.phase == detail::step_phase::launched);
    guard const hold{*state_};
    plan.state_ = nullptr;
    if (!state_->core.commit(slot, until)) { return refuse(errc::stale); }
    return {};
  }
  /// The same where work is over when the call returns.
  [[nodiscard]] auto commit(step_plan&& plan) -> expected<void>
    requires std::same_as<typename Policies::fence, immediate_fence>
  {
    return commit(std::move(plan), ticket{});
  }

  /// Tells ids of positions that were committed without. \errors errc::out_of_range, errc::plan_open. \source B17
  [[nodiscard]] auto resolve(sequence const& s, std::span<token_id const> ids) -> expected<void> {
    auto& record = checked(s);
    guard const hold{*state_};
    return state_->core.resolve(record, ids);
  }

  /// A new sequence that shares everything \p parent has committed. \errors errc::plan_open, errc::no_blocks,
  /// errc::too_many_sequences. \complexity O(blocks). \source S23, B7
  [[nodiscard]] auto fork(sequence const& parent) -> expected<sequence> { return fork(parent, parent.length()); }
  /// A new sequence that shares the first \p length positions of \p parent. \errors as above; errc::out_of_range
  [[nodiscard]] auto fork(sequence const& parent, token_count length) -> expected<sequence> {
    auto& record = checked(parent);
    guard const hold{*state_};
    return state_->core.fork(record, length.value()).map([this](record_type* r) { return sequence{state_.get(), *r}; });
  }

  /// Cuts a sequence back to its first \p length positions; what is shared stays shared. Length 0 empties it.
  /// \errors errc::out_of_range beyond the length; errc::plan_open; errc::no_blocks if what is cut off stays in use by others
  /// and the budget that it opens again does not fit beside what is promised. Nothing has changed then. \source B6; case 117
  [[nodiscard]] auto truncate(sequence const& s, token_count length) -> expected<void> {
    auto& record = checked(s);
    guard const hold{*state_};
    return state_->core.truncate(record, length.value());
  }
  /// The first length from \p target on to which \p s can be cut back and go on: windows that moved on have given up what
  /// shorter ones need. \errors errc::out_of_range beyond the length; errc::not_resident if there is none. \source S30
  [[nodiscard]] auto resumable_length(sequence const& s, token_count target) const -> expected<token_count> {
    auto& record = checked(s);
    guard const hold{*state_};
    if (target > s.length()) { return refuse(errc::out_of_range); }
    auto const length = state_->core.resumable(record, target.value());
    if (!length) { return refuse(errc::not_resident); }
    return token_count{*length};
  }
  /// Cuts off the last \p count positions. \errors as `truncate`
  [[nodiscard]] auto drop_last(sequence const& s, token_count count) -> expected<void> {
    if (count > s.length()) { return refuse(errc::out_of_range); }
    return truncate(s, s.length() - count);
  }

  /// Ends a request that is done. Legal in every state of a live request (case 42). \complexity O(nodes + private blocks)
  auto release(sequence&& s) -> void { end(std::move(s), end_event::finish); }
  /// Ends a request whose client gave up.
  auto cancel(sequence&& s) -> void { end(std::move(s), end_event::cancel); }
  /// Ends a request that took too long.
  auto time_out(sequence&& s) -> void { end(std::move(s), end_event::time_out); }
  /// Takes a request's blocks away for others. It resumes by `admit` with all its tokens and `resumed` set, so that what
  /// it finds of its own work is not counted as a hit. \errors errc::illegal_transition if nothing is computed yet;
  /// the handle stays usable then. \source S24; case 131
  [[nodiscard]] auto preempt(sequence& s) -> expected<void> {
    auto& record = checked(s);
    guard const hold{*state_};
    auto done = state_->core.end(record, end_event::preempt);
    if (done) { s.state_ = nullptr; }
    return done;
  }

  /// Frees what waited for tickets that are reached by now; admissions and plans do it too.
  auto reclaim() -> void {
    guard const hold{*state_};
    state_->core.reclaim();
  }
  /// Makes everything cached unreachable at once, because the weights changed: O(1), cannot fail. Work of the old epoch
  /// never publishes. \source S35; cases 17, 18
  auto advance_epoch(running_requests rule) -> void {
    guard const hold{*state_};
    state_->core.advance_epoch(rule);
  }
  /// Gives up on a timeline whose tickets will never be reached: unpublishes what was never ready, cuts sequences back to
  /// their last ready length, or to nothing where windows have moved on since, never reuses the blocks it may still write.
  /// \returns blocks given up, of all groups.
  /// \errors errc::plan_open if a plan is open. \complexity O(pool)
  [[nodiscard]] auto abandon(timeline_id timeline) -> expected<block_count> {
    guard const hold{*state_};
    return state_->core.abandon(timeline);
  }
  /// Moves blocks so that those in use have the lowest numbers. The moves must run, in order, before the next step.
  /// \errors errc::plan_open, errc::views_in_flight while a step or its ticket is pending, errc::not_supported where groups
  /// share one memory. \complexity O(pool). \source S15
  [[nodiscard]] auto compact() -> expected<std::vector<action>> {
    guard const hold{*state_};
    return state_->core.compact();
  }

  /// Proves every invariant of the cache, or names the first one that is broken. \complexity O(pool · depth). \source B12
  [[nodiscard]] auto audit() const -> expected<void, std::string> {
    guard const hold{*state_};
    auto broken = state_->core.audit();
    if (!broken.empty()) { return tl::unexpected<std::string>{std::move(broken)}; }
    return {};
  }

  /// Counters, as a value.
  [[nodiscard]] auto statistics() const -> cache_statistics {
    guard const hold{*state_};
    return state_->core.statistics();
  }
  /// Blocks of layer group \p group, counted. \pre there is such a group
  [[nodiscard]] auto figures(group_id group) const
      -> group_figures { // a shim: `reserved` and `draining` are not counted
    auto const& core = state_->core;
    if (auto const w = core.window_number(group)) {
      auto const& window = core.window(*w);
      return {.capacity = window.pool().capacity(),
              .free = window.pool().free_blocks(),
              .evictable = window.idle(),
              .available = window.available(),
              .promised = block_count{window.promised()},
              .lost = window.lost(),
              .published = window.idle()};
    }
    return {.capacity = core.pool().capacity(),
            .free = core.pool().free_blocks(),
            .evictable = core.evictable(),
            .available = core.available(),
            .promised = core.promised(),
            .waiting = core.waiting(),
            .lost = core.lost(),
            .published = core.index().cached()};
  }
  /// Sequences alive.
  [[nodiscard]] auto live_sequences() const -> sequence_count {
    return sequence_count{static_cast<std::uint32_t>(state_->core.live())};
  }
  /// [tokens] per block.
  [[nodiscard]] auto block_tokens() const -> token_count { return token_count{state_->core.geometry().block_tokens()}; }
  /// [tokens] of the smallest prefix that can be found again, and what every hit is a multiple of (less the last position of a
  /// whole prompt, S22): the least common multiple of the groups' block sizes. \source S29; case 59
  [[nodiscard]] auto reuse_alignment() const -> token_count { return token_count{state_->core.alignment()}; }
  /// [tokens] that one step may add to a sequence, within its budget.
  [[nodiscard]] auto append_limit() const -> token_count { return token_count{state_->core.append_limit()}; }
  /// Layer groups.
  [[nodiscard]] auto groups() const -> std::uint32_t {
    return static_cast<std::uint32_t>(state_->core.options().groups.size());
  }
  /// State of \p block of layer group \p group. \pre it belongs to the group's pool.
  [[nodiscard]] auto block_state_of(group_id group, block_id block) const {
    auto const w = state_->core.window_number(group);
    return w ? state_->core.window(*w).pool().state(block) : state_->core.pool().state(block);
  }
  /// The prefix index, to look up keys and digests; do not change it.
  [[nodiscard]] auto index() const -> index_type const& { return state_->core.index(); }
  /// The eviction policy, for those that must be told something (`optimal_eviction`).
  [[nodiscard]] auto eviction() -> typename Policies::eviction& { return state_->core.index().eviction(); }
  /// The fence, for issuing and completing tickets.
  [[nodiscard]] auto fence() -> typename Policies::fence& { return state_->core.fence(); }
  /// The observer.
  [[nodiscard]] auto observing() -> typename Policies::observer& { return state_->core.observer(); }

private:
  static auto sized(block_count blocks) -> block_count {
    if (blocks.value() == 0 && !core_type::shares_memory) {
      throw config_error{"kv_cache: 0 blocks: set cache_options::blocks, or give a model and cache_options::bytes"};
    }
    return blocks;
  }
  /// \pre \p s is a live handle of this cache.
  auto checked(sequence const& s) const -> record_type& {
    QUIRE_EXPECTS(s.state_ == state_.get());
    return s.record();
  }
  auto end(sequence&& s, end_event why) -> void {
    auto& record = checked(s);
    guard const hold{*state_};
    s.state_ = nullptr;
    static_cast<void>(state_->core.end(record, why));
  }

  std::unique_ptr<state> state_;
};

} // namespace quire
