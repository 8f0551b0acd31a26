// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Everything that one layer's attention is defined by, except the numbers it works on.

#include <quire/core/config_error.hpp>
#include <quire/core/contract.hpp>
#include <quire/model/attention_rule.hpp>
#include <quire/model/layer_spec.hpp>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace quire {

/// Heads, widths, scale, visibility and changes to scores of one layer. The order of computation is
/// dot → · scale → + ALiBi + bias → soft-cap → mask → softmax, the sink logit in its denominator.
/// \source S2, S10, B8
struct attention_params {
  /// h_q.
  std::uint32_t query_heads = 1;
  /// h_kv, a divisor of h_q.
  std::uint32_t kv_heads = 1;
  /// [elements] d_k.
  std::uint32_t key_width = 1;
  /// [elements] d_v.
  std::uint32_t value_width = 1;
  /// Factor of each dot product; the model's, often 1/√d_k. There is no default that fits all: 0 is refused.
  double scale = 0.0;
  /// What a query may see; soft-cap.
  attention_rule rule = {};
  /// \shape [h_q] slopes, or empty unless `rule.alibi`.
  std::vector<double> alibi_slopes = {};
  /// \shape [h_q] logits of the learned sinks, or empty unless `rule.learned_sink`.
  std::vector<double> sink_logits = {};

  /// The parameters of a layer, with the usual scale 1/√d_k. Latent layers get the absorbed form: one KV head of width
  /// r_c + d_R whose first r_c elements are the value, and the scale of the *expanded* width d_C + d_R. Slopes and sink
  /// logits are weights: add them. \throws config_error if the layer is invalid \source S10, S13
  [[nodiscard]] static auto of(layer_spec const& layer) -> attention_params {
    layer.validate("layer");
    auto const latent = layer.kind == layer_kind::latent;
    return {.query_heads = layer.query_heads,
            .kv_heads = latent ? 1 : layer.kv_heads,
            .key_width = latent ? layer.latent_rank + layer.rotary_width : layer.key_width,
            .value_width = latent ? layer.latent_rank : layer.value_width,
            .scale = usual_scale(layer.key_width),
            .rule = layer.rule};
  }
  /// 1/√width. \pre `width > 0`
  [[nodiscard]] static auto usual_scale(std::uint32_t width) -> double {
    QUIRE_EXPECTS(width > 0);
    return 1.0 / std::sqrt(static_cast<double>(width));
  }

  /// The KV head that query head \p query_head reads, g(i) = ⌊i · h_kv / h_q⌋. \pre `query_head < query_heads`
  [[nodiscard]] constexpr auto kv_head_of(std::uint32_t query_head) const -> std::uint32_t {
    QUIRE_EXPECTS(query_head < query_heads);
    return static_cast<std::uint32_t>(std::uint64_t{query_head} * kv_heads / query_heads);
  }

  /// Checks all of it. \throws config_error naming what was wrong and what would work
  void validate() const {
    if (query_heads == 0 || kv_heads == 0 || key_width == 0 || value_width == 0) {
      throw config_error{"attention_params: heads and widths must be at least 1"};
    }
    if (query_heads % kv_heads != 0) {
      throw config_error{"attention_params: " + std::to_string(query_heads) + " query heads cannot share " +
                         std::to_string(kv_heads) + " KV heads evenly: use a divisor"};
    }
    if (!(scale > 0.0) || !std::isfinite(scale)) {
      throw config_error{"attention_params: the scale must be positive: use the model's, or usual_scale(key_width)"};
    }
    rule.validate();
    require_per_head("ALiBi slopes", rule.alibi, alibi_slopes);
    require_per_head("sink logits", rule.learned_sink, sink_logits);
    if (rule.alibi && rule.pattern == attention_pattern::cross) {
      throw config_error{"attention_params: ALiBi measures distances within one sequence: use it without cross"};
    }
  }

  /// Same parameters.
  friend auto operator==(attention_params const&, attention_params const&) -> bool = default;

private:
  void require_per_head(char const* what, bool wanted, std::vector<double> const& given) const {
    if (given.size() != (wanted ? query_heads : 0)) {
      throw config_error{std::string{"attention_params: "} + std::to_string(given.size()) + " " + what + " for " +
                         std::to_string(query_heads) +
                         " query heads: give one per head if the rule has them, else none"};
    }
  }
};

} // namespace quire
