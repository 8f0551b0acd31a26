// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The definition of attention, once, in double precision. Everything else is measured against it.
///
///     score   s = (q · k_g) · scale  (+ slope · (key − query))  (+ bias)
///             s = cap · tanh(s / cap)                     if there is a soft-cap
///     mask    keys that the rule hides take no part: they are not read at all
///     softmax lse = ln Σ e^s     o = Σ e^(s − lse) v_g     an empty row gives (0, −∞)
///     sink    o = o · e^lse / (e^lse + e^logit)           lse stays without it
///
/// Written for clarity, two passes over the scores of a row, nothing blocked, nothing skipped that is visible. A key of
/// weight 0 (score −∞) is not multiplied with its value.

#include <quire/attention/attention_extent.hpp>
#include <quire/attention/attention_output.hpp>
#include <quire/attention/attention_params.hpp>
#include <quire/attention/concepts.hpp>
#include <quire/attention/no_bias.hpp>
#include <quire/attention/partial_attention.hpp>
#include <quire/attention/tensor_place.hpp>
#include <quire/core/types.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace quire {

/// \cond INTERNAL
namespace detail {

/// Scores of one row and head over the keys of \p extent; −∞ where a key is hidden.
template <attention_accessor Query, attention_accessor Key, attention_bias Bias>
[[nodiscard]] auto oracle_scores(attention_params const& params, attention_extent const& extent,
                                 tensor_place const& row, Query const& query, Key const& key, Bias const& bias)
    -> std::vector<double> {
  auto const kv_head = params.kv_head_of(row.head);
  auto const asking = extent.query_position(token_count{row.token});
  auto const cap = static_cast<double>(params.rule.soft_cap);
  auto scores = std::vector<double>(extent.keys.size().value(), -std::numeric_limits<double>::infinity());
  for (auto at = extent.keys.begin; at < extent.keys.end; at = at + token_count{1}) {
    if (!params.rule.visible(asking, at)) { continue; }
    auto dot = 0.0;
    for (std::uint32_t d = 0; d < params.key_width; ++d) {
      dot += static_cast<double>(query({.token = row.token, .head = row.head, .dim = d})) *
             static_cast<double>(key({.token = at.value(), .head = kv_head, .dim = d}));
    }
    auto score = dot * params.scale;
    if (params.rule.alibi) {
      score += params.alibi_slopes[row.head] * (static_cast<double>(at.value()) - static_cast<double>(asking.value()));
    }
    score += bias({.query = asking, .key = at, .head = row.head});
    if (cap > 0.0) { score = cap * std::tanh(score / cap); }
    scores[(at - extent.keys.begin).value()] = score;
  }
  return scores;
}

/// ln Σ e^s; −∞ if nothing is visible, NaN if a score is.
[[nodiscard]] inline auto log_sum_exp(std::span<double const> scores) -> double {
  auto top = -std::numeric_limits<double>::infinity();
  for (auto const score : scores) {
    if (std::isnan(score)) { return score; }
    top = score > top ? score : top;
  }
  if (std::isinf(top)) { return top > 0.0 ? std::numeric_limits<double>::quiet_NaN() : top; }
  auto sum = 0.0;
  for (auto const score : scores) { sum += std::exp(score - top); }
  return top + std::log(sum);
}

} // namespace detail
/// \endcond

/// Attention over the keys of \p extent, without learned sinks: a part that may be merged with others.
/// \param params one layer \param extent positions \param query \shape [q, h_q, d_k], `token` is the row
/// \param key \shape [positions, h_kv, d_k], `token` is the logical position; asked for visible positions only
/// \param value \shape [positions, h_kv, d_v], as `key`
/// \param bias added to each scaled score
/// \returns outputs and log-sum-exps; (0, −∞) for a row that sees no key of \p extent
/// \throws config_error if \p params contradict themselves
/// \complexity O(q · h_q · keys · (d_k + d_v)) \source S2
template <attention_accessor Query, attention_accessor Key, attention_accessor Value, attention_bias Bias = no_bias>
[[nodiscard]] auto oracle_partial(attention_params const& params, attention_extent const& extent, Query const& query,
                                  Key const& key, Value const& value, Bias const& bias = {}) -> attention_output {
  params.validate();
  auto out = attention_output::empty(
      {.rows = extent.queries.value(), .heads = params.query_heads, .width = params.value_width});
  for (std::uint32_t row = 0; row < extent.queries.value(); ++row) {
    for (std::uint32_t head = 0; head < params.query_heads; ++head) {
      auto const place = tensor_place{.token = row, .head = head};
      auto const scores = detail::oracle_scores(params, extent, place, query, key, bias);
      auto const lse = detail::log_sum_exp(scores);
      out.lse_at(place) = lse;
      auto const target = out.at(place);
      for (std::size_t j = 0; j < scores.size(); ++j) {
        if (scores[j] == -std::numeric_limits<double>::infinity()) { continue; } // hidden, or weight 0: not read
        auto const weight = std::exp(scores[j] - lse);
        auto const at = extent.keys.begin + token_count{static_cast<std::uint32_t>(j)};
        for (std::uint32_t d = 0; d < params.value_width; ++d) {
          target[d] +=
              weight * static_cast<double>(value({.token = at.value(), .head = params.kv_head_of(head), .dim = d}));
        }
      }
    }
  }
  return out;
}

/// Scales every row for the learned sinks of \p params, if it has any: once, after the last merge.
inline void apply_sinks(attention_output& out, attention_params const& params) {
  if (!params.rule.learned_sink) { return; }
  for (std::uint32_t row = 0; row < out.rows(); ++row) {
    for (std::uint32_t head = 0; head < out.heads; ++head) {
      auto const place = tensor_place{.token = row, .head = head};
      apply_sink(out.at(place), out.lse_at(place), params.sink_logits[head]);
    }
  }
}

/// Attention, complete: `oracle_partial`, then the learned sinks. Parameters as `oracle_partial`.
/// \returns outputs; log-sum-exps without the sinks \throws config_error if \p params contradict themselves
/// \source S2, S43, B8
template <attention_accessor Query, attention_accessor Key, attention_accessor Value, attention_bias Bias = no_bias>
[[nodiscard]] auto oracle_attention(attention_params const& params, attention_extent const& extent, Query const& query,
                                    Key const& key, Value const& value, Bias const& bias = {}) -> attention_output {
  auto out = oracle_partial(params, extent, query, key, value, bias);
  apply_sinks(out, params);
  return out;
}

/// The weights of one row and head, sinks in the denominator: for diagnosis. Parameters as `oracle_partial`.
/// \param row query row and head \returns \shape [keys of extent]; 0 for a hidden key; all 0 for an empty row
/// \throws config_error if \p params contradict themselves
template <attention_accessor Query, attention_accessor Key, attention_bias Bias = no_bias>
[[nodiscard]] auto oracle_weights(attention_params const& params, attention_extent const& extent,
                                  tensor_place const& row, Query const& query, Key const& key, Bias const& bias = {})
    -> std::vector<double> {
  params.validate();
  auto weights = detail::oracle_scores(params, extent, row, query, key, bias);
  auto const lse = detail::log_sum_exp(weights);
  for (auto& weight : weights) {
    weight = weight == -std::numeric_limits<double>::infinity() ? 0.0 : std::exp(weight - lse);
  }
  if (params.rule.learned_sink) { apply_sink(std::span{weights}, lse, params.sink_logits[row.head]); }
  return weights;
}

} // namespace quire
