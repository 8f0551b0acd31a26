// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What comes out of a generation: its outputs, its state, and the accounts of what it cost.
///
/// ```text
///   entry ──queue──▶ admitted ──prefill──▶ first token ──▶ … ──▶ last token
///   ├─────────────── TTFT ────────────────┤├── (G − 1) · TPOT ──┤
///   ├────────────────────── end to end ─────────────────────────┤
/// ```

#include <quire/core/types.hpp>
#include <quire/generate/generation_state.hpp>
#include <quire/generate/stop_rules.hpp>
#include <quire/generate/types.hpp>
#include <quire/model/work.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace quire {

/// One output, as it is born. Valid until the next step.
struct emitted_token {
  generation_id of{};                     ///< Whose.
  token_id token = 0;                     ///< What.
  std::span<float const> logits = {};     ///< \shape [V] what it was chosen from.
  stop_reason reason = stop_reason::none; ///< Whether it was the last.
};

/// Four instants and a count; everything else is a difference of them, so that nothing is added twice.
/// \source S40
struct generation_times {
  instant entry{};                          ///< The agreed entry: where waiting begins.
  std::optional<instant> admitted = {};     ///< When it got its place in the cache, the first time.
  std::optional<instant> first_output = {}; ///< When the first output was chosen.
  std::optional<instant> last_output = {};  ///< When the latest output was chosen.
  token_count outputs{};                    ///< [tokens] G so far.

  /// [ns] Waiting before admission: a part of `ttft`, not beside it.
  [[nodiscard]] auto queue() const noexcept -> std::optional<nanosecond_count> { return since_entry(admitted); }
  /// [ns] From the entry to the first output, queueing and prefill included.
  [[nodiscard]] auto ttft() const noexcept -> std::optional<nanosecond_count> { return since_entry(first_output); }
  /// [ns] From the entry to the last output.
  [[nodiscard]] auto end_to_end() const noexcept -> std::optional<nanosecond_count> { return since_entry(last_output); }
  /// [ns] Mean time of an output after the first; nothing below two outputs.
  [[nodiscard]] auto tpot() const noexcept -> std::optional<double> {
    if (outputs.value() < 2 || !first_output || !last_output) { return std::nullopt; }
    return static_cast<double>((*last_output - *first_output).value()) / static_cast<double>(outputs.value() - 1);
  }
  /// Same times.
  friend auto operator==(generation_times const&, generation_times const&) noexcept -> bool = default;

private:
  [[nodiscard]] auto since_entry(std::optional<instant> const& at) const noexcept -> std::optional<nanosecond_count> {
    if (!at) { return std::nullopt; }
    return *at - entry;
  }
};

/// What there is to know about a generation, while it runs and afterwards. Outputs and covered positions are two
/// numbers (S41): with G outputs a finished one covers P + G − 1 positions, or P + G if its last output was forwarded.
struct generation_result {
  generation_state state = {};            ///< Text and choice.
  stop_reason reason = stop_reason::none; ///< Why it is over.
  token_count cached{};                   ///< [tokens] of the prompt that were found at the first admission.
  token_count covered{};                  ///< [tokens] L: positions whose KV was computed or found.
  generation_times times = {};            ///< S40.
  work computed = {};            ///< Positions and pairs of its own forward passes, rejected drafts included (S8).
  work recompute = {};           ///< The same without any cache: a forward of the whole text per output (S8).
  std::uint32_t preemptions = 0; ///< How often it lost its blocks.
  token_count drafted{};         ///< [tokens] guessed for it (B6).
  token_count accepted{};        ///< [tokens] of them that were right.

  /// True if nothing more will come.
  [[nodiscard]] auto over() const noexcept -> bool { return reason != stop_reason::none; }
  /// Output without the end token or the stop sequence that ended it.
  [[nodiscard]] auto visible() const -> std::span<token_id const> { return state.stop.visible(state.output); }
  /// [tokens] at the end of prompt and output that a follow-up turn has to prefill because no KV covers them.
  [[nodiscard]] auto uncovered() const noexcept -> token_count {
    return token_count{static_cast<std::uint32_t>(state.prompt.size() + state.output.size())} - covered;
  }
  /// The prompt of a follow-up turn: this one's prompt and output, then \p more. \source S41
  [[nodiscard]] auto follow_up(std::span<token_id const> more) const -> std::vector<token_id> {
    auto out = state.prompt;
    out.insert(out.end(), state.output.begin(), state.output.end());
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }
};

} // namespace quire
