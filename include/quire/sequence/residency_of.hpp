// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A residency policy from a retention: what all residencies of this library share.

#include <quire/core/types.hpp>
#include <quire/model/intervals.hpp>
#include <quire/model/resident_range.hpp>

namespace quire {

/// Answers for a residency that says what it `keeps`, by asking the one `resident_range`.
/// \tparam Residency derives from this and has a static member `keeps` of type `retention`
template <class Residency>
struct residency_of {
  /// Leading blocks that no query from \p oldest_query on needs: none where sinks lead; ask `dead` then.
  /// \pre `block_tokens > 0` \complexity O(1) \source S27, S30, B8
  [[nodiscard]] static constexpr auto releasable(token_pos oldest_query, token_count block_tokens) noexcept
      -> block_count {
    auto const gone = dead(oldest_query, block_tokens);
    return gone.begin == logical_block{} ? gone.size() : block_count{};
  }
  /// Every block that no query from \p oldest_query on needs, wherever it lies. \pre `block_tokens > 0` \complexity O(1)
  [[nodiscard]] static constexpr auto dead(token_pos oldest_query, token_count block_tokens) noexcept
      -> logical_block_interval {
    return resident_range(oldest_query, Residency::keeps, block_tokens).dead;
  }
};

} // namespace quire
