// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What a caller asks a generator for, and why it may be refused.

#include <quire/cache/requests.hpp>
#include <quire/core/errc.hpp>
#include <quire/core/types.hpp>
#include <quire/generate/generation_state.hpp>
#include <quire/generate/types.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace quire {

/// What becomes of the last output, which no later output has made anybody feed (S41).
enum class last_output_rule : std::uint8_t {
  leave,   ///< The cache covers P + G − 1 positions; a follow-up turn prefills the last output.
  forward, ///< One more forward pass, without an output: the cache covers P + G positions.
};

/// A request. Scope and state have no default; outputs in the state are what an earlier run has saved.
struct generation_request {
  scope_number scope;                                     ///< For whom and under which conditions.
  generation_state state;                                 ///< Prompt, choice, stop rules.
  reuse_rule reuse = reuse_rule::read_and_write;          ///< What it shares.
  last_output_rule last_output = last_output_rule::leave; ///< What becomes of the last output.
  std::optional<instant> entry = {};                      ///< The agreed entry; nothing = the call of `submit`.
  std::optional<nanosecond_count> time_limit = {};        ///< From the entry; then it times out.
};

/// A refused request. Nothing has changed.
struct generation_refusal {
  errc code = errc::ok;  ///< The kind.
  std::string message{}; ///< What was wrong, with figures, and what would work.
};

} // namespace quire
