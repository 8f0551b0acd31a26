// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What taking a request's blocks away brings.

#include <quire/core/types.hpp>

#include <span>

namespace quire {

/// What an ended sequence gives to others in one layer group.
struct returned_blocks {
  block_count now{}; ///< Free or evictable at once.
  /// Free or evictable once all tickets of `preemption` are reached, and the step that the sequence takes part in, if one is
  /// open, is committed and over, or dropped.
  block_count later{};
};

/// The answer of `kv_cache::preempt`. A scheduler that waits for room waits for these tickets and preempts nobody else.
struct preemption {
  /// One entry per layer group. Valid until the next sequence ends.
  std::span<returned_blocks const> groups;
  /// One ticket per timeline: the last work that may still use what comes `later`.
  std::span<ticket const> until;
};

} // namespace quire
