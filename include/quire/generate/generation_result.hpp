// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// One generation: its state, and the accounts of what it cost.

#include <quire/core/types.hpp>
#include <quire/generate/generation_state.hpp>
#include <quire/generate/generation_times.hpp>
#include <quire/generate/stop_reason.hpp>
#include <quire/model/work.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace quire {

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
  /// The prompt of a follow-up turn: this one's prompt and output, then \p more. \source S41; cases 85, 86
  [[nodiscard]] auto follow_up(std::span<token_id const> more) const -> std::vector<token_id> {
    auto out = state.prompt;
    out.insert(out.end(), state.output.begin(), state.output.end());
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }
};

} // namespace quire
