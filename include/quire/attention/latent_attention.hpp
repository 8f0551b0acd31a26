// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Low-rank attention in both forms, with the same result.
///
///     expanded   (q_i · U_{K,i} c_j)   Σ a_j U_{V,i} c_j         keys and values made for each context position
///     absorbed   (U_{K,i}^T q_i · c_j)   U_{V,i} Σ a_j c_j       two small products per query, attention on latents
///
/// The rotary key stands beside the latent and is added to both scores alike. A rotation *inside*, R_j U_K c_j, can only
/// be computed expanded: the keys are turned after they have been made.

#include <quire/attention/attention_extent.hpp>
#include <quire/attention/attention_output.hpp>
#include <quire/attention/latent_form.hpp>
#include <quire/attention/latent_weights.hpp>
#include <quire/attention/latent_work.hpp>
#include <quire/attention/oracle_attention.hpp>
#include <quire/attention/resolved_rope.hpp>
#include <quire/attention/strided_tensor.hpp>
#include <quire/core/config_error.hpp>
#include <quire/core/contract.hpp>
#include <quire/core/types.hpp>
#include <quire/model/attention_rule.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace quire {

/// Reference of low-rank and latent attention for one layer, with counters of its work per phase. \source S12, S13
class latent_attention {
public:
  /// How it computes.
  struct options {
    /// Expanded or absorbed.
    latent_form form = latent_form::expanded;
    /// Where the rotation stands.
    latent_rotation rotation = latent_rotation::none;
    /// The rotation of expanded keys, over d_C elements; only if it stands inside.
    resolved_rope inside = {};
    /// What a query may see.
    attention_rule rule = {};
  };

  /// Fixes weights and form.
  /// \throws config_error if the weights contradict their shape, the rotation contradicts d_R, the rule has per-head
  ///   weights, or the form would absorb through a rotation
  latent_attention(latent_weights weights, options how) : weights_{std::move(weights)}, how_{std::move(how)} {
    weights_.validate();
    require_absorbable(how_.form, how_.rotation);
    if ((how_.rotation == latent_rotation::decoupled) != (weights_.shape.rotary_width > 0)) {
      throw config_error{"latent attention: a decoupled rotation and a rotary_width go together: set both or neither"};
    }
    auto const turned = how_.inside.config().width;
    if ((how_.rotation == latent_rotation::inside) != (turned > 0) || turned > weights_.shape.content_width) {
      throw config_error{"latent attention: a rotation inside needs its rule, at most as wide as content_width"};
    }
    weights_.shape.expanded(how_.rule).validate();
  }

  /// The weights.
  [[nodiscard]] auto weights() const noexcept -> latent_weights const& { return weights_; }

  /// Attention of new queries over cached rows, both with their rotary parts turned already; a query of a rotation
  /// inside is turned, the latent never.
  /// \param extent positions; its keys start at the first row of \p cached
  /// \param queries \shape [q, heads, d_C + d_R] \param cached \shape [keys, r_c + d_R] \param phase where work is counted
  /// \returns \shape [q, heads, d_v] \pre the sizes agree
  [[nodiscard]] auto attend(attention_extent const& extent, std::span<double const> queries,
                            std::span<double const> cached, latent_phase phase) -> attention_output {
    auto mixed = mix(extent, queries, cached, phase);
    if (how_.form == latent_form::expanded) { return mixed; }
    auto const& shape = weights_.shape;
    auto out =
        attention_output::empty({.rows = extent.queries.value(), .heads = shape.heads, .width = shape.value_width});
    out.lse = mixed.lse;
    auto const row_width = std::size_t{shape.heads} * shape.rank;
    for (std::size_t row = 0; row < mixed.rows(); ++row) {
      auto const values = weights_.expand_output(std::span{mixed.output}.subspan(row * row_width, row_width));
      for (std::size_t k = 0; k < values.size(); ++k) { out.output[row * values.size() + k] = values[k]; }
    }
    return out;
  }
  /// As `attend`, before U_V: weighted sums of latents in the absorbed form, for a merged output projection; the same
  /// as `attend` in the expanded form. \returns \shape [q, heads, r_c] or [q, heads, d_v] \pre the sizes agree
  [[nodiscard]] auto mix(attention_extent const& extent, std::span<double const> queries,
                         std::span<double const> cached, latent_phase phase) -> attention_output {
    auto const& shape = weights_.shape;
    auto const keys = std::size_t{extent.keys.size().value()};
    QUIRE_EXPECTS(queries.size() == std::size_t{extent.queries.value()} * shape.heads * shape.query_width());
    QUIRE_EXPECTS(cached.size() == keys * shape.cached_width());
    count(extent, phase);
    return how_.form == latent_form::expanded ? expanded(extent, queries, cached) : absorbed(extent, queries, cached);
  }

