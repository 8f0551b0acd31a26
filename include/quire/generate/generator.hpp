// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The generation loop (S39) over a cache and a model, for many requests at once.
///
/// ```text
///   submit ─▶ waiting ──admit: reuse──▶ running ──────────── step ────────────▶ over ─▶ take
///               ▲                          │   plan, launch, forward, commit
///               └──────── preempted ───────┘   choose ─▶ record ─▶ stop?
/// ```
///
/// One step serves every member once: a chunk of its prompt, its last output, or its last output and some guesses. Each has
/// its own sequence, length, choice and stop rules; its row in the batch means nothing and changes when members come and
/// go (S19). A chosen token is not a cached token: after G outputs a sequence covers P + G − 1 positions (S41).
///
/// Four parts own what there is: `generation_queue` who waits and who runs, `step_batch` what is fed, `speculation` the
/// guesses, `output_log` what is said. This class leads one member after the other through them.
///
/// The loop is exact: chunks, batches, order of rows, forks, guesses, preemption and cancelled neighbours change how much
/// is computed and when, never which tokens come out.

#include <quire/cache/cache_options.hpp>
#include <quire/cache/step.hpp>
#include <quire/core/contract.hpp>
#include <quire/core/errc.hpp>
#include <quire/core/expected.hpp>
#include <quire/core/types.hpp>
#include <quire/generate/concepts.hpp>
#include <quire/generate/detail/cache_calls.hpp>
#include <quire/generate/detail/generation_queue.hpp>
#include <quire/generate/detail/generation_record.hpp>
#include <quire/generate/detail/generation_registry.hpp>
#include <quire/generate/detail/output_log.hpp>
#include <quire/generate/detail/request_limits.hpp>
#include <quire/generate/detail/speculation.hpp>
#include <quire/generate/detail/step_batch.hpp>
#include <quire/generate/fwd.hpp>
#include <quire/generate/generation_request.hpp>
#include <quire/generate/generation_result.hpp>
#include <quire/generate/generator_options.hpp>
#include <quire/generate/no_drafter.hpp> // IWYU pragma: keep, a default
#include <quire/generate/random_state.hpp>
#include <quire/generate/steady_clock.hpp> // IWYU pragma: keep, a default
#include <quire/generate/stop_rules.hpp>
#include <quire/generate/types.hpp>
#include <quire/model/work.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility> // std::move
#include <vector>

namespace quire {

/// Generates. \tparam Cache a `kv_cache` \tparam Model models `language_model` \tparam Clock models `clock`
/// \tparam Drafter models `drafter`
template <class Cache, class Model, class Clock, class Drafter>
class generator {
  static_assert(language_model<Model>,
                "generator: Model must model quire::language_model (docs/concepts/language_model.md)");
  static_assert(clock<Clock>, "generator: Clock must model quire::clock (docs/concepts/clock.md)");
  static_assert(drafter<Drafter>, "generator: Drafter must model quire::drafter (generate/concepts.hpp)");

public:
  /// A request's hold on the cache.
  using sequence = typename Cache::sequence;

  /// Serves from \p cache through \p model; both outlive it. \throws std::bad_alloc
  generator(Cache& cache, Model& model, generator_options const& options = {}, Clock clock = {}, Drafter drafter = {})
      : cache_{&cache}, model_{&model}, options_{options}, clock_{std::move(clock)}, queue_{cache, options},
        batch_{cache, options.chunk, model.vocabulary()},
        guesses_{options.draft, model.vocabulary(), std::move(drafter)}, log_{options, model.vocabulary()} {}

  /// Accepts a request; it waits until there is room.
  /// \errors errc::empty_prompt, errc::zero_output; errc::out_of_range for a token that the model does not know;
  ///   errc::never_fits beyond the model's positions or the pool; nothing has changed then
  /// \throws config_error if the sampling options are impossible \source S39
  [[nodiscard]] auto submit(generation_request request) -> expected<generation_id, generation_refusal> {
    auto const limits = detail::request_limits{.vocabulary = model_->vocabulary(),
                                               .positions = model_->max_positions(),
                                               .pool = detail::pool_positions(*cache_)};
    if (auto wrong = limits.fault_of(request)) { return tl::unexpected<generation_refusal>{std::move(*wrong)}; }
    auto& m = add(std::move(request));
    queue_.wait(m);
    return m.id;
  }

