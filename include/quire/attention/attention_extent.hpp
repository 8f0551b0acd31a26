// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Which positions ask and which positions answer.

#include <quire/core/types.hpp>
#include <quire/model/intervals.hpp>

namespace quire {

/// Logical positions of the queries and keys of one computation.
struct attention_extent {
  /// Logical position of the first query row, L.
  token_pos first_query = {};
  /// [tokens] Query rows, q.
  token_count queries = {};
  /// Keys at hand; of them a query reads those that the rule makes visible. A part of the keys gives a partial result.
  position_interval keys = {};

  /// Cached and new positions, named so that they cannot be swapped.
  struct lengths {
    /// [tokens] L.
    token_count cached = {};
    /// [tokens] q.
    token_count appended = {};
  };
  /// Target and source of cross attention, named so that they cannot be swapped.
  struct cross_lengths {
    /// [tokens] q.
    token_count queries = {};
    /// [tokens] of the source.
    token_count source = {};
  };

  /// q new positions after L cached ones, over all of them. \source S2
  [[nodiscard]] static constexpr auto append(lengths sizes) noexcept -> attention_extent {
    return {.first_query = token_pos{} + sizes.cached,
            .queries = sizes.appended,
            .keys = {.begin = token_pos{}, .end = token_pos{} + sizes.cached + sizes.appended}};
  }
  /// q rows over a source. \source S5
  [[nodiscard]] static constexpr auto cross(cross_lengths sizes) noexcept -> attention_extent {
    return {.first_query = token_pos{},
            .queries = sizes.queries,
            .keys = {.begin = token_pos{}, .end = token_pos{} + sizes.source}};
  }
  /// The same queries over \p part of the keys.
  [[nodiscard]] constexpr auto over(position_interval part) const noexcept -> attention_extent {
    return {.first_query = first_query, .queries = queries, .keys = part};
  }
  /// Logical position of query row \p row.
  [[nodiscard]] constexpr auto query_position(token_count row) const noexcept -> token_pos { return first_query + row; }

  /// Same positions.
  friend constexpr auto operator==(attention_extent const&, attention_extent const&) noexcept -> bool = default;
};

} // namespace quire
