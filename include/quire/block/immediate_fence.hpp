// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The null fence: work is over when the call that started it returns.

#include <quire/block/concepts.hpp>
#include <quire/core/types.hpp>

#include <cstddef>

namespace quire {

/// For backends on the host, or engines that synchronise before every commit.
struct immediate_fence {
  /// One timeline, always quiet.
  static constexpr std::size_t timelines = 1;
  /// Ticket 0, which is reached from the start.
  [[nodiscard]] auto issue(timeline_id) noexcept -> ticket { return ticket{}; }
  /// Ticket 0.
  [[nodiscard]] auto issued(timeline_id) const noexcept -> ticket { return ticket{}; }
  /// Always true.
  [[nodiscard]] auto reached(timeline_id, ticket) const noexcept -> bool { return true; }
};
static_assert(fence_policy<immediate_fence>);

} // namespace quire