  /// Accepts \p count samples of one request: the prompt is computed once, its output state serves all of them, and each
  /// goes on as a fork with a random sibling of the request's state. \returns their names; the first one is the request
  /// \errors as `submit` \pre `count > 0` and the request has no outputs yet \source S22, S23, B7
  [[nodiscard]] auto submit_samples(generation_request request, std::uint32_t count)
      -> expected<std::vector<generation_id>, generation_refusal> {
    QUIRE_EXPECTS(count > 0 && request.state.output.empty());
    auto const random = request.state.random;
    auto out = std::vector<generation_id>(count);
    auto const first = submit(request);
    if (!first) { return tl::unexpected<generation_refusal>{first.error()}; }
    auto& leader = registry_.record_of(*first);
    out[0] = *first;
    for (std::uint32_t i = 1; i < count; ++i) {
      request.state.random = random.sibling(i);
      auto& m = add(request);
      queue_.follow(leader, m);
      out[i] = m.id;
    }
    return out;
  }

  /// A new generation that shares everything \p parent has, and goes on with \p random.
  /// \errors errc::illegal_transition unless \p parent runs, errc::too_many_rows if the batch is full; as `Cache::fork`
  /// \source B7
  [[nodiscard]] auto fork(generation_id parent, random_state random) -> expected<generation_id> {
    auto& from = registry_.record_of(parent);
    if (!from.seq || from.stray || from.closing != stop_reason::none) { return refuse(errc::illegal_transition); }
    if (!queue_.has_place()) { return refuse(errc::too_many_rows); }
    queue_.reserve(1);
    auto forked = cache_->fork(from.seq);
    if (!forked) { return refuse(forked.error()); }
    auto request = from.request;
    request.state = from.result.state;
    request.state.random = random;
    request.entry = std::nullopt;
    auto& m = add(std::move(request));
    enter_as_fork(m, from, std::move(*forked));
    return m.id;
  }

  /// Ends a generation whose client gave up. \returns false if it was over already
  auto cancel(generation_id id) -> bool { return queue_.end_early(registry_.record_of(id), stop_reason::cancelled); }
  /// Ends a generation that took too long. \returns false if it was over already
  auto time_out(generation_id id) -> bool { return queue_.end_early(registry_.record_of(id), stop_reason::timed_out); }

  /// Serves every member once. Each step is committed with a ticket behind its forward pass; under a fence that is not
  /// immediate, the model or the engine completes it.
  /// \returns the outputs of this step, valid until the next one
  /// \errors what the model or `Cache::plan_step` refuses: no length has advanced, and the step may be repeated;
  ///   errc::no_blocks or errc::too_many_sequences if nobody runs and the first in the queue finds no room
  /// \throws std::bad_alloc, before anything has advanced \source S26, S39
  auto step() -> expected<std::span<emitted_token const>> {
    log_.begin();
    queue_.preempt_strays();
    expire();
    auto const blocked = admit_waiting();
    if (queue_.running().empty()) {
      if (blocked != errc::ok && log_.emitted().empty()) { return refuse(blocked); }
      return log_.emitted();
    }
    batch_.gather(queue_.running(), [this](record& m) { return guesses_.guess(m); });
    auto plan = batch_.plan();
    if (!plan) { return refuse(plan.error()); }
    reserve_outputs();
    if (auto const done = batch_.run(*plan, *model_); !done) { return refuse(done.error()); } // the plan drops itself
    static_cast<void>(detail::commit_behind(*cache_, std::move(*plan))); // nothing can have ended it meanwhile
    auto const now = clock_.now();
    for (auto const& r : batch_.rows()) {
      if (r.status == errc::ok) { settle(r, now); }
    }
    queue_.preempt_strays();
    if (!queue_.make_room(batch_.rows())) { return refuse(errc::no_blocks); }
    return log_.emitted();
  }
  /// Steps until everybody is over. \errors as `step`
  auto run() -> expected<void> {
    while (!idle()) {
      if (auto const done = step(); !done) { return refuse(done.error()); }
    }
    return {};
  }

