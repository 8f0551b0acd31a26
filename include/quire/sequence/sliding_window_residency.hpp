// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The residency of a sliding window.

#include <quire/core/types.hpp>
#include <quire/model/logical_block.hpp>
#include <quire/model/resident_range.hpp>
#include <quire/model/retention.hpp>
#include <quire/sequence/concepts.hpp>

#include <cstdint>

namespace quire {

/// Keeps what the windows of the oldest query in flight and of all later ones reach, decided by the one `resident_range`.
/// \tparam Window [tokens] w, the query's own position included; at least 1
template <std::uint32_t Window>
struct sliding_window_residency {
  /// What it keeps; sizes that cannot be do not compile.
  static constexpr retention keeps = retention::sliding_window(token_count{Window});
  /// Leading blocks that no query from \p oldest_query on needs: those wholly before its window.
  /// \pre `block_tokens > 0` \complexity O(1) \source S27
  [[nodiscard]] static constexpr auto releasable(token_pos oldest_query, token_count block_tokens) noexcept
      -> block_count {
    return dead(oldest_query, block_tokens).size(); // without sinks, they lead
  }
  /// Every block that no query from \p oldest_query on needs, wherever it lies. \pre `block_tokens > 0` \complexity O(1)
  [[nodiscard]] static constexpr auto dead(token_pos oldest_query, token_count block_tokens) noexcept
      -> logical_block_interval {
    return resident_range(oldest_query, keeps, block_tokens).dead;
  }
};
static_assert(residency_policy<sliding_window_residency<4096>>);

} // namespace quire
