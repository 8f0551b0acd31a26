// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The residency of ring storage.

#include <quire/core/types.hpp>
#include <quire/model/logical_block.hpp>
#include <quire/model/resident_range.hpp>
#include <quire/model/retention.hpp>
#include <quire/sequence/concepts.hpp>
#include <quire/sequence/fwd.hpp>

#include <cstdint>

namespace quire {

/// Keeps windows in a fixed number of slots that are overwritten in place: no block ever goes. See `ring_table`.
/// \tparam Capacity [slots] in all, sink slots included \tparam Window [tokens] w, the query's own position included
/// \tparam Sinks [tokens] first positions that stay
template <std::uint32_t Capacity, std::uint32_t Window, std::uint32_t Sinks>
struct ring_residency {
  /// What it keeps; sizes that cannot be do not compile.
  static constexpr retention keeps =
      retention::ring({.capacity = token_count{Capacity}, .window = token_count{Window}, .sinks = token_count{Sinks}});
  /// Leading blocks that no query from \p oldest_query on needs: none.
  /// \pre `block_tokens > 0` \complexity O(1) \source S30
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
static_assert(residency_policy<ring_residency<4351, 4096>>);

} // namespace quire
