// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Which keys a query may see, and what is done to the scores. One definition of "window" for the whole
/// library: w positions, the query's own included.

#include <quire/core/config_error.hpp>
#include <quire/core/types.hpp>

#include <cstdint>
#include <string_view>

namespace quire {

/// The shape of the visible set.
enum class attention_pattern : std::uint8_t {
  causal,         ///< Every position up to the query's own.
  sliding_window, ///< The last w positions, the query's own included; retained sinks besides.
  chunked,        ///< The positions of the query's own chunk up to itself (Llama 4).
  cross,          ///< Every position of another sequence: the encoder's output (S5).
  bidirectional,  ///< Every position, later ones too: no append-only cache exists (S5).
};

/// The name of the pattern.
[[nodiscard]] constexpr auto name_of(attention_pattern pattern) noexcept -> std::string_view {
  switch (pattern) {
  case attention_pattern::causal: return "causal";
  case attention_pattern::sliding_window: return "sliding_window";
  case attention_pattern::chunked: return "chunked";
  case attention_pattern::cross: return "cross";
  case attention_pattern::bidirectional: return "bidirectional";
  }
  return "unknown";
}

/// The visibility rule of one layer, and its changes to the scores. Part of the compute identity (S33).
///
/// Two things are called "sink". `sinks` are first positions that stay visible beyond the window and must
/// be retained (StreamingLLM). `learned_sink` is a logit per head in the denominator (gpt-oss): it retains
/// nothing.
struct attention_rule {
  attention_pattern pattern = attention_pattern::causal; ///< The shape of the visible set.
  token_count extent{};                                  ///< [tokens] window w or chunk size; 0 otherwise.
  token_count sinks{};                                   ///< [tokens] first positions that stay visible.
  bool learned_sink = false;                             ///< A learned logit per head joins the denominator.
  bool alibi = false;                                    ///< Adds slope · (key − query) to the scores.
  float soft_cap = 0.0F;                                 ///< cap · tanh(score / cap) before the mask; 0 = off.

  /// Both numbers of a window with sinks, named so that they cannot be swapped.
  struct sink_window_sizes {
    token_count sinks{};  ///< [tokens] first positions that stay visible.
    token_count window{}; ///< [tokens] last positions that are visible, the query's own included.
  };

  /// Every position up to the query's own.
  [[nodiscard]] static constexpr auto causal() noexcept -> attention_rule { return {}; }
  /// The last \p window positions, the query's own included. \throws config_error if it is 0. \source S27
  [[nodiscard]] static constexpr auto sliding_window(token_count window) -> attention_rule {
    return sink_window({.window = window});
  }
  /// Sinks and a window. \throws config_error if the window is 0. \source B8
  [[nodiscard]] static constexpr auto sink_window(sink_window_sizes sizes) -> attention_rule {
    attention_rule out{.pattern = attention_pattern::sliding_window, .extent = sizes.window, .sinks = sizes.sinks};
    out.validate();
    return out;
  }
  /// Chunks of \p size positions. \throws config_error if it is 0. \source B8
  [[nodiscard]] static constexpr auto chunked(token_count size) -> attention_rule {
    attention_rule out{.pattern = attention_pattern::chunked, .extent = size};
    out.validate();
    return out;
  }
  /// Every position of the source.
  [[nodiscard]] static constexpr auto cross() noexcept -> attention_rule {
    return {.pattern = attention_pattern::cross};
  }
  /// Every position; layers with this rule are refused by caches.
  [[nodiscard]] static constexpr auto bidirectional() noexcept -> attention_rule {
    return {.pattern = attention_pattern::bidirectional};
  }

  /// Checks the numbers against the pattern. \throws config_error naming what was wrong and what would work.
  constexpr void validate() const {
    auto const sized = pattern == attention_pattern::sliding_window || pattern == attention_pattern::chunked;
    if (pattern == attention_pattern::sliding_window && extent == token_count{}) {
      throw config_error{"attention_rule: a window of 0 positions sees nothing: the window counts the query's own "
                         "position, so use at least 1, or causal() for no window"};
    }
    if (pattern == attention_pattern::chunked && extent == token_count{}) {
      throw config_error{"attention_rule: chunks of 0 positions: use at least 1, or causal() for no chunks"};
    }
    if (!sized && extent != token_count{}) {
      throw config_error{"attention_rule: only windows and chunks have an extent: leave it 0 for this pattern"};
    }
    if (sinks != token_count{} && pattern != attention_pattern::sliding_window) {
      throw config_error{"attention_rule: retained sinks need a sliding window: use sink_window(), or learned_sink for "
                         "a sink that is a logit"};
    }
    if (!(soft_cap >= 0.0F)) { throw config_error{"attention_rule: the soft-cap must be positive, or 0 for none"}; }
  }

  /// True if a query at \p query may read the key at \p key. For `cross` the two count in different
  /// sequences and every key is visible. \pre the rule is valid. \complexity O(1) \source S2, S27, B8
  [[nodiscard]] constexpr auto visible(token_pos query, token_pos key) const noexcept -> bool {
    switch (pattern) {
    case attention_pattern::cross:
    case attention_pattern::bidirectional: return true;
    case attention_pattern::causal: return key <= query;
    case attention_pattern::sliding_window:
      return key <= query && (query - key < extent || key.value() < sinks.value());
    case attention_pattern::chunked:
      return key <= query && query.value() / extent.value() == key.value() / extent.value();
    }
    return false;
  }

  /// Number of keys that a query at \p query sees in its own sequence, itself included.
  /// \returns [tokens]; for `cross` and `bidirectional` it depends on another length: not counted here, 0.
  /// \pre the rule is valid. \complexity O(1) \source S2, S9
  [[nodiscard]] constexpr auto visible_count(token_pos query) const noexcept -> token_count {
    auto const causal_count = static_cast<std::uint64_t>(query.value()) + 1;
    switch (pattern) {
    case attention_pattern::cross:
    case attention_pattern::bidirectional: return token_count{};
    case attention_pattern::causal: break;
    case attention_pattern::sliding_window: {
      auto const most = static_cast<std::uint64_t>(extent.value()) + sinks.value();
      return token_count{static_cast<std::uint32_t>(causal_count < most ? causal_count : most)};
    }
    case attention_pattern::chunked: return token_count{query.value() % extent.value() + 1};
    }
    return token_count{static_cast<std::uint32_t>(causal_count)};
  }

  /// The same rule for sequences of at most \p max_positions positions: a window or chunk that no such
  /// sequence can exceed is plain causal attention. Done once, here, so that nobody keys anything by the
  /// unclamped number. \source S27; cases 119, 120
  [[nodiscard]] constexpr auto clamped(token_count max_positions) const noexcept -> attention_rule {
    auto const reach = static_cast<std::uint64_t>(extent.value()) + sinks.value();
    auto const bounded = pattern == attention_pattern::sliding_window || pattern == attention_pattern::chunked;
    if (!bounded || reach < max_positions.value()) { return *this; }
    auto out = *this;
    out.pattern = attention_pattern::causal;
    out.extent = token_count{};
    out.sinks = token_count{};
    return out;
  }

  /// Same rule.
  friend constexpr auto operator==(attention_rule const&, attention_rule const&) noexcept -> bool = default;
};

} // namespace quire
