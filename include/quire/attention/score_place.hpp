// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Logical coordinates of one attention score.

#include <quire/core/types.hpp>

#include <cstdint>

namespace quire {

/// Names one score: which query position looks at which key position through which query head. Use designated
/// initialisers: the two positions must not be swapped.
struct score_place {
  /// Logical position of the query.
  token_pos query = {};
  /// Logical position of the key; in the source for cross attention.
  token_pos key = {};
  /// Query head.
  std::uint32_t head = 0;
};

} // namespace quire
