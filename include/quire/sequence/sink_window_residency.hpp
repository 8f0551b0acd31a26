// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The residency of a sliding window that never lets the first positions go.

#include <quire/core/types.hpp>
#include <quire/model/logical_block.hpp>
#include <quire/model/resident_range.hpp>
#include <quire/model/retention.hpp>
#include <quire/sequence/concepts.hpp>

#include <cstdint>

namespace quire {

/// Keeps the first positions and what windows reach (StreamingLLM). Learned logits (gpt-oss) are no positions and retain
/// nothing. \tparam Sinks [tokens] that stay; without any it is `sliding_window_residency`
/// \tparam Window [tokens] w, the query's own position included; at least 1
template <std::uint32_t Sinks, std::uint32_t Window>
struct sink_window_residency {
  /// What it keeps; sizes that cannot be do not compile.
  static constexpr retention keeps =
      retention::sink_window({.sinks = token_count{Sinks}, .window = token_count{Window}});
  /// Leading blocks that no query from \p oldest_query on needs: none if there are sinks, for those lead. Ask `dead`.
  /// \pre `block_tokens > 0` \complexity O(1) \source S27, B8
  [[nodiscard]] static constexpr auto releasable(token_pos oldest_query, token_count block_tokens) noexcept
      -> block_count {
    auto const gone = dead(oldest_query, block_tokens);
    return gone.begin == logical_block{} ? gone.size() : block_count{};
  }
  /// Every block that no query from \p oldest_query on needs, wherever it lies. \pre `block_tokens > 0` \complexity O(1)
  [[nodiscard]] static constexpr auto dead(token_pos oldest_query, token_count block_tokens) noexcept
      -> logical_block_interval {
    return resident_range(oldest_query, keeps, block_tokens).dead;
  }
};
static_assert(residency_policy<sink_window_residency<4, 4096>>);

} // namespace quire
