// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What a step is asked to do with one sequence, and the answer.

#include <quire/core/errc.hpp>
#include <quire/core/types.hpp>

#include <cstdint>

namespace quire {

/// Where the bytes of new positions come from. The rest of a plan's path is the same (B17).
enum class step_source : std::uint8_t {
  compute, ///< The backend computes them in this step.
  load,    ///< Somebody else computed them and a transfer brings them (disaggregated prefill): counted as loaded.
};

/// The answer to one item of a step.
struct step_result {
  errc status = errc::ok; ///< `ok`, or why this item is not part of the step.
  row_id row{};           ///< Row of the batch view; `none()` unless `ok`.
  token_count skipped{};  ///< [tokens] whose write is skipped, from the first on: their ids must be the prompt's.
  std::uint64_t user = 0; ///< What the item brought along.
};

} // namespace quire
