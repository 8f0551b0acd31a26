// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What is said: choosing an output, writing it down, and the accounts of all that was computed.

#include <quire/core/types.hpp>
#include <quire/generate/generation_result.hpp>
#include <quire/generate/generator_options.hpp>
#include <quire/generate/kept_outputs.hpp>
#include <quire/generate/stop_rules.hpp>
#include <quire/generate/token_sampler.hpp>
#include <quire/generate/types.hpp>
#include <quire/model/attention_rule.hpp>
#include <quire/model/work.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
/// Owns the sampler, the outputs of the step at hand, and the output states that are kept for later prompts.
class output_log {
public:
  output_log(generator_options const& options, std::size_t vocabulary)
      : kept_{options.kept_outputs}, rule_{options.rule} {
    sampler_.reserve(vocabulary);
  }

  /// Begins a step: outputs of the one before are no longer valid.
  auto begin() noexcept -> void {
    emitted_.clear();
    copies_.clear();
  }
  /// Makes room for \p more outputs, so that `say` cannot fail.
  auto reserve(std::size_t more) -> void { emitted_.reserve(emitted_.size() + more); }
  /// Chooses, records and checks one output of \p m. \returns whether it was the last
  template <class Record>
  auto say(Record& m, std::span<float const> logits, instant now) -> stop_reason {
    auto const done = forward_work(token_pos{}, token_count{static_cast<std::uint32_t>(m.text.size())}, rule_);
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
  /// Outputs of the step at hand.
  [[nodiscard]] auto emitted() const noexcept -> std::span<emitted_token const> { return emitted_; }

  /// Counts a pass of \p m over \p tokens behind \p from.
  template <class Record>
  auto count(Record& m, token_pos from, token_count tokens) -> void {
    auto const done = forward_work(from, tokens, rule_);
    m.result.computed += done;
    computed_ += done;
  }
  [[nodiscard]] auto computed() const noexcept -> work const& { return computed_; }
  [[nodiscard]] auto recompute() const noexcept -> work const& { return recompute_; }

  /// Keeps \p logits, which stand behind the prompt of \p m.
  template <class Record>
  auto keep(Record const& m, std::span<float const> logits) -> void {
    kept_.keep(m.request.scope, m.result.state.prompt, logits);
  }
  /// \returns [V] kept logits behind the prompt of \p m, valid as long as the outputs of this step; empty if there are none
  template <class Record>
  [[nodiscard]] auto recall(Record const& m) -> std::span<float const> {
    auto const found = kept_.find(m.request.scope, m.result.state.prompt);
    if (found.empty()) { return {}; }
    return copies_.emplace_back(found.begin(), found.end()); // a later prompt may take its place
  }
  /// Forgets kept output states, because the weights have changed.
  auto forget() noexcept -> void { kept_.forget(); }

private:
  token_sampler sampler_;
  kept_outputs kept_;
  attention_rule rule_;
  std::vector<emitted_token> emitted_;
  std::vector<std::vector<float>> copies_; // what `emitted_` refers to, beside the logits of the step
  work computed_{};
  work recompute_{};
};
/// \endcond

} // namespace quire::detail
