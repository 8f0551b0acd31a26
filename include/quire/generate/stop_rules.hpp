// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// When a generation stops by itself, and why it is over.

#include <quire/core/types.hpp>

#include <algorithm> // std::equal, std::find
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace quire {

/// Why a generation is over, or that it is not.
enum class stop_reason : std::uint8_t {
  none,          ///< It goes on.
  end_token,     ///< It said an end token.
  stop_sequence, ///< Its output ends with a stop sequence.
  limit,         ///< It has its G tokens.
  cancelled,     ///< Its client gave up.
  timed_out,     ///< It took too long.
  failed,        ///< The model gave no number to choose from, or the cache has no room for it even alone.
};

/// The name of the reason.
[[nodiscard]] constexpr auto name_of(stop_reason reason) noexcept -> std::string_view {
  switch (reason) {
  case stop_reason::none: return "running";
  case stop_reason::end_token: return "end token";
  case stop_reason::stop_sequence: return "stop sequence";
  case stop_reason::limit: return "limit";
  case stop_reason::cancelled: return "cancelled";
  case stop_reason::timed_out: return "timed out";
  case stop_reason::failed: return "failed";
  }
  return "unknown";
}

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
