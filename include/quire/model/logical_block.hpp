// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The index of a block inside one sequence, as opposed to the physical `block_id` it maps to (S14).

#include <quire/core/strong.hpp>
#include <quire/core/types.hpp>

namespace quire {

/// Index of a block in a sequence: block j holds the positions [j·p_b, (j+1)·p_b).
using logical_block = strong_position<block_count>;

/// Logical blocks [begin, end).
struct logical_block_interval {
  logical_block begin{}; ///< First block inside.
  logical_block end{};   ///< First block behind; never before `begin`.

  /// Number of blocks inside.
  [[nodiscard]] constexpr auto size() const noexcept -> block_count { return end - begin; }
  /// True if no block is inside.
  [[nodiscard]] constexpr auto empty() const noexcept -> bool { return begin == end; }
  /// True if \p block is inside.
  [[nodiscard]] constexpr auto contains(logical_block block) const noexcept -> bool {
    return begin <= block && block < end;
  }
  /// Same bounds.
  friend constexpr auto operator==(logical_block_interval const&, logical_block_interval const&) noexcept
      -> bool = default;
};

} // namespace quire
