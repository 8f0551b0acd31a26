// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The weights with which two partial attention results become one.

#include <quire/core/contract.hpp>

#include <algorithm> // std::max
#include <cmath>
#include <concepts>
#include <limits>

namespace quire {

/// Weights of two partial results, and the log-sum-exp of both together. The weights add up to 1, or are both 0 if
/// neither part saw a key. \tparam Float type of the computation
template <std::floating_point Float>
struct merge_weights {
  /// Weight of the first output; 0 means: do not even read it.
  Float first = 0;
  /// Weight of the second output; 0 means: do not even read it.
  Float second = 0;
  /// Log-sum-exp of both, natural logarithm; −∞ if neither part saw a key.
  Float lse = -std::numeric_limits<Float>::infinity();

  /// Two log-sum-exps, named so that they cannot be swapped.
  struct parts {
    /// Of the first part, natural logarithm.
    Float first;
    /// Of the second part, natural logarithm.
    Float second;
  };

  /// Weights of two parts. NaN in either gives NaN.
  /// \pre neither is +∞: other libraries' sign for "no key" goes through `natural_lse` first
  [[nodiscard]] static auto of(parts lse) -> merge_weights {
    constexpr auto infinity = std::numeric_limits<Float>::infinity();
    QUIRE_EXPECTS(lse.first != infinity);
    QUIRE_EXPECTS(lse.second != infinity);
    if (lse.second == -infinity) {
      return {.first = lse.first == -infinity ? Float{0} : Float{1}, .second = 0, .lse = lse.first};
    }
    if (lse.first == -infinity) { return {.first = 0, .second = 1, .lse = lse.second}; }
    auto const top = std::max(lse.first, lse.second);
    auto const first = std::exp(lse.first - top);
    auto const second = std::exp(lse.second - top);
    auto const sum = first + second;
    return {.first = first / sum, .second = second / sum, .lse = top + std::log(sum)};
  }
};

} // namespace quire
