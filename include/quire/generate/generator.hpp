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
/// The loop is exact: chunks, batches, order of rows, forks, guesses, preemption and cancelled neighbours change how much
/// is computed and when, never which tokens come out.

#include <quire/cache/cache_options.hpp>
#include <quire/cache/requests.hpp>
#include <quire/cache/step.hpp>
#include <quire/core/contract.hpp>
#include <quire/core/errc.hpp>
#include <quire/core/expected.hpp>
#include <quire/core/types.hpp>
#include <quire/generate/concepts.hpp>
#include <quire/generate/forward_batch.hpp>
#include <quire/generate/fwd.hpp>
#include <quire/generate/generation_request.hpp>
#include <quire/generate/generation_result.hpp>
#include <quire/generate/generator_options.hpp>
#include <quire/generate/kept_outputs.hpp>
#include <quire/generate/no_drafter.hpp> // IWYU pragma: keep, a default
#include <quire/generate/random_state.hpp>
#include <quire/generate/steady_clock.hpp> // IWYU pragma: keep, a default
#include <quire/generate/stop_rules.hpp>
#include <quire/generate/token_sampler.hpp>
#include <quire/generate/types.hpp>
#include <quire/model/work.hpp>
#include <quire/view/batch_view.hpp>

#include <algorithm> // std::find, std::max, std::max_element, std::min
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility> // std::exchange, std::move
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
      : cache_{&cache}, model_{&model}, options_{options}, clock_{std::move(clock)}, drafter_{std::move(drafter)},
        kept_{options.kept_outputs} {
    sampler_.reserve(model.vocabulary());
  }

  /// Accepts a request; it waits until there is room.
  /// \errors errc::empty_prompt, errc::zero_output; errc::out_of_range for a token that the model does not know;
  ///   errc::never_fits beyond the model's positions or the pool; nothing has changed then
  /// \throws config_error if the sampling options are impossible \source S39
  [[nodiscard]] auto submit(generation_request request) -> expected<generation_id, generation_refusal> {
    if (auto wrong = fault_of(request)) { return tl::unexpected<generation_refusal>{std::move(*wrong)}; }
    auto& m = add(std::move(request));
    waiting_.push_back(&m);
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
    auto& leader = member_of(*first);
    out[0] = *first;
    for (std::uint32_t i = 1; i < count; ++i) {
      request.state.random = random.sibling(i);
      auto& m = add(request);
      m.leader = *first;
      leader.followers.push_back(&m);
      out[i] = m.id;
    }
    return out;
  }

  /// A new generation that shares everything \p parent has, and goes on with \p random.
  /// \errors errc::illegal_transition unless \p parent runs, errc::too_many_rows if the batch is full; as `Cache::fork`
  /// \source B7
  [[nodiscard]] auto fork(generation_id parent, random_state random) -> expected<generation_id> {
    auto& from = member_of(parent);
    if (!from.seq || from.stray || from.closing != stop_reason::none) { return refuse(errc::illegal_transition); }
    if (running_.size() >= options_.max_members) { return refuse(errc::too_many_rows); }
    auto forked = cache_->fork(from.seq);
    if (!forked) { return refuse(forked.error()); }
    auto request = from.request;
    request.state = from.result.state;
    request.state.random = random;
    request.entry = std::nullopt;
    auto& m = add(std::move(request));
    m.drafts = from.drafts;
    m.seq = std::move(*forked);
    m.result.cached = m.result.covered = m.seq.length();
    enter(m);
    return m.id;
  }

  /// Ends a generation whose client gave up. \returns false if it was over already
  auto cancel(generation_id id) -> bool { return end_early(member_of(id), stop_reason::cancelled); }
  /// Ends a generation that took too long. \returns false if it was over already
  auto time_out(generation_id id) -> bool { return end_early(member_of(id), stop_reason::timed_out); }

  /// Serves every member once.
  /// \returns the outputs of this step, valid until the next one
  /// \errors what the model or `Cache::plan_step` refuses: no length has advanced, and the step may be repeated;
  ///   errc::no_blocks or errc::too_many_sequences if nobody runs and the first in the queue finds no room
  /// \throws std::bad_alloc, before anything has advanced \source S26, S39
  auto step() -> expected<std::span<emitted_token const>> {
    emitted_.clear();
    kept_copies_.clear();
    preempt_strays();
    expire();
    if (auto const blocked = admit_waiting(); blocked != errc::ok && running_.empty() && emitted_.empty()) {
      return refuse(blocked);
    }
    if (running_.empty()) { return std::span<emitted_token const>{emitted_}; }
    gather();
    auto plan = cache_->plan_step(items_);
    if (!plan) { return refuse(plan.error()); }
    prepare(plan->results());
    views_.clear();
    for (std::uint32_t g = 0; cache_->groups() > 1 && g < cache_->groups(); ++g) {
      views_.push_back(plan->view(group_id{g}));
    }
    if (auto const done = model_->run(plan->launch()); !done) { return refuse(done.error()); } // the plan drops itself
    if (!tokens_.empty()) {
      auto const batch = forward_batch{
          .view = plan->view(), .groups = views_, .tokens = tokens_, .wanted = wanted_, .logits = logits_, .of = of_};
      if (auto const done = model_->forward(batch); !done) { return refuse(done.error()); }
    }
    static_cast<void>(cache_->commit(std::move(*plan))); // nothing can have ended it meanwhile
    auto const now = clock_.now();
    for (auto const& row : rows_) {
      if (row.status == errc::ok) { settle(row, now); }
    }
    preempt_strays();
    return make_room() ? expected<std::span<emitted_token const>>{std::span<emitted_token const>{emitted_}}
                       : refuse(errc::no_blocks);
  }
  /// Steps until everybody is over. \errors as `step`
  auto run() -> expected<void> {
    while (!idle()) {
      if (auto const done = step(); !done) { return refuse(done.error()); }
    }
    return {};
  }

  /// True if nobody runs or waits.
  [[nodiscard]] auto idle() const noexcept -> bool { return running_.empty() && waiting_.empty(); }
  /// The batch, in the order of its rows.
  [[nodiscard]] auto running() const -> std::vector<generation_id> {
    auto out = std::vector<generation_id>{};
    for (auto const* m : running_) { out.push_back(m->id); }
    return out;
  }
  /// How many wait for room.
  [[nodiscard]] auto waiting() const noexcept -> std::size_t { return waiting_.size(); }
  /// Puts the members into another order, as an engine does that compacts its rows. Results do not depend on it.
  /// \pre \p order is a permutation of `running()` \source S19
  auto reorder(std::span<generation_id const> order) -> void {
    QUIRE_EXPECTS(order.size() == running_.size());
    auto next = std::vector<member*>{};
    for (auto const id : order) {
      auto& m = member_of(id);
      QUIRE_EXPECTS(m.seq && std::find(next.begin(), next.end(), &m) == next.end());
      next.push_back(&m);
    }
    running_ = std::move(next);
  }

  /// What there is to know about \p id. Valid until it is taken. \pre it was not taken
  [[nodiscard]] auto result(generation_id id) const -> generation_result const& { return member_of(id).result; }
  /// The sequence of \p id; nothing unless it runs.
  [[nodiscard]] auto sequence_of(generation_id id) const -> sequence const* {
    auto const& m = member_of(id);
    return m.seq ? &m.seq : nullptr;
  }
  /// Hands out the result of \p id and forgets it. \pre it is over and was not taken
  [[nodiscard]] auto take(generation_id id) -> generation_result {
    auto& m = member_of(id);
    QUIRE_EXPECTS(m.result.over());
    auto out = std::move(m.result);
    members_[index_of(id)].reset();
    vacant_.push_back(index_of(id));
    return out;
  }

  /// Work of all forward passes so far. \source S8
  [[nodiscard]] auto computed() const noexcept -> work const& { return computed_; }
  /// Work that the same outputs would have taken without any cache. A count of operations, no speed-up. \source S8
  [[nodiscard]] auto recompute() const noexcept -> work const& { return recompute_; }
  /// Tells the cache that the weights have changed, and forgets kept output states. \source S35
  auto advance_epoch(running_requests rule) -> void {
    cache_->advance_epoch(rule);
    kept_.forget();
  }
  /// The clock.
  [[nodiscard]] auto time_source() noexcept -> Clock& { return clock_; }
  /// The drafter.
  [[nodiscard]] auto guesser() noexcept -> Drafter& { return drafter_; }
  /// The options.
  [[nodiscard]] auto options() const noexcept -> generator_options const& { return options_; }