  /// True if nobody runs or waits.
  [[nodiscard]] auto idle() const noexcept -> bool { return queue_.running().empty() && queue_.waiting() == 0; }
  /// The batch, in the order of its rows.
  [[nodiscard]] auto running() const -> std::vector<generation_id> {
    auto out = std::vector<generation_id>{};
    for (auto const* m : queue_.running()) { out.push_back(m->id); }
    return out;
  }
  /// How many wait for room.
  [[nodiscard]] auto waiting() const noexcept -> std::size_t { return queue_.waiting(); }
  /// Puts the members into another order, as an engine does that compacts its rows. Results do not depend on it.
  /// \pre \p order is a permutation of `running()` \source S19
  auto reorder(std::span<generation_id const> order) -> void {
    auto next = std::vector<record*>{};
    for (auto const id : order) { next.push_back(&registry_.record_of(id)); }
    queue_.reorder(std::move(next));
  }

  /// What there is to know about \p id. Valid until it is taken. \pre it was not taken
  [[nodiscard]] auto result(generation_id id) const -> generation_result const& {
    return registry_.record_of(id).result;
  }
  /// The sequence of \p id; nothing unless it runs.
  [[nodiscard]] auto sequence_of(generation_id id) const -> sequence const* {
    auto const& m = registry_.record_of(id);
    return m.seq ? &m.seq : nullptr;
  }
  /// Hands out the result of \p id and forgets it. \pre it is over and was not taken
  [[nodiscard]] auto take(generation_id id) -> generation_result { return registry_.take(id); }

  /// Work of all forward passes so far. \source S8
  [[nodiscard]] auto computed() const noexcept -> work const& { return log_.computed(); }
  /// Work that the same outputs would have taken without any cache. A count of operations, no speed-up. \source S8
  [[nodiscard]] auto recompute() const noexcept -> work const& { return log_.recompute(); }
  /// Tells the cache that the weights have changed, and forgets kept output states. \source S35
  auto advance_epoch(running_requests rule) -> void {
    cache_->advance_epoch(rule);
    log_.forget();
  }
  /// The clock.
  [[nodiscard]] auto time_source() noexcept -> Clock& { return clock_; }
  /// The drafter.
  [[nodiscard]] auto guesser() noexcept -> Drafter& { return guesses_.guesser(); }
  /// The options.
  [[nodiscard]] auto options() const noexcept -> generator_options const& { return options_; }

private:
  using record = detail::generation_record<sequence>;
  using row = detail::step_row<record>;

  auto add(generation_request request) -> record& {
    return registry_.add(std::move(request), clock_.now(), options_.draft);
  }
  auto note_admission(record& m) -> void {
    if (auto& t = m.result.times; !t.admitted) { t.admitted = clock_.now(); }
  }
  /// \p m goes on from what \p parent has, through \p seq. \pre the queue has reserved a place
  auto enter_as_fork(record& m, record const& parent, sequence seq) -> void {
    m.drafts = parent.drafts;
    queue_.enter(m, std::move(seq));
    m.result.cached = m.result.covered;
    note_admission(m);
  }
  auto expire() -> void {
    if (!registry_.has_limits()) { return; }
    auto const now = clock_.now();
    while (auto* const m = registry_.late(now)) { queue_.end_early(*m, stop_reason::timed_out); }
  }
  /// Lets in who waits, in order. \returns why the first one has to wait
  auto admit_waiting() -> errc {
    for (;;) {
      auto const admitted = queue_.admit_next();
      if (!admitted) { return admitted.error(); }
      if (*admitted == nullptr) { return errc::ok; }
      note_admission(**admitted);
      static_cast<void>(answer_from_kept(**admitted));
    }
  }
  /// Makes room for all that this step may say, samples that begin in it included.
  auto reserve_outputs() -> void {
    std::size_t followers = 0;
    for (auto const& r : batch_.rows()) {
      if (r.status == errc::ok && r.outputs > 0) { followers += r.of->followers.size(); }
    }
    log_.reserve(batch_.outputs() + followers);
    queue_.reserve(followers);
  }

