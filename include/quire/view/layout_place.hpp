// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Logical coordinates of one element of a plane.

#include <quire/core/types.hpp>

#include <cstdint>

namespace quire {

/// Names one element of a plane. Use designated initialisers.
struct layout_place {
  /// Physical block.
  block_id block = {};
  /// [tokens] offset in the block.
  token_count token = {};
  /// Stored head.
  std::uint32_t head = 0;
  /// [elements] in the head.
  std::uint32_t dim = 0;
};

} // namespace quire
