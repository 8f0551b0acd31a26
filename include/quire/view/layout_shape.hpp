// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// How much one plane holds, without saying in which order.

#include <quire/core/types.hpp>
#include <quire/view/layout_role.hpp>

#include <cstdint>

namespace quire {

/// Extents of one plane of one layer. Use designated initialisers: nothing here may be confused with its neighbour.
struct layout_shape {
  /// Meaning of the plane.
  layout_role role = layout_role::key;
  /// Blocks of the pool.
  block_count blocks = {};
  /// [tokens] per block, p_b; 1 for what exists once per block (per-block scales).
  token_count block_tokens = {};
  /// Heads stored on this device; 1 for latent planes.
  std::uint32_t heads = 1;
  /// [elements] per token and head.
  std::uint32_t dim = 0;
  /// [bits] per element, 4 for packed 4-bit formats.
  std::uint32_t element_bits = 16;
};

} // namespace quire
