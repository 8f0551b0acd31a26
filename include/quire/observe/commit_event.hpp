// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What an observer learns when a step of one sequence was committed.

#include <quire/core/types.hpp>

namespace quire {

/// A step of one sequence took effect. The only event that counts tokens.
///
/// Positions of the prompt come in exactly one of four kinds: attached from the cache, loaded from a tier, computed,
/// or not covered yet. The first three are reported by the commit that covers them: `hit` and `loaded` by the first
/// commit after the admission, `computed_prompt` by each commit for the positions it computed.
struct commit_event {
  /// For whom.
  scope_number scope = {};
  /// Which sequence.
  sequence_number sequence = {};
  /// True in the first commit after an admission.
  bool first = false;
  /// True if this admission followed a preemption: what it finds is its own work and no cache hit (case 131, S24).
  bool resumed = false;
  /// [tokens] attached from the cache and kept; 0 unless `first`. What a look-up found and dropped is not in it (case 134).
  token_count hit = {};
  /// [tokens] brought by a tier; 0 unless `first`.
  token_count loaded = {};
  /// [tokens] of the prompt computed by this step; the last position counts, its write skipped or not (S22, case 24).
  /// For a resumed sequence everything below the length it had when it was preempted is prompt.
  token_count computed_prompt = {};
  /// [tokens] behind the prompt computed by this step.
  token_count computed_output = {};
  /// [tokens] committed after this step.
  token_count length = {};
  /// [blocks] copied on write for this step.
  block_count copied = {};
};

} // namespace quire
