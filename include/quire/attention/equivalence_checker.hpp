// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Decides whether a cached run computes the same as a full recompute, by numbers and not by text.
///
///     reference   full recompute                         logits of each position ─┐
///     candidate   through the cache under test           logits of each position ─┴► compare ──► report
///     bound       oracle, exact against rounded keys  +  accumulation error              │
///     fault       oracle with, say, one key left out  ──────────────────► look_for ──────┘
///
///     difference > bound                       structural
///     difference ≤ bound, effect ≤ 2 · bound   below resolution: with or without the fault the run would look like this
///     difference ≤ bound otherwise             numeric
///
/// Equal texts prove little, since greedy choices hide differences, and unequal ones too: a flip between two nearly
/// equal logits is rounding. So each flip is reported with the margin of the reference's two best.

#include <quire/attention/equivalence_bound.hpp>
#include <quire/attention/equivalence_report.hpp>
#include <quire/core/contract.hpp>

#include <algorithm> // std::max
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace quire {

/// What the rows hold.
enum class compared_values : std::uint8_t {
  logits,        ///< Scores before the softmax.
  probabilities, ///< Scores after it.
};

/// Compares rows of outputs of two runs and keeps the worst of everything.
///
/// ```cpp
/// auto checker = quire::equivalence_checker{bound, quire::compared_values::logits};
/// for (…each position…) { checker.compare(recomputed, cached); }
/// if (checker.report().verdict != quire::equivalence_verdict::numeric) { … }
/// ```
/// \source S4
class equivalence_checker {
public:
  /// Allows differences up to \p bound. \throws config_error if the bound is negative or not finite
  explicit equivalence_checker(equivalence_bound bound, compared_values values = compared_values::logits)
      : values_{values} {
    bound.validate();
    report_.bound = bound;
  }

  /// Adds one row: a position's values in the reference and in the candidate. \pre as many of both, at least one
  void compare(std::span<double const> reference, std::span<double const> candidate) { add(reference, candidate); }
  /// Adds one row of a single-precision candidate. \pre as the first overload
  void compare(std::span<double const> reference, std::span<float const> candidate) { add(reference, candidate); }
  /// Adds one row of two single-precision runs. \pre as the first overload
  void compare(std::span<float const> reference, std::span<float const> candidate) { add(reference, candidate); }

  /// Names a fault by what it would do: a row of the reference, and the same row computed *with* the fault. Without it
  /// the report never says "below resolution". \pre as many of both
  void look_for(std::span<double const> reference, std::span<double const> faulty) {
    QUIRE_EXPECTS(reference.size() == faulty.size());
    auto effect = std::max(report_.effect, 0.0);
    for (std::size_t i = 0; i < reference.size(); ++i) { effect = std::max(effect, distance(reference[i], faulty[i])); }
    report_.effect = effect;
  }

  /// What has been found so far.
  /// \pre at least one row has been compared: no evidence is no equivalence
  /// \post (1) structural if and only if `max_abs > bound.total()`; (2) below resolution only if a fault was named whose
  ///   effect is at most twice the bound; (3) unless structural, every flip has a margin of at most twice the bound
  [[nodiscard]] auto report() const -> equivalence_report {
    QUIRE_EXPECTS(report_.rows > 0);
    auto out = report_;
    auto const allowed = out.bound.total();
    if (!(out.max_abs <= allowed)) {
      out.verdict = equivalence_verdict::structural;
    } else if (out.effect >= 0.0 && out.effect <= 2.0 * allowed) {
      out.verdict = equivalence_verdict::below_resolution;
    } else {
      out.verdict = equivalence_verdict::numeric;
    }
    return out;
  }

private:
  /// |a − b|, 0 for the same infinity, infinite where only one is NaN.
  [[nodiscard]] static auto distance(double a, double b) noexcept -> double {
    if (a == b || (std::isnan(a) && std::isnan(b))) { return 0.0; }
    auto const difference = std::fabs(a - b);
    return std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference;
  }
  template <class Values>
  [[nodiscard]] static auto largest(Values const& row) noexcept -> std::size_t {
    std::size_t best = 0;
    for (std::size_t i = 1; i < row.size(); ++i) { best = row[i] > row[best] ? i : best; }
    return best;
  }
  /// ln p of a row; logits are normalised, probabilities taken as they are.
  template <class Values>
  [[nodiscard]] auto log_probabilities(Values const& row) const -> std::vector<double> {
    std::vector<double> out(row.size());
    auto shift = 0.0;
    if (values_ == compared_values::logits) {
      auto const top = static_cast<double>(row[largest(row)]);
      auto sum = 0.0;
      for (auto const value : row) { sum += std::exp(static_cast<double>(value) - top); }
      shift = top + std::log(sum);
    }
    for (std::size_t i = 0; i < row.size(); ++i) {
      auto const value = static_cast<double>(row[i]);
      out[i] = values_ == compared_values::logits ? value - shift : std::log(value);
    }
    return out;
  }

  template <class Reference, class Candidate>
  void add(Reference reference, Candidate candidate) {
    QUIRE_EXPECTS(reference.size() == candidate.size());
    QUIRE_EXPECTS(!reference.empty());
    auto const p = log_probabilities(reference);
    auto const q = log_probabilities(candidate);
    auto kl = 0.0;
    for (std::size_t i = 0; i < reference.size(); ++i) {
      auto const a = static_cast<double>(reference[i]);
      auto const b = static_cast<double>(candidate[i]);
      auto const difference = distance(a, b);
      if (difference > report_.max_abs) {
        report_.max_abs = difference;
        report_.worst_row = report_.rows;
      }
      if (difference > 0.0) {
        auto const size = std::max(std::fabs(a), std::fabs(b));
        report_.max_rel = std::max(report_.max_rel, std::isfinite(size) ? difference / size : difference);
      }
      if (p[i] != -std::numeric_limits<double>::infinity()) { kl += std::exp(p[i]) * (p[i] - q[i]); }
    }
    report_.max_kl = std::isnan(kl) ? std::numeric_limits<double>::infinity() : std::max(report_.max_kl, kl);

    auto const best = largest(reference);
    auto const chosen = largest(candidate);
    if (best != chosen) {
      auto second = -std::numeric_limits<double>::infinity();
      for (std::size_t i = 0; i < reference.size(); ++i) {
        if (i != best) { second = std::max(second, static_cast<double>(reference[i])); }
      }
      report_.flips.push_back({.row = report_.rows,
                               .reference = best,
                               .candidate = chosen,
                               .margin = static_cast<double>(reference[best]) - second});
    }
    ++report_.rows;
  }

  compared_values values_;
  equivalence_report report_ = {};
};

} // namespace quire
