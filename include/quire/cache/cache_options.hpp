// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// How large a cache is and how it behaves.

#include <quire/cache/cache_group.hpp>
#include <quire/core/types.hpp>

#include <cstdint>
#include <vector>

namespace quire {

/// When a block that held data is overwritten before its next use (S37).
enum class scrub_rule : std::uint8_t {
  never,    ///< Length-bounded reads are trusted.
  on_reuse, ///< Every block taken for writing is scrubbed first, as an action of the plan.
};

/// What becomes of running requests when the weights change (S35).
enum class running_requests : std::uint8_t {
  finish_privately, ///< They go on with what they have and never publish again.
  must_restart,     ///< Their next step is refused with `errc::stale_epoch`.
};

/// Options of a cache. Give `bytes` or `blocks`; or a model, which fills in what is not given.
struct cache_options {
  byte_count bytes{};                 ///< [bytes] for blocks; used if `blocks` is 0.
  block_count blocks{};               ///< [blocks] in the pool; 0 = as many as `bytes` hold.
  token_count block_tokens{16};       ///< [tokens] per block, p_b.
  sequence_count max_sequences{1024}; ///< Sequences alive at once, those that ended while their step is open included.
  row_count max_rows{256};            ///< Rows of a batch view.
  token_count max_context{};          ///< [tokens] longest budget; fixes the width, and so the address, of the padded
                                      ///< tables for captured graphs (in window groups: with drafts of up to
                                      ///< 4 blocks). 0 = they grow with the longest budget admitted.
  std::uint32_t batch_buffers = 2;    ///< Views that may be in flight at once.
  bool skip_writes = true;            ///< The backend honours slot −1; if not, a full hit copies one block (S22).
  scrub_rule scrub = scrub_rule::never; ///< When blocks are scrubbed.
  token_count max_append{2048};         ///< [tokens] one step adds to a sequence at most, if there are groups that give
                                        ///< blocks up: it bounds what their windows hold at once. 0 = no bound.
  token_count rebuild{}; ///< [tokens] to compute again so that lost windows are exact, N_w · (w − 1); 0 = a hit
                         ///< ends where a window was lost. With a model it is the model's (S28).
  std::vector<cache_group> groups{}; ///< Layer groups by number; empty = one that keeps everything. `blocks` are those
                                     ///< of the groups that keep everything (and of the index, if there is none).
};

} // namespace quire
