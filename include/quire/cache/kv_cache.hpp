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
#include <quire/cache/admission.hpp>
#include <quire/cache/cache_options.hpp>
#include <quire/cache/concepts.hpp>
#include <quire/cache/detail/admitter.hpp>
#include <quire/cache/detail/audit.hpp>
#include <quire/cache/detail/cache_core.hpp>
#include <quire/cache/detail/cache_state.hpp>
#include <quire/cache/detail/compact.hpp>
#include <quire/cache/detail/figures.hpp>
#include <quire/cache/detail/fit_groups.hpp>
#include <quire/cache/detail/lifetime.hpp>
#include <quire/cache/detail/step_slot.hpp>
#include <quire/cache/detail/stepper.hpp>
#include <quire/cache/detail/timeline_loss.hpp>
#include <quire/cache/fwd.hpp>
#include <quire/cache/group_figures.hpp>
#include <quire/cache/lock.hpp>
#include <quire/cache/policies.hpp> // IWYU pragma: keep, a default
#include <quire/cache/preemption.hpp>
#include <quire/cache/refusal.hpp>
#include <quire/cache/requests.hpp>
#include <quire/cache/sequence.hpp>
#include <quire/cache/step_plan.hpp>
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
#include <quire/model/cache_layout.hpp>
#include <quire/model/model_spec.hpp>
#include <quire/observe/cache_statistics.hpp>
#include <quire/observe/concepts.hpp>
#include <quire/prefix/concepts.hpp>
#include <quire/sequence/concepts.hpp>
#include <quire/view/action.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
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
  static_assert(request_lifecycle<typename Policies::request_states>,
                "kv_cache: request_states must model quire::request_lifecycle (docs/concepts/lifecycle_policy.md)");
  static_assert(prefix_index<typename Policies::template index<typename Policies::eviction, typename Policies::digest>>,
                "kv_cache: index must model quire::prefix_index (docs/concepts/prefix_index.md)");
  static_assert(lock_policy<typename Policies::lock>,
                "kv_cache: lock must model quire::lock_policy (docs/concepts/lock_policy.md)");
  static_assert(observer<typename Policies::observer>,
                "kv_cache: observer must model quire::observer (docs/concepts/observer.md)");

  static_assert(retention_policy<typename Policies::retention>,
                "kv_cache: retention must model quire::retention_policy (docs/concepts/retention_policy.md)");
  static_assert(cache_policies<Policies>);

  using core_type = detail::cache_core<Policies>;
  using state = detail::cache_state<Policies>;
  using guard = detail::cache_guard<Policies>;
  using record_type = typename core_type::record_type;
  using slot_type = typename core_type::slot_type;
  using end_event = typename core_type::request_event_type;

