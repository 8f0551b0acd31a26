// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// How a token is chosen from logits.

#include <quire/core/config_error.hpp>

#include <cmath>
#include <cstdint>

namespace quire {

/// Choice of a token. Changes no cached byte and is therefore part of no key (S34).
struct sampling_options {
  /// Divides the logits; 0 = greedy: the largest logit, the lowest id among equals, and no randomness.
  double temperature = 0.0;
  /// Only this many of the most likely tokens; 0 = all.
  std::uint32_t top_k = 0;
  /// Only the smallest set of most likely tokens whose probabilities reach this, at least one token; 1 = all.
  double top_p = 1.0;

  /// Checks all of it. \throws config_error naming what was wrong and what would work
  void validate() const {
    if (!(temperature >= 0.0) || !std::isfinite(temperature)) {
      throw config_error{"sampling: the temperature must be 0 (greedy) or positive, often 0.7 to 1"};
    }
    if (!(top_p > 0.0 && top_p <= 1.0)) { throw config_error{"sampling: top_p must be in (0, 1], 1 for all tokens"}; }
  }
  /// Same options.
  friend auto operator==(sampling_options const&, sampling_options const&) noexcept -> bool = default;
};

} // namespace quire