private:
  struct member {
    generation_id id;
    generation_request request; // its state is in `result`
    generation_result result;
    sequence seq{};             // while it runs
    std::vector<token_id> text; // prompt and output, side by side as steps want them
    std::vector<token_id> guesses{};
    std::vector<member*> followers{}; // samples that wait for this one's prompt
    generation_id leader{};
    stop_reason closing = stop_reason::none; // has all its outputs, forwards the last one
    std::uint64_t age = 0;
    bool queued_before = false; // its blocks were taken away
    bool drafts = true;         // the cache has room to take guesses back
    bool stray = false;         // wrong guesses stand in its sequence, and the cache refuses to cut them off
  };
  struct planned_row {
    member* of;
    std::uint32_t length;  // before the step
    std::uint32_t tokens;  // q
    std::uint32_t outputs; // logits wanted: 0, 1, or 1 + guesses
    std::uint32_t first;   // number of the first of them
    errc status;
  };

  // --- requests -----------------------------------------------------------------------------------------------------
  [[nodiscard]] auto fault_of(generation_request const& request) const -> std::optional<generation_refusal> {
    auto const& s = request.state;
    s.sampling.validate();
    auto const plain = [](errc code) { return generation_refusal{code, std::string{message(code)}}; };
    if (s.prompt.empty()) { return plain(errc::empty_prompt); }
    if (s.stop.limit == token_count{} || s.output.size() >= s.stop.limit.value()) { return plain(errc::zero_output); }
    for (auto const* text : {&s.prompt, &s.output}) {
      for (std::size_t i = 0; i < text->size(); ++i) {
        auto const token = (*text)[i];
        if (token < 0 || static_cast<std::size_t>(token) >= model_->vocabulary()) {
          return generation_refusal{errc::out_of_range, "token " + std::to_string(token) + " at place " +
                                                            std::to_string(i) + " is unknown: the vocabulary has " +
                                                            std::to_string(model_->vocabulary()) + " tokens"};
        }
      }
    }
    auto const most = std::uint64_t{model_->max_positions().value()};
    auto const covers =
        s.prompt.size() + s.stop.limit.value() - (request.last_output == last_output_rule::leave ? 1U : 0U);
    if (covers > most) {
      return generation_refusal{errc::never_fits, std::to_string(s.prompt.size()) + " prompt tokens and " +
                                                      std::to_string(s.stop.limit.value()) + " outputs need " +
                                                      std::to_string(covers) + " positions and the model has " +
                                                      std::to_string(most) +
                                                      ": shorten the prompt or ask for fewer outputs"};
    }
    auto const budget = std::uint64_t{s.prompt.size()} + s.stop.limit.value();
    auto const pool = std::uint64_t{cache_->capacity().value()} * cache_->block_tokens().value();
    if (budget > pool) {
      return generation_refusal{errc::never_fits, "prompt and outputs need " + std::to_string(budget) +
                                                      " positions and the pool has " + std::to_string(pool) +
                                                      ": shorten the request or give the pool more blocks"};
    }
    return std::nullopt;
  }
  auto add(generation_request request) -> member& {
    auto m = std::make_unique<member>();
    m->result.times.entry = request.entry.value_or(clock_.now());
    m->result.state = std::exchange(request.state, {});
    auto& s = m->result.state;
    m->text.reserve(s.prompt.size() + s.stop.limit.value()); // recording an output must not fail
    m->text.insert(m->text.end(), s.prompt.begin(), s.prompt.end());
    m->text.insert(m->text.end(), s.output.begin(), s.output.end());
    s.output.reserve(s.stop.limit.value());
    m->guesses.reserve(options_.draft.value());
    m->request = std::move(request);
    limited_ += m->request.time_limit.has_value() ? 1U : 0U;
    if (vacant_.empty()) {
      members_.emplace_back();
      vacant_.push_back(static_cast<std::uint32_t>(members_.size() - 1));
    }
    auto const index = vacant_.back();
    vacant_.pop_back();
    m->id = generation_id{(++serials_ << 32U) | index};
    members_[index] = std::move(m);
    return *members_[index];
  }
  [[nodiscard]] static auto index_of(generation_id id) noexcept -> std::uint32_t {
    return static_cast<std::uint32_t>(id.value() & 0xffff'ffffU);
  }
  [[nodiscard]] auto member_of(generation_id id) const -> member& {
    QUIRE_EXPECTS(index_of(id) < members_.size());
    auto* const m = members_[index_of(id)].get();
    QUIRE_EXPECTS(m != nullptr && m->id == id);
    return *m;
  }

  // --- coming and going ---------------------------------------------------------------------------------------------
  auto enter(member& m) -> void {
    running_.push_back(&m);
    m.age = ++ages_;
    if (!m.result.times.admitted) { m.result.times.admitted = clock_.now(); }
  }
  /// Takes \p m out of the batch; the last row takes its place.
  auto leave(member& m) noexcept -> void {
    auto const at = std::find(running_.begin(), running_.end(), &m);
    if (at == running_.end()) { return; }
    *at = running_.back();
    running_.pop_back();
    full_ = false;
  }
  /// Lets in who waits, in order. \returns why the first one has to wait
  auto admit_waiting() -> errc {
    if (running_.empty()) { full_ = false; }
    while (!waiting_.empty() && !full_ && running_.size() < options_.max_members) {
      auto& m = *waiting_.front();
      running_.reserve(running_.size() + 1);
      auto admitted = ask(m, m.request.reuse);
      auto const never_fits = [&] { return !admitted && admitted.error().code == errc::never_fits; };
      if (never_fits() && m.drafts && options_.draft != token_count{}) {
        m.drafts = false; // what windows keep for guesses is too much
        admitted = ask(m, m.request.reuse);
      }
      if (never_fits() && m.request.reuse == reuse_rule::read_and_write) {
        admitted = ask(m, reuse_rule::write_only); // a copy of what it finds is the one block too many
      }
      if (!admitted) {
        auto const why = admitted.error().code;
        if (why == errc::no_blocks || why == errc::too_many_sequences) { return why; }
        waiting_.pop_front();
        over(m, m.closing == stop_reason::none ? stop_reason::failed : m.closing);
        continue;
      }
      waiting_.pop_front();
      m.seq = std::move(*admitted);
      if (!m.result.times.admitted) { m.result.cached = m.seq.cached(); }
      m.result.covered = m.seq.length();
      enter(m);
      static_cast<void>(answer_from_kept(m));
    }
    return errc::ok;
  }
  auto ask(member const& m, reuse_rule reuse) {
    auto const left = outputs_left(m);
    auto const draft = m.drafts ? std::min(options_.draft.value(), left - 1) : 0U; // none lies beyond the last output
    return cache_->admit({.scope = m.request.scope,
                          .prompt = m.text,
                          .max_output = token_count{left - draft},
                          .draft = token_count{draft},
                          .reuse = reuse,
                          .resumed = m.queued_before});
  }
  [[nodiscard]] auto outputs_left(member const& m) const noexcept -> std::uint32_t {
    auto const done = static_cast<std::uint32_t>(m.result.state.output.size());
    return std::max(m.result.state.stop.limit.value() - std::min(done, m.result.state.stop.limit.value()), 1U);
  }
  auto end_early(member& m, stop_reason why) -> bool {
    if (m.result.over()) { return false; }
    if (m.seq) {
      if (!m.stray) { m.result.covered = m.seq.length(); }
      leave(m);
      why == stop_reason::timed_out ? cache_->time_out(std::move(m.seq)) : cache_->cancel(std::move(m.seq));
    } else if (m.leader) {
      std::erase(member_of(m.leader).followers, &m);
    } else {
      waiting_.erase(std::find(waiting_.begin(), waiting_.end(), &m));
    }
    over(m, m.closing == stop_reason::none ? why : m.closing);
    return true;
  }
  auto finish(member& m, stop_reason why) -> void {
    if (!m.stray) { m.result.covered = m.seq.length(); }
    leave(m);
    cache_->release(std::move(m.seq));
    over(m, why);
  }
  auto over(member& m, stop_reason why) -> void {
    m.result.reason = why;
    limited_ -= m.request.time_limit.has_value() ? 1U : 0U;
    disband(m);
  }
  /// Who waits for the prompt of \p m gets on without it.
  auto disband(member& m) -> void {
    for (auto* const follower : m.followers) {
      follower->leader = generation_id::none();
      waiting_.push_back(follower);
    }
    m.followers.clear();
  }
  auto expire() -> void {
    if (limited_ == 0) { return; }
    auto const now = clock_.now();
    for (auto const& m : members_) {
      if (!m || m->result.over() || !m->request.time_limit) { continue; }
      if (now >= m->result.times.entry + *m->request.time_limit) { end_early(*m, stop_reason::timed_out); }
    }
  }
  /// Those whose wrong guesses the cache did not cut off compute again what is right.
  auto preempt_strays() -> void {
    for (auto i = running_.size(); i-- > 0;) {
      if (running_[i]->stray) { preempt(*running_[i]); }
    }
  }
  /// Takes the blocks of \p m away and lets it wait at the head of the queue; it will compute again what is gone.
  auto preempt(member& m) -> void {
    if (m.closing != stop_reason::none) { return finish(m, m.closing); } // it has said everything
    waiting_.push_front(&m);
    if (cache_->preempt(m.seq)) {
      m.queued_before = true;
      ++m.result.preemptions;
    } else {
      m.seq = sequence{}; // nothing was computed yet
    }
    m.stray = false;
    leave(m);
  }
  /// Deals with items that a step refused. \returns false if the only member finds no room
  auto make_room() -> bool {
    auto short_of_blocks = false;
    auto progress = false;
    for (auto const& row : rows_) {
      progress = progress || row.status == errc::ok;
      if (row.status == errc::ok) { continue; }
      if (row.status == errc::no_blocks) {
        short_of_blocks = true;
      } else if (row.status == errc::stale_epoch) {
        preempt(*row.of);
      } else {
        finish(*row.of, stop_reason::failed);
      }
    }
    if (!short_of_blocks) {
      restarted_ = false;
      return true;
    }
    if (progress) { restarted_ = false; }
    if (running_.size() < 2) {
      if (progress) { return true; } // the others have just left
      // Blocks that it computed at the same time as somebody else are held twice, its own and the published ones:
      // admitted again it finds the published ones.
      if (std::exchange(restarted_, true)) { return false; }
      preempt(*running_.front());
      return true;
    }
    preempt(**std::max_element(running_.begin(), running_.end(),
                               [](auto const* a, auto const* b) { return a->age < b->age; }));
    full_ = true; // until somebody leaves: else it comes back to lose its blocks again
    return true;
  }

  // --- a step -------------------------------------------------------------------------------------------------------
  auto gather() -> void {
    items_.clear();
    rows_.clear();
    for (auto* const m : running_) {
      m->guesses.clear();
      auto const length = m->seq.length().value();
      auto const pending = static_cast<std::uint32_t>(m->text.size()) - length;
      auto q = options_.chunk == token_count{} ? pending : std::min(pending, options_.chunk.value());
      q = std::min(q, cache_->append_limit().value());
      auto const guesses = pending == 1 && m->closing == stop_reason::none ? guess(*m) : 0U;
      auto const reaches_end = q == pending && m->closing == stop_reason::none;
      rows_.push_back({m, length, q + guesses, reaches_end ? 1 + guesses : 0, 0, errc::ok});
      if (guesses > 0) {
        items_.emplace_back(m->seq, token_count{1 + guesses}); // by count: nothing unverified publishes (B6)
      } else {
        items_.emplace_back(m->seq, std::span<token_id const>{m->text}.subspan(length, q));
      }
    }
  }
  /// Guesses what \p m says next, never beyond its limit. \returns how many
  auto guess(member& m) -> std::uint32_t {
    if (options_.draft == token_count{} || !m.drafts || m.result.state.output.empty()) { return 0; }
    m.guesses.resize(std::min(options_.draft.value(), outputs_left(m) - 1));
    auto count = m.guesses.empty() ? std::size_t{0} : std::min(drafter_.propose(m.text, m.guesses), m.guesses.size());
    for (std::size_t i = 0; i < count; ++i) {
      if (m.guesses[i] < 0 || static_cast<std::size_t>(m.guesses[i]) >= model_->vocabulary()) { count = i; }
    }
    m.guesses.resize(count);
    return static_cast<std::uint32_t>(count);
  }
  auto prepare(std::span<step_result const> results) -> void {
    tokens_.clear();
    wanted_.clear();
    of_.clear();
    std::size_t followers = 0;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      auto& r = rows_[i];
      r.status = results[i].status;
      if (r.status != errc::ok) { continue; }
      of_.push_back(r.of->id);
      auto const known = std::span<token_id const>{r.of->text}.subspan(r.length, r.tokens - r.of->guesses.size());
      tokens_.insert(tokens_.end(), known.begin(), known.end());
      tokens_.insert(tokens_.end(), r.of->guesses.begin(), r.of->guesses.end());
      r.first = static_cast<std::uint32_t>(wanted_.size());
      for (auto k = r.outputs; k > 0; --k) { wanted_.push_back(static_cast<std::uint32_t>(tokens_.size()) - k); }
      if (r.outputs > 0) { followers += r.of->followers.size(); }
    }
    logits_.resize(wanted_.size() * model_->vocabulary());
    emitted_.reserve(emitted_.size() + wanted_.size() + followers);
    running_.reserve(running_.size() + followers);
  }
  [[nodiscard]] auto logits_of(std::size_t i) const noexcept -> std::span<float const> {
    return std::span<float const>{logits_}.subspan(i * model_->vocabulary(), model_->vocabulary());
  }

  /// What a committed step means for one member.
  auto settle(planned_row const& r, instant now) -> void {
    auto& m = *r.of;
    auto const done = forward_work(token_pos{r.length}, token_count{r.tokens}, options_.rule);
    m.result.computed += done;
    computed_ += done;
    m.result.covered = m.seq.length();
    if (m.closing != stop_reason::none) {
      if (m.seq.length().value() == m.text.size()) { finish(m, m.closing); }
      return;
    }
    if (r.outputs == 0) { return; }
    auto const first = m.result.state.output.empty();
    auto const guesses = r.outputs - 1;
    std::uint32_t outputs = 0;
    auto reason = stop_reason::none;
    while (reason == stop_reason::none && outputs < r.outputs) {
      reason = say(m, logits_of(r.first + outputs), now);
      if (reason == stop_reason::failed) { break; }
      ++outputs;
      if (outputs <= guesses && m.text.back() != m.guesses[outputs - 1]) { break; }
    }
    if (guesses > 0 && reason != stop_reason::failed) { keep_verified(m, r.length, token_count{outputs}); }
    if (first && outputs > 0) { share_prompt(m, logits_of(r.first), now); }
    if (reason != stop_reason::none) { stop(m, reason); }
  }
  /// Chooses, records and checks one output. \returns whether it was the last
  auto say(member& m, std::span<float const> logits, instant now) -> stop_reason {
    auto const done = forward_work(token_pos{}, token_count{static_cast<std::uint32_t>(m.text.size())}, options_.rule);
    auto& s = m.result.state;
    auto const token = sampler_.choose(logits, s.sampling, s.random);
    if (!token) { return stop_reason::failed; }
    m.result.recompute += done;
    recompute_ += done;
    m.text.push_back(*token);
    s.output.push_back(*token);
    auto& t = m.result.times;
    if (!t.first_output) { t.first_output = now; }
    t.last_output = now;
    t.outputs += token_count{1};
    auto const reason = s.stop.check(s.output);
    emitted_.push_back({m.id, *token, logits, reason});
    return reason;
  }
  auto stop(member& m, stop_reason why) -> void {
    if (m.request.last_output == last_output_rule::forward && why != stop_reason::failed) {
      m.closing = why;
    } else {
      finish(m, why);
    }
  }
  /// Cuts off the guesses that were wrong and tells the ids of the others. With n outputs in this step, n of its positions
  /// hold: the fed one, and every guess that an output has confirmed and a later output has used.
  auto keep_verified(member& m, std::uint32_t from, token_count outputs) -> void {
    auto const guesses = static_cast<std::uint32_t>(m.guesses.size());
    m.result.drafted += token_count{guesses};
    m.result.accepted += outputs - token_count{1};
    auto const wrong = token_count{1 + guesses} - outputs;
    auto const right = std::span<token_id const>{m.text}.subspan(from, outputs.value());
    m.stray = !cache_->drop_last(m.seq, wrong) || !cache_->resolve(m.seq, right);
    m.result.covered = token_count{from} + outputs;
  }

  /// The prompt of \p m is computed and \p logits stand behind it: keeps them, and starts the samples that wait for it.
  auto share_prompt(member& m, std::span<float const> logits, instant now) -> void {
    kept_.keep(m.request.scope, m.result.state.prompt, logits);
    while (!m.followers.empty() && running_.size() < options_.max_members) {
      auto forked = cache_->fork(m.seq);
      if (!forked) { break; }
      auto& follower = *m.followers.front();
      m.followers.erase(m.followers.begin());
      follower.leader = generation_id::none();
      follower.drafts = m.drafts;
      follower.seq = std::move(*forked);
      follower.result.cached = follower.result.covered = follower.seq.length();
      enter(follower);
      if (auto const reason = say(follower, logits, now); reason != stop_reason::none) { stop(follower, reason); }
    }
    disband(m);
  }
  /// Answers a prompt whose every block is resident from kept logits, without a forward pass: position P − 1 is taken
  /// over as it lies in the shared block (S22). \returns false if the prompt has to be computed as usual
  auto answer_from_kept(member& m) -> bool {
    auto const prompt = m.result.state.prompt.size();
    if (options_.kept_outputs == 0 || m.text.size() != prompt) { return false; }
    if (m.seq.length().value() + std::size_t{1} != prompt) { return false; } // windows want more computed again
    if (std::size_t{m.seq.shared_blocks().value()} * cache_->block_tokens().value() != prompt) { return false; }
    auto const found = kept_.find(m.request.scope, m.result.state.prompt);
    if (found.empty()) { return false; }
    auto const& logits = kept_copies_.emplace_back(found.begin(), found.end());
    auto item = typename Cache::step_item{m.seq, std::span<token_id const>{m.text}.last(1)};
    item.source = step_source::load;
    auto plan = cache_->plan_step({&item, 1});
    if (!plan || plan->results()[0].status != errc::ok || plan->view().slot[0] >= 0) {
      return false;
    } // it would be written
    emitted_.reserve(emitted_.size() + 1);
    if (!model_->run(plan->launch())) { return false; }
    static_cast<void>(cache_->commit(std::move(*plan)));
    m.result.cached = m.result.covered = m.seq.length();
    auto const now = clock_.now();
    auto const reason = say(m, logits, now);
    share_prompt(m, logits, now);
    if (reason != stop_reason::none) { stop(m, reason); }
    return true;
  }

  Cache* cache_;
  Model* model_;
  generator_options options_;
  [[no_unique_address]] Clock clock_;
  [[no_unique_address]] Drafter drafter_;
  token_sampler sampler_;
  kept_outputs kept_;
  std::vector<std::unique_ptr<member>> members_;
  std::vector<std::uint32_t> vacant_;
  std::vector<member*> running_;
  std::deque<member*> waiting_;
  std::vector<typename Cache::step_item> items_;
  std::vector<planned_row> rows_;
  std::vector<token_id> tokens_;
  std::vector<std::uint32_t> wanted_;
  std::vector<generation_id> of_;
  std::vector<batch_view> views_; // by layer group, if there are several
  std::vector<float> logits_;
  std::deque<std::vector<float>> kept_copies_;
  std::vector<emitted_token> emitted_;
  work computed_{};
  work recompute_{};
  std::uint64_t serials_ = 0;
  std::uint64_t ages_ = 0;
  std::size_t limited_ = 0;
  bool restarted_ = false; // the only member has lost its blocks to itself
  bool full_ = false;      // somebody lost its blocks: nobody comes in before somebody leaves
};

} // namespace quire