public:
  /// The digest policy.
  using digest_type = typename Policies::digest;
  /// The admission policy.
  using admission_type = typename Policies::admission;
  /// The observer.
  using observer_type = typename Policies::observer;
  /// The prefix index.
  using index_type = typename core_type::index_type;
  /// One request's hold on the cache.
  using sequence = cache_sequence<Policies>;
  /// What one step does with one sequence.
  using step_item = cache_step_item<Policies>;
  /// A step that is planned or launched.
  using step_plan = cache_step_plan<Policies>;

  /// A cache of a fixed number of blocks, for those who size it themselves.
  /// \throws config_error if an option is impossible.
  explicit kv_cache(cache_options const& options, digest_type digest = {}, admission_type admission = {},
                    observer_type observer = {})
      : state_{std::make_unique<state>(sized(options), digest, std::move(admission), std::move(observer))} {}

  /// A cache for \p model: its layer groups with what each retains, and as many blocks as `options.bytes` hold. They are
  /// split so that sequences of `options.max_context` positions (the model's longest, if it is 0 and one fits) find room in
  /// all groups; what is left goes to those that keep everything. Groups or blocks that \p options give are taken as they are.
  /// \throws config_error if an option is impossible or not one block fits.
  explicit kv_cache(model_spec const& model, cache_options options, digest_type digest = {},
                    admission_type admission = {}, observer_type observer = {})
      : kv_cache{detail::group_fit{model, std::move(options), core_type::shares_memory}.options(), digest,
                 std::move(admission), std::move(observer)} {}

  /// Leaves \p other without a cache.
  kv_cache(kv_cache&& other) noexcept : state_{std::move(other.state_)} {}
  /// Takes the cache of \p other. \pre no handle of this one is left
  auto operator=(kv_cache&& other) noexcept -> kv_cache& {
    check_unused();
    state_ = std::move(other.state_);
    return *this;
  }
  /// \pre no handle of it is left: each of them refers to the cache.
  ~kv_cache() { check_unused(); }

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
  /// scope. \throws std::bad_alloc with nothing opened. \complexity O(key) on average. \source S33, S36
  [[nodiscard]] auto open_scope(compute_identity const& identity, sharing_domain const& domain) -> scope_number {
    guard const hold{*state_};
    auto& core = state_->core;
    return core.scopes.open(scope_key{digest_scheme::of<digest_type>(), core.options.block_tokens, identity, domain});
  }

  /// Lets a request in: finds and pins its longest resident prefix and promises it its budget.
  /// \errors a `refusal` with the figures; nothing has changed then
  /// \throws std::bad_alloc with nothing changed. \complexity one comparison of the prompt + O(nodes)
  /// \source S17, S21, S22, S26 (1)
  [[nodiscard]] auto admit(admit_request const& request) -> expected<sequence, refusal> {
    guard const hold{*state_};
    return detail::admitter<Policies>{state_->core}.admit(request).map(
        [this](record_type* r) { return sequence{state_.get(), *r}; });
  }

  /// Plans one step over many sequences, with an answer per item: an item that cannot be served is left out and changes
  /// nothing. \errors errc::plan_open if another plan is not launched; errc::views_in_flight
  /// \throws std::bad_alloc with nothing changed. Allocates nothing in a steady decode.
  /// \complexity O(items + new blocks). \source S18, S19, S26 (2, 3)
  [[nodiscard]] auto plan_step(std::span<step_item const> items, timeline_id timeline = timeline_id{0})
      -> expected<step_plan> {
    guard const hold{*state_};
    auto steps = detail::stepper<Policies>{state_->core};
    return steps.begin(timeline).map([&](slot_type* slot) {
      struct undo { // drops the plan if building it throws
        detail::stepper<Policies>* steps;
        slot_type* slot;
        ~undo() {
          if (slot != nullptr) { steps->drop(*slot); }
        }
      } on_error{&steps, slot};
      steps.add(*slot, items.size(), [&](std::size_t i) { return step_plan::wanted_of(*state_, items[i]); });
      on_error.slot = nullptr;
      return step_plan{state_.get(), *slot};
    });
  }

  /// An empty plan, to which items are added one by one: a scheduler can preempt one request at the moment something is short
  /// and go on. The same items give the same plan as with `plan_step`. \errors as `plan_step`. \source B23
  [[nodiscard]] auto begin_step(timeline_id timeline = timeline_id{0}) -> expected<step_plan> {
    guard const hold{*state_};
    return detail::stepper<Policies>{state_->core}.begin(timeline).map(
        [this](slot_type* slot) { return step_plan{state_.get(), *slot}; });
  }

  /// The same for a list of items.
  [[nodiscard]] auto plan_step(std::initializer_list<step_item> items, timeline_id timeline = timeline_id{0})
      -> expected<step_plan> {
    return plan_step(std::span{items.begin(), items.size()}, timeline);
  }

  /// Makes a launched step count: lengths advance, full blocks publish, statistics are born.
  /// \param until ticket of the step's work on its timeline, issued by the fence.
  /// \pre \p plan is launched and belongs to this cache. \errors errc::stale if a sequence of the step ended meanwhile:
  /// the others are committed, nothing of the ended one is published. \source S26 (4), B17
  [[nodiscard]] auto commit(step_plan&& plan, ticket until) -> expected<void> {
    QUIRE_EXPECTS(plan.state_ == state_.get());
    auto& slot = plan.slot();
    QUIRE_EXPECTS(slot.phase == detail::step_phase::launched);
    QUIRE_EXPECTS(until <= state_->core.clock.issued(slot.timeline));
    guard const hold{*state_};
    plan.state_ = nullptr;
    if (!detail::stepper<Policies>{state_->core}.commit(slot, until)) { return refuse(errc::stale); }
    return {};
  }
  /// The same where work is over when the call that started it returns; other fences need a ticket.
  [[nodiscard]] auto commit(step_plan&& plan) -> expected<void>
    requires core_type::immediate
  {
    return commit(std::move(plan), ticket{});
  }

  /// Tells ids of positions that were committed without. \errors errc::out_of_range; errc::plan_open;
  /// errc::other_tokens if a position lies in a shared block that stores another token. Nothing has changed then. \source B17
  [[nodiscard]] auto resolve(sequence const& s, std::span<token_id const> ids) -> expected<void> {
    auto& record = checked(s);
    guard const hold{*state_};
    return detail::resolve(state_->core, record, ids);
  }

  /// A new sequence that shares everything \p parent has committed. \errors errc::plan_open, errc::no_blocks,
  /// errc::too_many_sequences. \complexity O(blocks). \source S23, B7
  [[nodiscard]] auto fork(sequence const& parent) -> expected<sequence> { return fork(parent, parent.length()); }
  /// A new sequence that shares the first \p length positions of \p parent. \errors as above; errc::out_of_range
  [[nodiscard]] auto fork(sequence const& parent, token_count length) -> expected<sequence> {
    auto& record = checked(parent);
    guard const hold{*state_};
    return detail::fork(state_->core, record, length.value()).map([this](record_type* r) {
      return sequence{state_.get(), *r};
    });
  }

  /// Cuts a sequence back to its first \p length positions; what is shared stays shared. Length 0 empties it.
  /// \errors errc::out_of_range beyond the length; errc::plan_open; errc::no_blocks if what is cut off stays in use by others
  /// and the budget that it opens again does not fit beside what is promised. Nothing has changed then. \source B6
  [[nodiscard]] auto truncate(sequence const& s, token_count length) -> expected<void> {
    auto& record = checked(s);
    guard const hold{*state_};
    return detail::truncate(state_->core, record, length.value());
  }
  /// The first length from \p target on to which \p s can be cut back and go on: windows that moved on have given up what
  /// shorter ones need. \errors errc::out_of_range beyond the length; errc::not_resident if there is none. \source S30
  [[nodiscard]] auto resumable_length(sequence const& s, token_count target) const -> expected<token_count> {
    auto& record = checked(s);
    guard const hold{*state_};
    if (target > s.length()) { return refuse(errc::out_of_range); }
    auto const length = detail::resumable(state_->core, record, target.value());
    if (!length) { return refuse(errc::not_resident); }
    return token_count{*length};
  }
  /// Cuts off the last \p count positions. \errors as `truncate`
  [[nodiscard]] auto drop_last(sequence const& s, token_count count) -> expected<void> {
    if (count > s.length()) { return refuse(errc::out_of_range); }
    return truncate(s, s.length() - count);
  }

  /// Ends a request that is done. Legal in every state of a live request. \complexity O(nodes + private blocks)
  auto release(sequence&& s) -> void { end(std::move(s), end_event::finish); }
  /// Ends a request whose client gave up.
  auto cancel(sequence&& s) -> void { end(std::move(s), end_event::cancel); }
  /// Ends a request that took too long.
  auto time_out(sequence&& s) -> void { end(std::move(s), end_event::time_out); }
  /// Takes a request's blocks away for others. It resumes by `admit` with all its tokens and `resumed` set, so that what
  /// it finds of its own work is not counted as a hit. \returns what comes back now, and what after which tickets.
  /// \errors errc::illegal_transition if nothing is computed yet; the handle stays usable then.
  /// \throws std::bad_alloc. \complexity as `release`, and `figures` twice. \source S24
  [[nodiscard]] auto preempt(sequence& s) -> expected<preemption> {
    auto& record = checked(s);
    guard const hold{*state_};
    auto done = detail::preempt(state_->core, record);
    if (done) { s.state_ = nullptr; }
    return done;
  }

  /// Frees what waited for tickets that are reached by now; admissions and plans do it too.
  auto reclaim() -> void {
    guard const hold{*state_};
    state_->core.reclaim();
  }
  /// Makes everything cached unreachable at once, because the weights changed: O(1), cannot fail. Work of the old epoch
  /// never publishes, and what it left behind is evicted before anything else. \source S35
  auto advance_epoch(running_requests rule) -> void {
    guard const hold{*state_};
    auto& core = state_->core;
    ++core.epoch;
    core.index.close_roots(); // what nobody can reach any more leaves first, units and blocks of groups
    for (auto& group : core.groups) { group.close_epoch(); }
    if (rule == running_requests::must_restart) { core.restart_below = core.epoch; }
  }
  /// Gives up on a timeline whose tickets will never be reached: unpublishes what was never ready, cuts sequences back to
  /// their last ready length, or to nothing where windows have moved on since, never reuses the blocks it may still write.
  /// \returns blocks given up, of all groups.
  /// \errors errc::plan_open if a plan is open. \complexity O(pool)
  [[nodiscard]] auto abandon(timeline_id timeline) -> expected<block_count> {
    guard const hold{*state_};
    return detail::abandon(state_->core, timeline);
  }
  /// Moves blocks so that those in use have the lowest numbers. The moves must run, in order, before the next step.
  /// \errors errc::plan_open, errc::views_in_flight while a step or its ticket is pending. \throws std::bad_alloc with
  /// nothing moved. \complexity O(pool). \source S15
  [[nodiscard]] auto compact() -> expected<std::vector<action>> {
    guard const hold{*state_};
    return detail::compact(state_->core);
  }

  /// Proves every invariant of the cache, or names the first one that is broken. \complexity O(pool · depth). \source B12
  [[nodiscard]] auto audit() const -> expected<void, std::string> {
    guard const hold{*state_};
    auto broken = detail::auditor<Policies>{state_->core}.first_broken();
    if (!broken.empty()) { return tl::unexpected<std::string>{std::move(broken)}; }
    return {};
  }

  /// Counters, as a value.
  [[nodiscard]] auto statistics() const -> cache_statistics {
    guard const hold{*state_};
    auto out = state_->core.stats.statistics();
    out.hash_collisions = state_->core.index.hash_collisions();
    return out;
  }
  /// Where the blocks of layer group \p group are. \complexity O(1), and one walk over the index while pins of ended
  /// sequences wait for tickets, for which it may throw std::bad_alloc
  [[nodiscard]] auto figures(group_id group) const -> group_figures {
    guard const hold{*state_};
    auto const& core = state_->core;
    auto room = core.pins.size() > 0 ? detail::room_to_drain(core) : std::vector<detail::drained_node>{};
    return detail::figures_of(core, core.groups.part_of(group), detail::draining_units(core, room));
  }
  /// Sequences alive.
  [[nodiscard]] auto live_sequences() const -> sequence_count {
    guard const hold{*state_};
    return sequence_count{static_cast<std::uint32_t>(state_->core.registry.live().size())};
  }
  /// [tokens] per block of layer group \p group.
  [[nodiscard]] auto block_tokens(group_id group = group_id{0}) const -> token_count {
    return token_count{state_->core.groups[state_->core.groups.part_of(group)].geometry().block_tokens()};
  }
  /// [tokens] of the smallest prefix that can be found again, and what every hit is a multiple of (less the last position of a
  /// whole prompt, S22): the least common multiple of the groups' block sizes. \source S29
  [[nodiscard]] auto reuse_alignment() const -> token_count { return token_count{state_->core.unit().block_tokens()}; }
  /// [tokens] that one step may add to a sequence, within its budget.
  [[nodiscard]] auto append_limit() const -> token_count { return token_count{state_->core.append_limit()}; }
  /// Layer groups.
  [[nodiscard]] auto groups() const -> std::uint32_t { return state_->core.groups.layer_groups(); }
  /// State of \p block of layer group \p group. \pre it belongs to the group's pool.
  [[nodiscard]] auto block_state_of(group_id group, block_id block) const {
    return state_->core.groups[state_->core.groups.part_of(group)].pool().state(block);
  }
  /// The prefix index, to look up keys and digests; do not change it.
  [[nodiscard]] auto index() const -> index_type const& { return state_->core.index; }
  /// The eviction policy, for those that must be told something (`optimal_eviction`).
  [[nodiscard]] auto eviction() -> typename Policies::eviction& { return state_->core.index.eviction(); }
  /// The fence, for issuing and completing tickets.
  [[nodiscard]] auto fence() -> typename Policies::fence& { return state_->core.clock.fence(); }
  /// The observer.
  [[nodiscard]] auto observing() -> typename Policies::observer& { return state_->core.watcher; }

private:
  static auto sized(cache_options options) -> cache_options {
    if (options.blocks.value() == 0 && !core_type::shares_memory) {
      throw config_error{"kv_cache: 0 blocks: set cache_options::blocks, or give a model and cache_options::bytes"};
    }
    return options;
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
    static_cast<void>(detail::end(state_->core, record, why));
  }

  auto check_unused() const -> void {
    if (state_ == nullptr) { return; }
    QUIRE_EXPECTS(state_->core.registry.live().empty()); // handles outlive the cache
    QUIRE_EXPECTS(!state_->core.has_open_step());        // so does a plan, launched or not
  }

  std::unique_ptr<state> state_;
};

} // namespace quire
