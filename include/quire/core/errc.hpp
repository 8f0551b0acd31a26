// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Every ordinary reason for which an operation of the library can refuse. Each text says what was
/// wrong and what would work.

#include <cstdint>
#include <string_view>

namespace quire {

/// Why an operation refused. Nothing has changed when one of these is returned, except that a commit which answers `stale`
/// has committed the sequences that are still there.
enum class errc : std::uint8_t {
  ok,                 ///< No error: the value that step results carry when an item was planned.
  no_blocks,          ///< Not enough free or evictable blocks now.
  beyond_context,     ///< Prompt, output and draft exceed the longest context the cache was made for.
  never_fits,         ///< The request needs more blocks than the pool has (case 101).
  empty_prompt,       ///< A prompt of zero tokens.
  zero_output,        ///< An output budget of zero tokens (S39).
  zero_tokens,        ///< A step item without positions to compute.
  over_budget,        ///< The step exceeds the positions the request asked for at admission.
  beyond_append,      ///< The step adds more positions to one sequence than its windows have room for.
  plan_open,          ///< The sequence, or the cache, has a plan that is neither committed nor dropped.
  views_in_flight,    ///< Every batch buffer is held by a view whose ticket is not reached.
  too_many_rows,      ///< More items than rows of the batch view.
  too_many_sequences, ///< Every sequence record is in use.
  duplicate_item,     ///< The same sequence appears twice in one step.
  stale,              ///< The sequence ended while its plan was open; nothing was published.
  stale_epoch,        ///< The weights changed after the sequence was admitted; it must restart.
  out_of_range,       ///< A position or length outside the sequence.
  other_tokens,       ///< Positions that are stored already got other tokens than the stored ones.
  unresolved,         ///< Positions whose tokens are not known yet stand in the way.
  not_resident,       ///< The positions needed are no longer in the cache.
  illegal_transition, ///< The life-cycle table has no such edge (S25).
  not_supported,      ///< The configured policy or group kind cannot do this.
  block_shared,       ///< Others read the block that would be changed in place.
  never_shared,       ///< The storage is overwritten in place, so that no other sequence can read it (S30).
};

/// What went wrong and what would work, for people.
[[nodiscard]] constexpr auto message(errc e) noexcept -> std::string_view {
  switch (e) {
  case errc::ok: return "no error";
  case errc::no_blocks:
    return "not enough free or evictable blocks: retry after a release, or give the pool more blocks";
  case errc::beyond_context:
    return "prompt, output and draft exceed max_context: shorten the request or configure a longer context";
  case errc::never_fits:
    return "the request needs more blocks than the pool has: shorten it or give the pool more blocks";
  case errc::empty_prompt: return "the prompt has no tokens: a request needs at least one";
  case errc::zero_output: return "the output budget is zero: ask for at least one token";
  case errc::zero_tokens: return "the step item has no positions: leave it out or give it at least one";
  case errc::over_budget:
    return "the step exceeds the positions promised at admission: admit with a larger max_output or draft";
  case errc::beyond_append:
    return "the step adds more positions to one sequence than max_append: split it or configure a larger one";
  case errc::plan_open: return "a plan is still open: commit or drop it first";
  case errc::views_in_flight:
    return "every batch buffer is in flight: wait for a ticket or configure more batch buffers";
  case errc::too_many_rows: return "more items than rows: split the step or configure more rows";
  case errc::too_many_sequences: return "every sequence record is in use: release one or configure more sequences";
  case errc::duplicate_item: return "the sequence appears twice in the step: merge its items into one";
  case errc::stale: return "the sequence ended while its plan was open: nothing was published";
  case errc::stale_epoch: return "the weights changed after admission: release the sequence and admit it again";
  case errc::out_of_range: return "the position lies outside the sequence: use one in [0, length]";
  case errc::other_tokens:
    return "positions that are stored already have other tokens: feed those of the prompt until length() passes "
           "found()";
  case errc::unresolved: return "tokens of committed positions are unknown: resolve them first";
  case errc::not_resident:
    return "positions that are needed were given up: resume from the earliest resumable position";
  case errc::illegal_transition: return "the life-cycle table has no such transition from the present state";
  case errc::not_supported: return "the configured policy does not support this operation";
  case errc::block_shared: return "others read the block that would be changed: copy it first, then repeat";
  case errc::never_shared:
    return "a ring is overwritten in place and never shared: keep the group in pages, or recompute its window";
  }
  return "unknown error";
}

} // namespace quire
