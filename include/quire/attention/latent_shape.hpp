// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Heads and widths of low-rank attention.

#include <quire/attention/attention_params.hpp>
#include <quire/core/config_error.hpp>
#include <quire/model/attention_rule.hpp>

#include <cstdint>

namespace quire {

/// Sizes of a layer that caches one latent per token instead of keys and values per head.
///
///     cached per token       [ latent c, r_c | rotary key, d_R ]       one row for all heads
///     expanded, per head     key [ U_K c, d_C | rotary key, d_R ]      value [ U_V c, d_v ]
///     query, per head        [ content, d_C   | rotary, d_R ]
/// \source S12, S13; DeepSeek-V2, section 2.1
struct latent_shape {
  /// Query heads; each has its own U_K and U_V.
  std::uint32_t heads = 1;
  /// [elements] r_c.
  std::uint32_t rank = 1;
  /// [elements] d_C of a query and an expanded key.
  std::uint32_t content_width = 1;
  /// [elements] d_R of the decoupled rotary key, shared by all heads; 0 if there is none.
  std::uint32_t rotary_width = 0;
  /// [elements] d_v of an expanded value.
  std::uint32_t value_width = 1;
  /// Factor of the scores, the model's; often 1/√(d_C + d_R), never a function of r_c.
  double scale = 0.0;

  /// [elements] of a query and of an expanded key, d_C + d_R.
  [[nodiscard]] constexpr auto query_width() const noexcept -> std::uint32_t { return content_width + rotary_width; }
  /// [elements] of what is cached per token, and of an absorbed query, r_c + d_R.
  [[nodiscard]] constexpr auto cached_width() const noexcept -> std::uint32_t { return rank + rotary_width; }

  /// Parameters of attention over expanded keys and values: one KV head per query head.
  [[nodiscard]] auto expanded(attention_rule const& rule) const -> attention_params {
    return {.query_heads = heads,
            .kv_heads = heads,
            .key_width = query_width(),
            .value_width = value_width,
            .scale = scale,
            .rule = rule};
  }
  /// Parameters of attention over the latents themselves: one KV head for all, values are the first r_c elements of the
  /// keys. The scale is the same.
  [[nodiscard]] auto absorbed(attention_rule const& rule) const -> attention_params {
    return {.query_heads = heads,
            .kv_heads = 1,
            .key_width = cached_width(),
            .value_width = rank,
            .scale = scale,
            .rule = rule};
  }
  /// Checks the numbers. \throws config_error naming what was wrong and what would work
  void validate() const {
    if (heads == 0 || rank == 0 || content_width == 0 || value_width == 0) {
      throw config_error{"latent_shape: heads, rank, content_width and value_width must be at least 1"};
    }
    if (!(scale > 0.0)) {
      throw config_error{"latent_shape: the scale must be positive: use the model's, often 1/sqrt(content_width + "
                         "rotary_width), not the rank's"};
    }
  }

  /// Same sizes.
  friend auto operator==(latent_shape const&, latent_shape const&) noexcept -> bool = default;
};

} // namespace quire
