// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// All planes of one layer group in host memory.

#include <quire/core/types.hpp>
#include <quire/view/host_plane.hpp>

#include <span>

namespace quire {

/// The planes that a block of one layer group consists of: those of every layer, K, V, scales and side state alike.
/// A block is all of them, for every action. Owns nothing.
struct host_group {
  /// Blocks of the group's pool.
  block_count blocks = {};
  /// [tokens] per block, p_b.
  token_count block_tokens = {};
  /// Every plane of every layer.
  std::span<host_plane const> planes = {};
};

} // namespace quire
