// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// How large a difference rounding alone may make.

#include <quire/attention/accumulation_error.hpp>
#include <quire/core/config_error.hpp>
#include <quire/core/contract.hpp>

#include <cmath>
#include <cstddef>
#include <span>

namespace quire {

/// The two sources of harmless difference. Give both in the unit of what is compared, logits or probabilities.
///
/// `storage` comes from a run of the oracle whose keys and values went through the storage type (`stored_value`), with
/// the right mask, positions and tables: the bytes that a correct run stores. Reading an engine's own memory instead
/// would let a stale block widen the bound that should catch it.
struct equivalence_bound {
  /// Largest difference between the exact oracle and the oracle on rounded keys and values.
  double storage = 0.0;
  /// Bound on the difference between two orders of summation.
  double accumulation = 0.0;

  /// What is allowed in all: the storage term twice, since a run that computes in another order rounds some keys to the
  /// other neighbour.
  [[nodiscard]] auto total() const noexcept -> double { return 2.0 * storage + accumulation; }

  /// Measures the storage term. \param exact outputs of the oracle \param stored outputs of the oracle over rounded keys
  ///   and values \pre as many of both
  [[nodiscard]] static auto of(std::span<double const> exact, std::span<double const> stored,
                               accumulation_error const& sums) -> equivalence_bound {
    QUIRE_EXPECTS(exact.size() == stored.size());
    auto out = equivalence_bound{.accumulation = sums.bound()};
    for (std::size_t i = 0; i < exact.size(); ++i) {
      auto const difference = exact[i] == stored[i] ? 0.0 : std::fabs(exact[i] - stored[i]); // equal infinities
      if (!(difference <= out.storage)) { out.storage = difference; }
    }
    return out;
  }
  /// Checks the numbers. \throws config_error if one is negative or not finite
  void validate() const {
    if (!(storage >= 0.0 && std::isfinite(storage)) || !(accumulation >= 0.0 && std::isfinite(accumulation))) {
      throw config_error{"equivalence_bound: both terms must be finite and not negative"};
    }
  }

  /// Same terms.
  friend auto operator==(equivalence_bound const&, equivalence_bound const&) noexcept -> bool = default;
};

} // namespace quire
