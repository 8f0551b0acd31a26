// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The result of attention over a part of the keys, and the merge of two such results.
///
///     keys    [ 0 … 99 ]          [ 100 … 180 ]        any split, any order of merging
///     part    (o_a, lse_a)        (o_b, lse_b)
///     merge    w_a = e^{lse_a − lse}, w_b = e^{lse_b − lse}, lse = ln(e^{lse_a} + e^{lse_b})
///             (w_a o_a + w_b o_b, lse)
///
/// Merging is associative and commutative up to rounding; (0, −∞), the result of no key at all, is its identity. An
/// output of weight 0 is never read: kernels leave it unwritten, and 0 · NaN is NaN. A learned sink joins once, after
/// the last merge (`apply_sink`): inside the parts it would be counted once for each of them.

#include <quire/attention/merge_weights.hpp>
#include <quire/core/contract.hpp>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <limits>
#include <span>
#include <type_traits> // std::type_identity_t
#include <vector>

namespace quire {

/// One row and head of a partial result. \source S2; spec of the merge: reference/kernels 1.5
struct partial_attention {
  /// \shape [d_v] weighted mean of the values seen; zeros if none was.
  std::vector<double> output = {};
  /// Natural logarithm of the sum of e^score over the keys seen, without learned sinks; −∞ if there was none.
  double lse = -std::numeric_limits<double>::infinity();

  /// The result of no key, identity of `merge`. \param width [elements] d_v
  [[nodiscard]] static auto empty(std::size_t width) -> partial_attention {
    return {.output = std::vector<double>(width, 0.0)};
  }
  /// True if no key was seen.
  [[nodiscard]] auto saw_nothing() const noexcept -> bool { return lse == -std::numeric_limits<double>::infinity(); }
  /// Same output and log-sum-exp, bit for bit but for signs of zero.
  friend auto operator==(partial_attention const&, partial_attention const&) noexcept -> bool = default;
};

/// Merges a partial result into another in place, for backends. \tparam Float type of both
/// \param output \shape [d_v] of the first part, and of the result \param lse of the first part, and of the result
/// \param other \shape [d_v] of the second part; not read if \p other_lse is −∞ \param other_lse of the second part
/// \pre the widths agree and no log-sum-exp is +∞
/// \post (1) the result is that of attention over both parts' keys; (2) an output whose part saw no key was not read;
///   (3) if neither part saw a key the output is all zeros
/// \complexity O(d_v)
template <std::floating_point Float>
void merge_into(std::span<Float> output, Float& lse, std::type_identity_t<std::span<Float const>> other,
                std::type_identity_t<Float> other_lse) {
  QUIRE_EXPECTS(output.size() == other.size());
  auto const weights = merge_weights<Float>::of({.first = lse, .second = other_lse});
  lse = weights.lse;
  for (std::size_t d = 0; d < output.size(); ++d) {
    // not 0 · x: x may be garbage
    auto const kept = weights.first == Float{0} ? Float{0} : weights.first * output[d];
    auto const added = weights.second == Float{0} ? Float{0} : weights.second * other[d];
    output[d] = kept + added;
  }
}

/// Attention over the keys of both parts. \pre as `merge_into` \post as `merge_into`
[[nodiscard]] inline auto merge(partial_attention const& a, partial_attention const& b) -> partial_attention {
  auto out = a;
  merge_into(std::span{out.output}, out.lse, b.output, b.lse);
  return out;
}

/// Scales an output for a learned sink, a logit that joins the denominator and has no value: o · e^lse / (e^lse +
/// e^logit). The log-sum-exp stays without it, so apply it once, after the last merge. \tparam Float type of the output
/// \param output \shape [d_v] \param lse its log-sum-exp \param logit the sink's
/// \post an output whose part saw no key becomes zeros without being read
/// \source B8
template <std::floating_point Float>
void apply_sink(std::span<Float> output, std::type_identity_t<Float> lse, std::type_identity_t<Float> logit) {
  auto const factor =
      lse == -std::numeric_limits<Float>::infinity() ? Float{0} : Float{1} / (Float{1} + std::exp(logit - lse));
  for (auto& value : output) { value = factor == Float{0} ? Float{0} : value * factor; }
}

} // namespace quire
