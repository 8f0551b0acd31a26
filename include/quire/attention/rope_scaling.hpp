// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// How rotary frequencies are stretched beyond the trained context.

#include <cstdint>
#include <string_view>

namespace quire {

/// The scaling rules.
enum class rope_scaling : std::uint8_t {
  none,         ///< θ_i = base^(−2i/d).
  linear,       ///< θ_i / factor: positions are interpolated.
  ntk,          ///< The base grows once: base · factor^(d/(d−2)).
  dynamic_ntk,  ///< The base grows with the length served. Depends on the length (S32).
  yarn,         ///< Low frequencies interpolated, high ones kept, a ramp between; scores rescaled.
  llama3,       ///< Long wavelengths divided by the factor, short ones kept, a blend between.
  long_factors, ///< One divisor per frequency, from a short or a long list. Depends on the length (S32).
};

/// The name of the rule.
[[nodiscard]] constexpr auto name_of(rope_scaling scaling) noexcept -> std::string_view {
  switch (scaling) {
  case rope_scaling::none: return "none";
  case rope_scaling::linear: return "linear";
  case rope_scaling::ntk: return "ntk";
  case rope_scaling::dynamic_ntk: return "dynamic_ntk";
  case rope_scaling::yarn: return "yarn";
  case rope_scaling::llama3: return "llama3";
  case rope_scaling::long_factors: return "long_factors";
  }
  return "unknown";
}

/// True if the parameters in force depend on how long the sequence gets. \source S32
[[nodiscard]] constexpr auto depends_on_length(rope_scaling scaling) noexcept -> bool {
  return scaling == rope_scaling::dynamic_ntk || scaling == rope_scaling::long_factors;
}

} // namespace quire
