// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Where the blocks of a layer group are.

#include <quire/core/types.hpp>

namespace quire {

/// Figures of one layer group, all in blocks. What is neither free, evictable, waiting, draining nor lost is in use by
/// sequences that live.
struct group_figures {
  block_count capacity{};  ///< In the pool.
  block_count free{};      ///< Hold nothing.
  block_count evictable{}; ///< Hold matchable content which nobody uses.
  block_count available{}; ///< What a plan could have now: free + evictable − reserved.
  block_count reserved{};  ///< Will be taken by the plan that is not launched.
  block_count promised{};  ///< Owed to admitted sequences beyond what is reserved.
  block_count published{}; ///< Can be matched, evictable ones included.
  block_count waiting{};   ///< Nobody holds them, and work in flight may still use them: they come back with a ticket.
  block_count draining{};  ///< Only ended or cut sequences keep them, until a ticket: then they are evictable.
  block_count lost{};      ///< Given up with lost timelines.

  /// Same figures.
  friend constexpr auto operator==(group_figures const&, group_figures const&) noexcept -> bool = default;
};

} // namespace quire
