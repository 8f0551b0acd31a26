// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// All that a generation is, besides what a cache can bring back.

#include <quire/core/types.hpp>
#include <quire/generate/random_state.hpp>
#include <quire/generate/stop_rules.hpp>
#include <quire/generate/token_sampler.hpp>

#include <vector>

namespace quire {

/// Saved with a request: whoever has it goes on as if nothing had happened, on this machine or another, with any part of
/// the KV or none. A value. \source S34
struct generation_state {
  std::vector<token_id> prompt = {}; ///< P tokens.
  std::vector<token_id> output = {}; ///< Outputs so far. The last one is not cached (S39).
  sampling_options sampling = {};    ///< How to choose.
  random_state random{};             ///< What chance does next.
  stop_rules stop = {};              ///< When to stop.

  /// Same generation.
  friend auto operator==(generation_state const&, generation_state const&) -> bool = default;
};

} // namespace quire
