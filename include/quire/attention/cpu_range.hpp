// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A part of one attention computation, for callers that have threads.

#include <quire/core/types.hpp>
#include <quire/model/intervals.hpp>

#include <cstdint>
#include <limits>

namespace quire {

/// Rows, heads and keys that one call works on; what is not there is cut off. Ranges of rows and heads write disjoint
/// parts of the results, so that several threads may compute one step, each with a workspace of its own. The library
/// starts none itself.
struct cpu_range {
  /// First row of the view.
  std::int32_t first_row = 0;
  /// Row of the view behind the last.
  std::int32_t last_row = std::numeric_limits<std::int32_t>::max();
  /// First KV head; its query heads come along.
  std::uint32_t first_head = 0;
  /// KV head behind the last.
  std::uint32_t last_head = std::numeric_limits<std::uint32_t>::max();
  /// Keys. With less than all of them the results are partial: without learned sinks, to be merged with `merge_into`
  /// and finished once with `apply_sink`.
  position_interval keys = {.begin = token_pos{0}, .end = token_pos{std::numeric_limits<std::uint32_t>::max()}};

  /// True if keys are left out.
  [[nodiscard]] constexpr auto partial() const noexcept -> bool { return keys != cpu_range{}.keys; }
  /// Same part.
  friend constexpr auto operator==(cpu_range const&, cpu_range const&) noexcept -> bool = default;
};

} // namespace quire