  /// Multiplications so far in \p phase.
  [[nodiscard]] auto work(latent_phase phase) const noexcept -> latent_work const& {
    return phase == latent_phase::prefill ? prefill_ : decode_;
  }

private:
  [[nodiscard]] auto expanded(attention_extent const& extent, std::span<double const> queries,
                              std::span<double const> cached) const -> attention_output {
    auto const& shape = weights_.shape;
    std::vector<double> keys;
    std::vector<double> values;
    for (auto at = extent.keys.begin; at < extent.keys.end; at = at + token_count{1}) {
      auto const row =
          cached.subspan(std::size_t{(at - extent.keys.begin).value()} * shape.cached_width(), shape.cached_width());
      auto key = weights_.expand_key(row);
      if (how_.rotation == latent_rotation::inside) {
        for (std::uint32_t head = 0; head < shape.heads; ++head) {
          how_.inside.rotate(std::span{key}.subspan(std::size_t{head} * shape.query_width(), shape.content_width), at);
        }
      }
      auto const value = weights_.expand_value(row);
      keys.insert(keys.end(), key.begin(), key.end());
      values.insert(values.end(), value.begin(), value.end());
    }
    auto const first = extent.keys.begin;
    return oracle_attention(
        shape.expanded(how_.rule), extent,
        strided_tensor<double>::packed(queries, {.heads = shape.heads, .width = shape.query_width()}),
        strided_tensor<double>::packed(keys, {.heads = shape.heads, .width = shape.query_width()}, first),
        strided_tensor<double>::packed(values, {.heads = shape.heads, .width = shape.value_width}, first));
  }
  [[nodiscard]] auto absorbed(attention_extent const& extent, std::span<double const> queries,
                              std::span<double const> cached) const -> attention_output {
    auto const& shape = weights_.shape;
    std::vector<double> taken;
    auto const row_width = std::size_t{shape.heads} * shape.query_width();
    for (std::size_t row = 0; row < extent.queries.value(); ++row) {
      auto const query = weights_.absorb_query(queries.subspan(row * row_width, row_width));
      taken.insert(taken.end(), query.begin(), query.end());
    }
    auto const latents =
        strided_tensor<double>::packed(cached, {.heads = 1, .width = shape.cached_width()}, extent.keys.begin);
    return oracle_attention(
        shape.absorbed(how_.rule), extent,
        strided_tensor<double>::packed(taken, {.heads = shape.heads, .width = shape.cached_width()}), latents, latents);
  }
  void count(attention_extent const& extent, latent_phase phase) {
    auto size = latent_work::amounts{.queries = extent.queries.value(), .keys = extent.keys.size().value()};
    for (std::uint32_t row = 0; row < extent.queries.value(); ++row) {
      for (auto at = extent.keys.begin; at < extent.keys.end; at = at + token_count{1}) {
        size.pairs += how_.rule.visible(extent.query_position(token_count{row}), at) ? 1U : 0U;
      }
    }
    (phase == latent_phase::prefill ? prefill_ : decode_) += latent_work::of(weights_.shape, how_.form, size);
  }

  latent_weights weights_;
  options how_;
  latent_work prefill_ = {};
  latent_work decode_ = {};
};

} // namespace quire
