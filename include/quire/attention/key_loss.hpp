// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What the loss of one key does to an output, without computing it again.

#include <quire/core/contract.hpp>

#include <cmath>
#include <cstddef>
#include <span>

namespace quire {

/// Largest change of an attention output if a key of weight \p weight were missing: a / (1 − a) · |o − v|. A key whose
/// loss changes less than the bound cannot be tested for by outputs. \param output \shape [d_v] with the key
/// \param value \shape [d_v] of the key \param weight a, in [0, 1]
/// \returns the change; infinite if it is the only key \pre as many of both \source S4
[[nodiscard]] inline auto key_loss(std::span<double const> output, std::span<double const> value, double weight)
    -> double {
  QUIRE_EXPECTS(output.size() == value.size());
  QUIRE_EXPECTS(weight >= 0.0 && weight <= 1.0);
  auto distance = 0.0;
  for (std::size_t d = 0; d < output.size(); ++d) {
    auto const here = std::fabs(output[d] - value[d]);
    distance = here > distance ? here : distance;
  }
  return weight == 1.0 ? HUGE_VAL : weight / (1.0 - weight) * distance;
}

} // namespace quire