  /// What a committed step means for one member.
  auto settle(row const& r, instant now) -> void {
    auto& m = *r.of;
    log_.count(m, token_pos{r.length}, token_count{r.tokens});
    m.result.covered = m.seq.length();
    if (m.closing != stop_reason::none) {
      if (m.pending() == 0) { queue_.finish(m, m.closing); }
      return;
    }
    if (r.outputs == 0) { return; }
    auto const first = m.result.state.output.empty();
    std::uint32_t outputs = 0;
    auto reason = stop_reason::none;
    while (reason == stop_reason::none && outputs < r.outputs) {
      reason = log_.say(m, batch_.logits(r, outputs), now);
      if (reason == stop_reason::failed) { break; }
      ++outputs;
      if (!guesses_.confirmed(m, outputs)) { break; }
    }
    if (r.outputs > 1 && reason != stop_reason::failed) {
      guesses_.keep_verified(*cache_, m, token_count{r.length}, token_count{outputs});
    }
    if (first && outputs > 0) { share_prompt(m, batch_.logits(r, 0), now); }
    if (reason != stop_reason::none) { stop(m, reason); }
  }
  auto stop(record& m, stop_reason why) -> void {
    if (m.request.last_output == last_output_rule::forward && why != stop_reason::failed) {
      m.closing = why;
    } else {
      queue_.finish(m, why);
    }
  }
  /// The prompt of \p m is computed and \p logits stand behind it: keeps them, and starts the samples that wait for it.
  auto share_prompt(record& m, std::span<float const> logits, instant now) -> void {
    log_.keep(m, logits);
    while (!m.followers.empty() && queue_.has_place()) {
      auto forked = cache_->fork(m.seq);
      if (!forked) { break; }
      auto& follower = queue_.next_follower(m);
      enter_as_fork(follower, m, std::move(*forked));
      if (auto const reason = log_.say(follower, logits, now); reason != stop_reason::none) { stop(follower, reason); }
    }
    queue_.disband(m);
  }
  /// Answers a prompt whose every block is resident from kept logits, without a forward pass: position P − 1 is taken
  /// over as it lies in the shared block (S22). \returns false if the prompt has to be computed as usual
  auto answer_from_kept(record& m) -> bool {
    auto const prompt = m.result.state.prompt.size();
    if (options_.kept_outputs == 0 || m.text.size() != prompt) { return false; }
    if (m.pending() != 1) { return false; } // windows want more computed again
    if (std::size_t{m.seq.shared_blocks().value()} * cache_->block_tokens().value() != prompt) { return false; }
    auto const logits = log_.recall(m);
    if (logits.empty()) { return false; }
    auto plan = cache_->plan_step({{m.seq, std::span<token_id const>{m.text}.last(1), step_source::load}});
    if (!plan || plan->results()[0].status != errc::ok || !detail::writes_nothing(*plan)) { return false; }
    log_.reserve(1 + m.followers.size());
    queue_.reserve(m.followers.size());
    if (!model_->run(plan->launch())) { return false; }
    static_cast<void>(detail::commit_behind(*cache_, std::move(*plan)));
    m.result.cached = m.result.covered = m.seq.length();
    auto const now = clock_.now();
    auto const reason = log_.say(m, logits, now);
    share_prompt(m, logits, now);
    if (reason != stop_reason::none) { stop(m, reason); }
    return true;
  }

  Cache* cache_;
  Model* model_;
  generator_options options_;
  [[no_unique_address]] Clock clock_;
  detail::generation_registry<record> registry_;
  detail::generation_queue<Cache> queue_;
  detail::step_batch<Cache> batch_;
  detail::speculation<Drafter> guesses_;
  detail::output_log log_;
};

} // namespace quire
