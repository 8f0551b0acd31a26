// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The residency of chunked local attention.

#include <quire/core/types.hpp>
#include <quire/model/logical_block.hpp>
#include <quire/model/resident_range.hpp>
#include <quire/model/retention.hpp>
#include <quire/sequence/concepts.hpp>

#include <cstdint>

namespace quire {

/// Keeps the chunk of the oldest query in flight: a whole chunk dies at once, when the first query of the next one is oldest.
/// \tparam Chunk [tokens] per chunk; at least 1
template <std::uint32_t Chunk>
struct chunked_residency {
  /// What it keeps; sizes that cannot be do not compile.
  static constexpr retention keeps = retention::chunked(token_count{Chunk});
  /// Leading blocks that no query from \p oldest_query on needs: those wholly before its chunk.
  /// \pre `block_tokens > 0` \complexity O(1) \source B8
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
static_assert(residency_policy<chunked_residency<8192>>);

} // namespace quire
