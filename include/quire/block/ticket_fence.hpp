// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A fence of counters: the engine issues a ticket after enqueuing work and says how far a timeline has come.

#include <quire/block/concepts.hpp>
#include <quire/block/fwd.hpp>
#include <quire/core/types.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace quire {

/// Monotone tickets on \p Timelines device queues. Nothing is polled: completion is *told* (by a step counter, an
/// event, a host-mapped counter), so that the same calls give the same decisions on every rank.
/// \tparam Timelines number of device queues, at least 1.
template <std::size_t Timelines>
class ticket_fence {
public:
  static_assert(Timelines >= 1, "ticket_fence needs at least one timeline");
  /// Device queues.
  static constexpr std::size_t timelines = Timelines;
  /// The next ticket of \p timeline: everything enqueued on it so far. \complexity O(1)
  [[nodiscard]] auto issue(timeline_id timeline) noexcept -> ticket { return ticket{++issued_[timeline.value()]}; }
  /// The ticket issued last on \p timeline.
  [[nodiscard]] auto issued(timeline_id timeline) const noexcept -> ticket { return ticket{issued_[timeline.value()]}; }
  /// True once \p timeline has come to \p until. Monotone: reached(t) implies reached(t') for t' <= t.
  [[nodiscard]] auto reached(timeline_id timeline, ticket until) const noexcept -> bool {
    return until.value() <= reached_[timeline.value()];
  }
  /// Tells that \p timeline has come to \p until. An older or doubled report changes nothing.
  auto complete(timeline_id timeline, ticket until) noexcept -> void {
    if (until.value() > reached_[timeline.value()]) { reached_[timeline.value()] = until.value(); }
  }

private:
  std::array<std::uint64_t, Timelines> issued_{};
  std::array<std::uint64_t, Timelines> reached_{};
};
static_assert(fence_policy<ticket_fence<2>>);

} // namespace quire
