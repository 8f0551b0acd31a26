// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Where one position lies: a block and an offset in it.

#include <quire/core/types.hpp>

namespace quire {

/// The physical place of a logical position (S14).
struct token_place {
  /// Block that holds the position; `none()` where the table has no block for it.
  block_id block;
  /// [tokens] Offset in the block, in [0, p_b).
  token_count offset;

  /// True if both agree.
  friend constexpr auto operator==(token_place const&, token_place const&) noexcept -> bool = default;
};

} // namespace quire
