// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// When a generation stops by itself.

#include <quire/core/types.hpp>
#include <quire/generate/stop_reason.hpp>

#include <algorithm> // std::equal, std::find
#include <cstddef>
#include <span>
#include <vector>

namespace quire {

/// Stop rules, checked after each output was recorded. They look at outputs only: a stop sequence that begins in the
/// prompt is none.
struct stop_rules {
  token_count limit{};                   ///< G, the most outputs; at least 1.
  std::vector<token_id> end_tokens = {}; ///< Any of them ends it.
  std::vector<std::vector<token_id>> sequences =
      {}; ///< An output that ends with any of them ends it; empty ones are ignored.

  /// What these rules say to \p output. Where two hold, an end token goes before a sequence and that before the limit.
  /// \complexity O(end tokens + stop sequences)
  [[nodiscard]] auto check(std::span<token_id const> output) const -> stop_reason {
    if (!output.empty() && std::find(end_tokens.begin(), end_tokens.end(), output.back()) != end_tokens.end()) {
      return stop_reason::end_token;
    }
    if (sequence_at_end(output) != 0) { return stop_reason::stop_sequence; }
    return output.size() >= limit.value() ? stop_reason::limit : stop_reason::none;
  }
  /// The part of \p output that a reader wants: without the end token or the stop sequence that ended it.
  [[nodiscard]] auto visible(std::span<token_id const> output) const -> std::span<token_id const> {
    switch (check(output)) {
    case stop_reason::end_token: return output.first(output.size() - 1);
    case stop_reason::stop_sequence: return output.first(output.size() - sequence_at_end(output));
    default: return output;
    }
  }
  /// Same rules.
  friend auto operator==(stop_rules const&, stop_rules const&) -> bool = default;

private:
  /// [tokens] of the longest stop sequence that \p output ends with.
  [[nodiscard]] auto sequence_at_end(std::span<token_id const> output) const -> std::size_t {
    std::size_t longest = 0;
    for (auto const& s : sequences) {
      if (s.size() <= longest || s.size() > output.size()) { continue; }
      auto const end = output.last(s.size());
      if (std::equal(s.begin(), s.end(), end.begin())) { longest = s.size(); }
    }
    return longest;
  }
};

} // namespace quire
