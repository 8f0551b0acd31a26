// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What a look-up found, and what publishing did.

#include <quire/core/types.hpp>
#include <quire/prefix/node_id.hpp>

#include <cstdint>

namespace quire {

/// The longest resident prefix of a prompt. Only a number until it is pinned: any change of the index may
/// invalidate it (case 31), so pin it in the same breath.
struct prefix_match {
  block_count blocks;       ///< Full blocks found from the start of the prompt.
  node_id node;             ///< Node that holds the last of them; the root if none.
  std::uint32_t offset = 0; ///< [blocks] of `node` that matched.
};

/// How far one call of `publish` came.
struct publish_result {
  block_count published; ///< Leading blocks that are in the index now.
  bool duplicate =
      false;          ///< The next block exists already: the pin has moved to it and the caller's copy stays private.
  block_id twin = {}; ///< That block, if `duplicate`.
  block_id replaced =
      {}; ///< Equal block that nobody used and whose place the last published one took; it is the caller's now.
};

} // namespace quire
