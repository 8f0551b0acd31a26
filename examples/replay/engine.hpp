// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The part of an inference engine that a replay needs, around the library's own cache: nothing is simulated beside it.
///
/// ```text
///   admit ─▶ prefill: plan_step ─▶ launch ─▶ commit ─▶ fork ─▶ decode: plan_step ─▶ launch ─▶ commit … ─▶ release
///               the tokens that were not found              outputs, which publish too
/// ```
///
/// There is no backend: between launch and commit an engine would run its kernels.

#include "replay/future.hpp"
#include "replay/run_result.hpp"
#include "replay/scope.hpp"
#include "replay/tokens.hpp"
#include "replay/trace.hpp"

#include <quire/cache/kv_cache.hpp>
#include <quire/prefix/optimal_eviction.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility> // std::move
#include <vector>

namespace replay {

/// The policies of a replay.
template <class Eviction>
struct replay_policies : quire::default_policies {
  /// Which idle prefix leaves.
  using eviction = Eviction;
};

/// One cache and the figures of one run over it.
template <class Eviction>
class engine {
public:
  using cache_type = quire::kv_cache<replay_policies<Eviction>>;
  using sequence = typename cache_type::sequence;
  using step_item = typename cache_type::step_item;

  /// An empty cache for \p t. \throws quire::config_error if the options are impossible
  engine(trace const& t, future& f, run_options const& options)
      : trace_{&t}, future_{&f}, options_{options},
        cache_{quire::cache_options{.blocks = quire::block_count{options.pool()},
                                    .block_tokens = quire::token_count{options.block_tokens},
                                    .max_sequences = quire::sequence_count{options.overlap ? 4096U : 256U},
                                    .max_rows = quire::row_count{max_rows}}},
        scope_{cache_.open_scope(replay_identity(), replay_domain())} {
    std::uint32_t longest = 1;
    for (auto const& r : t.requests) { longest = std::max({longest, r.prompt, r.output}); }
    prompt_.resize(longest);
    result_.blocks = options.blocks;
  }

  /// Most sequences in one step.
  static constexpr std::uint32_t max_rows = 256;
  /// [tokens] most of a prompt in one step, as engines chunk their prefill.
  static constexpr std::uint32_t chunk = 8192;

  /// Lets request \p i in and counts what it finds; its prompt is in `prompt()` until the next call.
  /// \returns nothing if there is no room for it now. \pre the future says that it fits, or it is refused for good
  [[nodiscard]] auto admit(std::size_t i) -> std::optional<sequence> {
    auto const& r = trace_->requests[i];
    prompt_of_ = std::span<quire::token_id const>{prompt_}.first(r.prompt);
    write_prompt(*trace_, r, prompt_);
    auto admitted =
        cache_.admit({.scope = scope_, .prompt = prompt_of_, .max_output = quire::token_count{std::max(1U, r.output)}});
    if (!admitted) {
      if (admitted.error().code == quire::errc::never_fits) { refuse(i, admitted.error()); }
      return std::nullopt;
    }
    ++result_.requests;
    result_.references += r.prompt / options_.block_tokens;
    result_.hit_blocks += admitted->shared_blocks().value();
    return std::move(*admitted);
  }
  /// Tokens of the prompt that was admitted last.
  [[nodiscard]] auto prompt() const noexcept -> std::span<quire::token_id const> { return prompt_of_; }

  /// Computes what was not found of the prompt that was admitted last, in steps of at most `chunk` tokens.
  auto prefill(sequence const& s) -> void {
    for (auto rest = prompt_of_.subspan(s.cached().value()); !rest.empty();) {
      auto const part = rest.first(std::min<std::size_t>(rest.size(), chunk));
      auto const item = step_item{s, part};
      step({&item, 1});
      rest = rest.subspan(part.size());
    }
  }

