// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What an observer learns: one type per event, each with the scope and the sequence that it is about.

#include <quire/core/errc.hpp>
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
  /// [blocks of a unit] promised to the sequence beyond the attached ones.
  block_count promised = {};
  /// True if the sequence ran before and was preempted.
  bool resumed = false;
};

/// An admission or a step item was refused; nothing changed, and nothing else is counted (case 132).
struct refuse_event {
  /// For whom.
  scope_number scope = {};
  /// Which sequence; `none()` if it was never admitted.
  sequence_number sequence = {};
  /// Why.
  errc reason = errc::ok;
  /// [blocks] that were missing; 0 if blocks were not the reason.
  block_count missing = {};
};

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

/// Full blocks of a sequence were published.
struct publish_event {
  /// In which scope they can be matched.
  scope_number scope = {};
  /// Who computed them.
  sequence_number sequence = {};
  /// [blocks of a unit] that became matchable.
  block_count blocks = {};
  /// [blocks of a unit] that existed already: the sequence goes on with them and has given its own up, or, where nobody used
  /// them, its own have taken their place.
  block_count duplicates = {};
};

/// Idle published blocks were evicted; final, so not before the launch of the plan that needed them (or, where groups share
/// one memory, when room is looked for). It does not name the scope that needed room: neither may learn of the other (S37).
struct evict_event {
  /// `none()`: the victims of one step may come from several scopes (S37).
  scope_number scope = {};
  /// Layer group they belonged to.
  group_id group = {};
  /// [blocks] evicted.
  block_count blocks = {};
};

/// A sequence was released, whatever ended it, or preempted.
struct release_event {
  /// For whom.
  scope_number scope = {};
  /// Which sequence.
  sequence_number sequence = {};
  /// [tokens] committed at the end.
  token_count length = {};
  /// [blocks of a unit] that were private and return to the pool.
  block_count returned = {};
  /// [blocks of a unit] that stay matchable.
  block_count kept = {};
  /// True if the sequence will come back (S24).
  bool preempted = false;
};

} // namespace quire
