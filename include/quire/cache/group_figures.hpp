// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What is in the pool of one layer group.

#include <quire/core/types.hpp>

namespace quire {

/// Blocks of one layer group, counted.
struct group_figures {
  block_count capacity{};  ///< In the pool.
  block_count free{};      ///< Hold nothing.
  block_count evictable{}; ///< Hold what can be matched and nobody uses.
  block_count available{}; ///< What a plan could have now: free + evictable − reserved.
  block_count reserved{};  ///< Of them, spoken for by the plan that is not launched.
  block_count promised{};  ///< Owed to admitted sequences.
  block_count waiting{};   ///< Retired; they wait for a ticket.
  block_count draining{};  ///< Held by ended sequences whose work is not over.
  block_count lost{};      ///< Given up with lost timelines.
  block_count published{}; ///< Can be matched, used or not.

  /// Same figures.
  friend constexpr auto operator==(group_figures const&, group_figures const&) noexcept -> bool = default;
};

} // namespace quire