  /// One step over \p items: everything between plan and commit.
  auto step(std::span<step_item const> items) -> void {
    auto plan = cache_.plan_step(items);
    if (!plan) { throw std::logic_error{"replay: a step was refused: " + std::string{quire::message(plan.error())}}; }
    for (auto const& result : plan->results()) { // an admitted request always has room
      if (result.status != quire::errc::ok) {
        throw std::logic_error{"replay: an item of a step was refused: " + std::string{quire::message(result.status)}};
      }
    }
    static_cast<void>(plan->launch());
    if (!cache_.commit(std::move(*plan))) { throw std::logic_error{"replay: a commit was stale"}; }
  }

  /// Shares the prompt of \p parent with one more branch. \returns nothing if there is no room for its outputs
  [[nodiscard]] auto fork(sequence const& parent) -> std::optional<sequence> {
    auto child = cache_.fork(parent);
    if (!child) {
      ++result_.refused_forks;
      return std::nullopt;
    }
    ++result_.forks;
    return std::move(*child);
  }

  /// Releases branch \p b of request \p i. \param now requests before this one have been admitted
  auto release(sequence&& s, std::size_t i, std::uint32_t b, std::size_t now) -> void {
    result_.slots += std::uint64_t{s.blocks().size()} * options_.block_tokens;
    result_.filled += s.length().value();
    if constexpr (std::is_same_v<Eviction, quire::optimal_eviction>) {
      cache_.eviction().next_uses(options_.overlap ? future_->next_uses(i, b, now) : future_->next_uses(i, b));
    }
    cache_.release(std::move(s));
  }

  /// Takes a reading of the blocks, valid for \p weight (a request, or seconds).
  auto sample(double weight) -> void {
    auto const extra = options_.whole ? 1U : 0U; // the block of the last position
    auto const now = cache_.figures(quire::group_id{0});
    auto const filled = (now.capacity - now.free).value() - extra;
    auto const in_use = (now.capacity - now.available).value() - extra;
    result_.peak_blocks = std::max(result_.peak_blocks, filled);
    result_.peak_in_use = std::max(result_.peak_in_use, in_use);
    result_.mean_blocks += weight * filled;
    result_.mean_in_use += weight * in_use;
    weight_ += weight;
  }

  /// Notes that request \p i can never be served.
  auto refuse(std::size_t i, quire::refusal const& why) -> void {
    if (result_.refused++ == 0) {
      result_.refused_at = static_cast<std::size_t>(trace_->requests[i].number) + 1;
      result_.refusal = why.message();
    }
  }

  /// The figures, once everything is released.
  [[nodiscard]] auto finish(double seconds) -> run_result {
    auto const s = cache_.statistics();
    result_.prompt_tokens = s.prompt_tokens;
    result_.hit_tokens = s.hit_tokens;
    result_.output_tokens = s.output_tokens;
    result_.published = s.published_blocks;
    result_.evictions = s.evicted_blocks;
    result_.copies = s.copied_blocks;
    result_.seconds = seconds;
    if (weight_ > 0) {
      result_.mean_blocks /= weight_;
      result_.mean_in_use /= weight_;
    }
    return result_;
  }

  [[nodiscard]] auto cache() noexcept -> cache_type& { return cache_; }
  [[nodiscard]] auto result() noexcept -> run_result& { return result_; }
  [[nodiscard]] auto input() const noexcept -> trace const& { return *trace_; }
  [[nodiscard]] auto options() const noexcept -> run_options const& { return options_; }
  /// Whether request \p i fits the pool.
  [[nodiscard]] auto fits(std::size_t i) const noexcept -> bool { return future_->fits(i); }

private:
  trace const* trace_;
  future* future_;
  run_options options_;
  cache_type cache_;
  quire::scope_number scope_;
  std::vector<quire::token_id> prompt_;
  std::span<quire::token_id const> prompt_of_;
  run_result result_;
  double weight_ = 0;
};

} // namespace replay
