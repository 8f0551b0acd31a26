// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Half-open intervals of token positions and of logical blocks.

#include <quire/core/types.hpp>

namespace quire {

/// Positions [begin, end).
struct position_interval {
  token_pos begin{}; ///< First position inside.
  token_pos end{};   ///< First position behind; never before `begin`.

  /// Number of positions inside.
  [[nodiscard]] constexpr auto size() const noexcept -> token_count { return end - begin; }
  /// True if no position is inside.
  [[nodiscard]] constexpr auto empty() const noexcept -> bool { return begin == end; }
  /// True if \p position is inside.
  [[nodiscard]] constexpr auto contains(token_pos position) const noexcept -> bool {
    return begin <= position && position < end;
  }
  /// Same bounds.
  friend constexpr auto operator==(position_interval const&, position_interval const&) noexcept -> bool = default;
};

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
