// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Which device work is over: the fence of a cache, the tickets it was given, and the timelines it has given up.

#include <quire/block/immediate_fence.hpp>
#include <quire/core/types.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace quire::detail {

/// \cond INTERNAL
/// One ticket per timeline: the last work that used something.
template <std::size_t Timelines>
using use_tickets = std::array<ticket, Timelines>;

template <class Fence>
class fence_clock {
public:
  static constexpr std::size_t timelines = Fence::timelines;
  /// Nothing is ever in flight.
  static constexpr bool immediate = std::is_same_v<Fence, immediate_fence>;
  using tickets = use_tickets<timelines>;

  [[nodiscard]] auto fence() noexcept -> Fence& { return fence_; }
  [[nodiscard]] auto reached(std::uint32_t timeline, ticket until) const noexcept -> bool {
    return immediate || until <= abandoned_[timeline] || fence_.reached(timeline_id{timeline}, until);
  }
  [[nodiscard]] auto reached(tickets const& until) const noexcept -> bool {
    if constexpr (!immediate) {
      for (std::uint32_t t = 0; t < timelines; ++t) {
        if (!reached(t, until[t])) { return false; }
      }
    }
    return true;
  }
  /// The first timeline on which \p until is not reached. \pre there is one
  [[nodiscard]] auto behind(tickets const& until) const noexcept -> std::uint32_t {
    std::uint32_t t = 0;
    while (reached(t, until[t])) { ++t; }
    return t;
  }
  /// The last tickets that anybody was given.
  [[nodiscard]] auto latest() const noexcept -> tickets const& { return latest_; }
  auto note(std::uint32_t timeline, ticket until) noexcept -> void {
    latest_[timeline] = std::max(latest_[timeline], until);
  }
  [[nodiscard]] auto issue(timeline_id timeline) noexcept -> ticket { return fence_.issue(timeline); }
  [[nodiscard]] auto issued(timeline_id timeline) const noexcept -> ticket { return fence_.issued(timeline); }
  /// What was issued on \p timeline so far counts as reached.
  auto abandon(std::uint32_t timeline, ticket until) noexcept -> void { abandoned_[timeline] = until; }

private:
  Fence fence_{};
  tickets latest_{};
  tickets abandoned_{};
};

/// The later of two uses, timeline by timeline.
template <std::size_t Timelines>
auto join(use_tickets<Timelines>& a, use_tickets<Timelines> const& b) noexcept -> void {
  for (std::size_t t = 0; t < Timelines; ++t) { a[t] = std::max(a[t], b[t]); }
}
/// \endcond

} // namespace quire::detail
