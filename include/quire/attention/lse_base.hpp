// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The base of a log-sum-exp. The library speaks natural logarithms; kernels of others use base 2, and mixing the two
/// gives results that look nearly right.

#include <cstdint>
#include <limits>
#include <numbers>

namespace quire {

/// What a log-sum-exp is a logarithm to.
enum class lse_base : std::uint8_t {
  natural, ///< e: this library, FlashAttention, FlashMLA.
  two,     ///< 2: FlashInfer, TensorRT-LLM.
};

/// Converts the log-sum-exp of another library: to the natural logarithm, and "no key" to −∞ whether it was told as
/// −∞ or, as some kernels do, as +∞.
[[nodiscard]] constexpr auto natural_lse(double value, lse_base base) noexcept -> double {
  constexpr auto infinity = std::numeric_limits<double>::infinity();
  if (value == infinity) { return -infinity; }
  return base == lse_base::two ? value * std::numbers::ln2 : value;
}

} // namespace quire
