// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What a comparison of two runs found.

#include <quire/attention/equivalence_bound.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace quire {

/// What kind of difference it is. \source S4
enum class equivalence_verdict : std::uint8_t {
  numeric,          ///< Within the bound: rounding explains it.
  structural,       ///< Above the bound: a wrong mask, position, key, row or layer.
  below_resolution, ///< Within the bound, but so would be the fault that is looked for: this run cannot tell.
};

/// The name of the verdict.
[[nodiscard]] constexpr auto name_of(equivalence_verdict verdict) noexcept -> std::string_view {
  switch (verdict) {
  case equivalence_verdict::numeric: return "numeric";
  case equivalence_verdict::structural: return "structural";
  case equivalence_verdict::below_resolution: return "below_resolution";
  }
  return "unknown";
}

/// One row whose largest value moved.
struct argmax_flip {
  /// Row, counted in the order of comparison.
  std::size_t row = 0;
  /// Index of the reference's largest value.
  std::size_t reference = 0;
  /// Index of the candidate's largest value.
  std::size_t candidate = 0;
  /// Reference's largest value minus its second largest: a flip with a margin above twice the bound is never numeric.
  double margin = 0.0;

  /// Same flip.
  friend auto operator==(argmax_flip const&, argmax_flip const&) noexcept -> bool = default;
};

/// Differences over all rows compared, and the verdict.
struct equivalence_report {
  /// The verdict.
  equivalence_verdict verdict = equivalence_verdict::structural;
  /// Rows compared.
  std::size_t rows = 0;
  /// Largest |reference − candidate|; infinite if one is NaN where the other is not the same.
  double max_abs = 0.0;
  /// The row that has it.
  std::size_t worst_row = 0;
  /// Largest |reference − candidate| / max(|reference|, |candidate|).
  double max_rel = 0.0;
  /// [nats] Largest Kullback–Leibler divergence of a row, from the reference.
  double max_kl = 0.0;
  /// Rows whose arg-max differs, in order.
  std::vector<argmax_flip> flips = {};
  /// The bound that was used.
  equivalence_bound bound = {};
  /// Largest difference that the fault looked for would make; negative if none was named.
  double effect = -1.0;
};

} // namespace quire
