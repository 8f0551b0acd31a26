// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// How far two orders of one summation can be apart.

#include <quire/core/config_error.hpp>
#include <quire/model/dtype.hpp>

#include <cmath>
#include <cstdint>

namespace quire {

/// Half the distance from 1 to the next number of a floating-point type: the relative error of one rounding. Integer
/// types have none: 0. \source IEEE 754
[[nodiscard]] inline auto unit_roundoff(dtype type) noexcept -> double {
  switch (type) {
  case dtype::f64: return std::ldexp(1.0, -53);
  case dtype::f32: return std::ldexp(1.0, -24);
  case dtype::f16: return std::ldexp(1.0, -11);
  case dtype::bf16: return std::ldexp(1.0, -8);
  case dtype::fp8_e4m3: return std::ldexp(1.0, -4);
  case dtype::fp8_e5m2: return std::ldexp(1.0, -3);
  case dtype::fp4_e2m1: return std::ldexp(1.0, -2);
  case dtype::int8:
  case dtype::int4: break;
  }
  return 0.0;
}

/// Size of a computation, for a bound on its rounding errors. The bound is the classical one for sums in any order,
/// γ_n = n·u / (1 − n·u), once per stage: pessimistic, and never below what can happen inside a stage.
/// \source Higham, "Accuracy and Stability of Numerical Algorithms", 3.1 and 4.2
struct accumulation_error {
  /// Type that sums are kept in.
  dtype arithmetic = dtype::f32;
  /// Terms of the longest sum: key width, context length or hidden size, whichever is largest.
  std::uint64_t terms = 1;
  /// Sums that depend on each other: about 2 per attention and 2 per projection, times the layers.
  std::uint64_t stages = 1;
  /// Largest sum of absolute terms: how big the numbers are *before* they cancel.
  double magnitude = 1.0;

  /// The bound. \throws config_error if the type has no rounding error, or the sums are so long that nothing is known
  [[nodiscard]] auto bound() const -> double {
    auto const roundoff = unit_roundoff(arithmetic);
    if (roundoff == 0.0) { throw config_error{"accumulation_error: sums need a floating-point type: use f32 or f64"}; }
    auto const growth = static_cast<double>(terms) * roundoff;
    if (growth >= 1.0) { throw config_error{"accumulation_error: sums too long for the type: use a wider one"}; }
    return static_cast<double>(stages) * growth / (1.0 - growth) * magnitude;
  }
};

} // namespace quire
