// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Which positions of a layer group must stay in memory, as a value. What follows from it for a given
/// query is computed in one place only: `resident_range.hpp`.

#include <quire/core/config_error.hpp>
#include <quire/core/types.hpp>
#include <quire/model/attention_rule.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace quire {

/// The kinds of retention.
enum class retention_kind : std::uint8_t {
  full,           ///< Everything stays.
  sliding_window, ///< What the next queries' windows reach.
  sink_window,    ///< The first positions, and what the windows reach.
  chunked,        ///< The chunk of the oldest query in flight.
  ring,           ///< Like the windows, in a fixed number of slots that are overwritten in place (S30).
};

/// The name of the kind.
[[nodiscard]] constexpr auto name_of(retention_kind kind) noexcept -> std::string_view {
  switch (kind) {
  case retention_kind::full: return "full";
  case retention_kind::sliding_window: return "sliding_window";
  case retention_kind::sink_window: return "sink_window";
  case retention_kind::chunked: return "chunked";
  case retention_kind::ring: return "ring";
  }
  return "unknown";
}

/// What a layer group keeps. Build it with the functions below, which check it; equal retentions compare
/// equal, so layers can be grouped by it.
struct retention {
  retention_kind kind = retention_kind::full; ///< The kind.
  token_count extent{};                       ///< [tokens] window w (the query's own position included) or chunk size.
  token_count sinks{};                        ///< [tokens] first positions that stay.
  token_count capacity{};                     ///< [slots] of a ring, sink slots included; 0 otherwise.

  /// The numbers of a window with sinks.
  using sink_window_sizes = attention_rule::sink_window_sizes;
  /// The numbers of a ring, named so that they cannot be swapped.
  struct ring_sizes {
    token_count capacity{}; ///< [slots] in all, sink slots included.
    token_count window{};   ///< [tokens] window w, the query's own position included.
    token_count sinks{};    ///< [tokens] first positions that stay.
  };

  /// Keeps everything.
  [[nodiscard]] static constexpr auto full() noexcept -> retention { return {}; }
  /// Keeps windows of \p window positions. \throws config_error if it is 0. \source S27
  [[nodiscard]] static constexpr auto sliding_window(token_count window) -> retention {
    return sink_window({.window = window});
  }
  /// Keeps the first positions and windows; without sinks this is `sliding_window`.
  /// \throws config_error if the window is 0. \source B8
  [[nodiscard]] static constexpr auto sink_window(sink_window_sizes sizes) -> retention {
    if (sizes.window == token_count{}) {
      throw config_error{"retention: a window of 0 positions: it counts the query's own position, so use at least 1"};
    }
    return {.kind = sizes.sinks == token_count{} ? retention_kind::sliding_window : retention_kind::sink_window,
            .extent = sizes.window,
            .sinks = sizes.sinks};
  }
  /// Keeps chunks of \p size positions. \throws config_error if it is 0. \source B8
  [[nodiscard]] static constexpr auto chunked(token_count size) -> retention {
    if (size == token_count{}) { throw config_error{"retention: chunks of 0 positions: use at least 1"}; }
    return {.kind = retention_kind::chunked, .extent = size};
  }
  /// Keeps windows in a ring. \throws config_error if the window is 0 or the ring cannot take even
  /// one-token appends: capacity ≥ sinks + window. \source S30
  [[nodiscard]] static constexpr auto ring(ring_sizes sizes) -> retention {
    if (sizes.window == token_count{}) {
      throw config_error{"retention: a ring for a window of 0 positions: the window counts the query's own position, "
                         "so use at least 1"};
    }
    auto const least = static_cast<std::uint64_t>(sizes.window.value()) + sizes.sinks.value();
    if (sizes.capacity.value() < least) {
      throw config_error{"retention: a ring of " + std::to_string(sizes.capacity.value()) + " slots cannot hold " +
                         std::to_string(sizes.sinks.value()) + " sinks and a window of " +
                         std::to_string(sizes.window.value()) + ": use at least " + std::to_string(least) +
                         " slots, and q - 1 more for appends of q tokens"};
    }
    return {.kind = retention_kind::ring, .extent = sizes.window, .sinks = sizes.sinks, .capacity = sizes.capacity};
  }

  /// The least retention under which \p rule is exact. \throws config_error for a bidirectional rule: each
  /// new token would change what earlier positions computed, so no append-only cache exists. \source S5, S27
  [[nodiscard]] static constexpr auto of(attention_rule const& rule) -> retention {
    rule.validate();
    switch (rule.pattern) {
    case attention_pattern::bidirectional:
      throw config_error{"retention: a bidirectional layer has no append-only cache, each new token changes what all "
                         "earlier ones computed: run it without a cache, or cache the decoder's cross attention to it"};
    case attention_pattern::sliding_window: return sink_window({.sinks = rule.sinks, .window = rule.extent});
    case attention_pattern::chunked: return chunked(rule.extent);
    case attention_pattern::causal:
    case attention_pattern::cross: break;
    }
    return full();
  }

  /// True if nothing is ever given up.
  [[nodiscard]] constexpr auto keeps_all() const noexcept -> bool { return kind == retention_kind::full; }
  /// True if a kept prefix can be shared with other sequences. A ring is overwritten in place, so it
  /// never can. \source S30
  [[nodiscard]] constexpr auto shareable() const noexcept -> bool { return kind != retention_kind::ring; }
  /// True if this keeps every position that \p least keeps, for any query.
  [[nodiscard]] constexpr auto covers(retention const& least) const noexcept -> bool {
    if (keeps_all()) { return true; }
    if (least.keeps_all()) { return false; }
    auto const chunk = kind == retention_kind::chunked;
    auto const least_chunk = least.kind == retention_kind::chunked;
    if (chunk && least_chunk) { return extent.value() % least.extent.value() == 0; }
    if (chunk) {
      return least.extent == token_count{1} && least.sinks == token_count{}; // w = 1 needs no earlier position
    }
    return extent >= least.extent && sinks >= least.sinks; // a window of c reaches back over any chunk of c
  }

  /// Same retention.
  friend constexpr auto operator==(retention const&, retention const&) noexcept -> bool = default;
};

} // namespace quire
