// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What an observer learns when a sequence gave up its blocks.

#include <quire/core/types.hpp>

namespace quire {

/// A sequence was released, whatever ended it, or preempted.
struct release_event {
  /// For whom.
  scope_number scope = {};
  /// Which sequence.
  sequence_number sequence = {};
  /// [tokens] committed at the end.
  token_count length = {};
  /// [blocks] that were private and return to the pool.
  block_count returned = {};
  /// [blocks] that stay matchable.
  block_count kept = {};
  /// True if the sequence will come back (S24).
  bool preempted = false;
};

} // namespace quire
