// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The residency of full attention, which is also the null model: nothing ever goes.

#include <quire/core/types.hpp>
#include <quire/model/resident_range.hpp>
#include <quire/model/retention.hpp>
#include <quire/sequence/concepts.hpp>

namespace quire {

/// Every position stays until the sequence ends, decided by the one `resident_range` like every residency.
struct full_residency {
  /// Leading blocks that no query from \p oldest_query on needs: none.
  [[nodiscard]] static auto releasable(token_pos oldest_query, token_count block_tokens) noexcept -> block_count {
    auto const dead = resident_range(oldest_query, retention::full(), block_tokens).dead;
    return block_count{dead.end.value() - dead.begin.value()};
  }
};
static_assert(residency_policy<full_residency>);

} // namespace quire
