// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What an observer learns when a sequence was admitted.

#include <quire/core/types.hpp>

namespace quire {

/// A sequence was admitted, or re-admitted after a preemption. Nothing is computed yet, so nothing is counted as a hit
/// yet: that happens at commit (case 132).
struct admit_event {
  /// For whom.
  scope_number scope = {};
  /// Which sequence.
  sequence_number sequence = {};
  /// [tokens] in the prompt.
  token_count prompt = {};
  /// [tokens] attached from the cache, at most `prompt` - 1.
  token_count attached = {};
  /// [blocks] promised to the sequence beyond the attached ones.
  block_count promised = {};
  /// True if the sequence ran before and was preempted.
  bool resumed = false;
};

} // namespace quire
