// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// One layer group as a cache sees it.

#include <quire/core/types.hpp>
#include <quire/model/retention.hpp>

namespace quire {

/// What a cache has to know of a layer group (S29). Its number is its place in `cache_options::groups`.
struct cache_group {
  retention keeps{};          ///< What stays. Groups that keep everything in blocks of one size share one table.
  block_count blocks{};       ///< [blocks] in its pool; 0 = as many as `cache_options::blocks`.
  token_count block_tokens{}; ///< [tokens] per block; 0 = `cache_options::block_tokens`.
  byte_count block_bytes{};   ///< [bytes] of a block over all layers of the group; needed where groups share memory.

  /// Same group.
  friend constexpr auto operator==(cache_group const&, cache_group const&) noexcept -> bool = default;
};

} // namespace quire
