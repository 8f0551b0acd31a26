// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A small network of any kind, twice: recomputed in full by the oracle, in double and without any cache, and as a
/// `language_model` over paged memory and an attention backend.
///
///     per head   q, k, v of each position, rotated or with ALiBi slopes       cached as they are
///     latent     c = W_C h and a rotary key; k = [U_K c, rotary], v = U_V c   expanded without a cache, absorbed with one

#include <quire/attention/accumulation_error.hpp>
#include <quire/attention/alibi_slopes.hpp>
#include <quire/attention/attention_extent.hpp>
#include <quire/attention/attention_params.hpp>
#include <quire/attention/concepts.hpp>
#include <quire/attention/cpu_backend.hpp>
#include <quire/attention/element_codec.hpp>
#include <quire/attention/latent_attention.hpp>
#include <quire/attention/latent_weights.hpp>
#include <quire/attention/oracle_attention.hpp>
#include <quire/attention/oracle_backend.hpp>
#include <quire/attention/resolved_rope.hpp>
#include <quire/attention/strided_tensor.hpp>
#include <quire/cache/cache_group.hpp>
#include <quire/core/types.hpp>
#include <quire/generate/concepts.hpp>
#include <quire/generate/forward_batch.hpp>
#include <quire/model/retention.hpp>
#include <quire/view/host_executor.hpp>

#include "mathematics/numbers.hpp"
#include "mathematics/toy_network.hpp"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace quire_test {

/// Sizes and rules.
struct network_sizes {
  std::uint32_t layers = 1;
  std::uint32_t hidden = 8;
  std::uint32_t vocabulary = 4;
  std::uint32_t query_heads = 2;
  std::uint32_t kv_heads = 1;    ///< Of a latent network: ignored.
  std::uint32_t key_width = 4;   ///< d_k; of a latent network d_C.
  std::uint32_t value_width = 4; ///< d_v.
  std::uint32_t rank = 0;        ///< r_c; 0 = keys and values per head.
  quire::rope_config rope = {};  ///< Width 0 = none; of a latent network its width is d_R.
  std::vector<quire::attention_rule> rules = {quire::attention_rule::causal()}; ///< Of the layers, in turn.
  bool mixed = false; ///< Layers keep what their rule sees, in a group for each rule; else everything.
  std::uint64_t seed = 1;

  [[nodiscard]] auto latent() const -> bool { return rank > 0; }
  [[nodiscard]] auto rule(std::size_t layer) const -> quire::attention_rule const& {
    return rules[layer % rules.size()];
  }
  /// Layer groups: one for all layers, or one for each of `rules`.
  [[nodiscard]] auto group(std::size_t layer) const -> quire::group_id {
    return quire::group_id{mixed ? static_cast<std::uint32_t>(layer % rules.size()) : 0U};
  }
  [[nodiscard]] auto groups() const -> std::vector<quire::cache_group> {
    std::vector<quire::cache_group> out;
    for (std::size_t g = 0; mixed && g < std::min<std::size_t>(rules.size(), layers); ++g) {
      out.push_back({.keeps = quire::retention::of(rules[g]), .blocks = {}, .block_tokens = {}});
    }
    return out;
  }
  /// [tokens] that rebuild lost windows exactly: each layer reaches back from where the one above it begins. \source S28
  [[nodiscard]] auto rebuild() const -> quire::token_count {
    auto out = quire::token_count{};
    for (std::size_t layer = 0; layer < layers; ++layer) {
      auto const keeps = quire::retention::of(rule(layer));
      if (!keeps.keeps_all()) { out += keeps.extent - quire::token_count{1}; }
    }
    return out;
  }
  [[nodiscard]] auto query_width() const -> std::uint32_t { return key_width + (latent() ? rope.width : 0U); }
};

/// Weights; every number fits a float, so that both precisions have the same ones.
class any_network {
public:
  explicit any_network(network_sizes sizes) : sizes_{std::move(sizes)}, rope_{sizes_.rope, {}} {
    auto draw = numbers{sizes_.seed};
    auto const many = [&draw](std::size_t rows, std::size_t columns) { // rows of length about 1 whatever their width
      auto out = draw.many(rows * columns, 1.7 / std::sqrt(static_cast<double>(columns)));
      for (auto& x : out) { x = static_cast<float>(x); }
      return out;
    };
    auto const& s = sizes_;
    auto const d = s.hidden;
    embedding = many(s.vocabulary, d);
    for (std::uint32_t layer = 0; layer < s.layers; ++layer) {
      query.push_back(many(std::size_t{s.query_heads} * s.query_width(), d));
      for (auto& x : query.back()) { x *= 2.0; } // sharp enough that it matters which keys are seen
      key.push_back(many(s.latent() ? s.rank + s.rope.width : s.kv_heads * s.key_width, d));
      value.push_back(s.latent() ? std::vector<double>{} : many(std::size_t{s.kv_heads} * s.value_width, d));
      output.push_back(many(d, std::size_t{s.query_heads} * s.value_width));
      up.push_back(many(2 * d, d));
      down.push_back(many(d, 2 * d));
      if (s.latent()) {
        up_key.push_back(many(std::size_t{s.query_heads} * s.key_width, s.rank));
        up_value.push_back(many(std::size_t{s.query_heads} * s.value_width, s.rank));
      }
    }
    head = many(s.vocabulary, d);
    for (auto& x : head) { x *= 4.0; }
  }

  [[nodiscard]] auto sizes() const -> network_sizes const& { return sizes_; }
  /// U_K and U_V of a latent layer.
  [[nodiscard]] auto latent_of(std::size_t layer) const -> quire::latent_weights {
    auto const& s = sizes_;
    return {.shape = {.heads = s.query_heads,
                      .rank = s.rank,
                      .content_width = s.key_width,
                      .rotary_width = s.rope.width,
                      .value_width = s.value_width,
                      .scale = quire::attention_params::usual_scale(s.query_width())},
            .up_key = up_key[layer],
            .up_value = up_value[layer]};
  }
  /// What a backend computes for a layer.
  [[nodiscard]] auto params(std::size_t layer) const -> quire::attention_params {
    auto const& s = sizes_;
    if (s.latent()) { return latent_of(layer).shape.absorbed(s.rule(layer)); }
    auto out = quire::attention_params{.query_heads = s.query_heads,
                                       .kv_heads = s.kv_heads,
                                       .key_width = s.key_width,
                                       .value_width = s.value_width,
                                       .scale = quire::attention_params::usual_scale(s.key_width),
                                       .rule = s.rule(layer)};
    if (out.rule.alibi) { out.alibi_slopes = quire::alibi_slopes(s.query_heads); }
    return out;
  }
  /// Turns the rotary part of each query head, or of each key, which lies behind the content in a latent network.
  template <class Real>
  void rotate(std::vector<Real>& heads, std::uint32_t width, std::uint32_t position) const {
    auto const behind = sizes_.latent() ? width - sizes_.rope.width : 0U;
    for (std::size_t i = 0; i < heads.size(); i += width) {
      rope_.rotate(std::span{heads}.subspan(i + behind, width - behind), quire::token_pos{position});
    }
  }
  template <class Real>
  [[nodiscard]] auto embed(quire::token_id token) const -> std::vector<Real> {
    auto const begin =
        embedding.begin() + static_cast<std::ptrdiff_t>(token) * static_cast<std::ptrdiff_t>(sizes_.hidden);
    return {begin, begin + static_cast<std::ptrdiff_t>(sizes_.hidden)};
  }
  template <class Real>
  [[nodiscard]] auto feed_forward(std::size_t layer, std::vector<Real> const& x) const -> std::vector<Real> {
    auto middle = toy_product(up[layer], toy_norm(x));
    for (auto& v : middle) { v = std::tanh(v); }
    return toy_product(down[layer], middle);
  }

  /// Logits behind every position, without a cache. \param stored what keys, values and latents are rounded to
  [[nodiscard]] auto recompute(std::vector<quire::token_id> const& tokens,
                               quire::dtype stored = quire::dtype::f64) const -> std::vector<std::vector<double>> {
    auto const& s = sizes_;
    auto const n = static_cast<std::uint32_t>(tokens.size());
    auto const extent = quire::attention_extent::append({.appended = quire::token_count{n}});
    auto const append = [](std::vector<double>& to, std::vector<double> const& row) {
      to.insert(to.end(), row.begin(), row.end());
    };
    auto const rounded = [stored](std::vector<double> row) {
      for (auto& x : row) { x = quire::stored_value(stored, x); }
      return row;
    };
    std::vector<std::vector<double>> x;
    for (auto const token : tokens) { x.push_back(embed<double>(token)); }
    for (std::uint32_t layer = 0; layer < s.layers; ++layer) {
      std::vector<double> q;
      std::vector<double> k;
      std::vector<double> v;
      for (std::uint32_t at = 0; at < n; ++at) {
        auto const normed = toy_norm(x[at]);
        auto one_q = toy_product(query[layer], normed);
        auto one_k = toy_product(key[layer], normed);
        rotate(one_q, s.query_width(), at);
        rotate(one_k, s.latent() ? s.rank + s.rope.width : s.key_width, at);
        one_k = rounded(one_k);
        append(q, one_q);
        if (s.latent()) {
          append(k, latent_of(layer).expand_key(one_k));
          append(v, latent_of(layer).expand_value(one_k));
        } else {
          append(k, one_k);
          append(v, rounded(toy_product(value[layer], normed)));
        }
      }
      auto const p = s.latent() ? latent_of(layer).shape.expanded(s.rule(layer)) : params(layer);
      auto const mixed = quire::oracle_attention(
          p, extent, quire::strided_tensor<double>::packed(q, {.heads = p.query_heads, .width = p.key_width}),
          quire::strided_tensor<double>::packed(k, {.heads = p.kv_heads, .width = p.key_width}),
          quire::strided_tensor<double>::packed(v, {.heads = p.kv_heads, .width = p.value_width}));
      auto const width = static_cast<std::ptrdiff_t>(p.query_heads * p.value_width);
      for (std::uint32_t at = 0; at < n; ++at) {
        auto const begin = mixed.output.begin() + at * width;
        toy_add(x[at], toy_product(output[layer], std::vector<double>(begin, begin + width)));
        toy_add(x[at], feed_forward(layer, x[at]));
      }
    }
    std::vector<std::vector<double>> logits;
    for (auto const& row : x) { logits.push_back(toy_product(head, toy_norm(row))); }
    return logits;
  }
  /// Size of the computation, for a bound on its rounding.
  [[nodiscard]] auto sums(quire::dtype arithmetic, std::uint64_t context) const -> quire::accumulation_error {
    auto largest = 0.0;
    for (std::size_t row = 0; row < sizes_.vocabulary; ++row) {
      auto total = 0.0;
      for (std::size_t d = 0; d < sizes_.hidden; ++d) { total += std::fabs(head[row * sizes_.hidden + d]); }
      largest = std::max(largest, total);
    }
    return {.arithmetic = arithmetic,
            .terms = std::max<std::uint64_t>(2 * sizes_.hidden, context),
            .stages = 6 * sizes_.layers + 2,
            .magnitude = 2.0 * largest};
  }

  std::vector<double> embedding;
  std::vector<std::vector<double>> query, key, value, output, up, down, up_key, up_value;
  std::vector<double> head;

private:
  network_sizes sizes_;
  quire::resolved_rope rope_;
};

/// The network over paged memory. \tparam Backend `oracle_backend` (in double) or `cpu_backend` (in float)
template <class Backend>
class paged_network {
public:
  using real = std::conditional_t<std::same_as<Backend, quire::oracle_backend>, double, float>;

  /// Keys and values are stored as \p stored. Memory is NaN until it is written.
  paged_network(any_network const& network, quire::block_count blocks, quire::token_count unit, quire::dtype stored)
      : network_{&network}, planes_(2 * std::size_t{network.sizes().layers}),
        backend_{layers_of(network, planes_, blocks, unit, stored), quire::nan_poison} {
    for (std::size_t layer = 0; network.sizes().latent() && layer < network.sizes().layers; ++layer) {
      latent_.push_back(network.latent_of(layer));
      merged_.push_back(latent_.back().merge_output(network.output[layer], network.sizes().hidden));
    }
  }
  paged_network(paged_network const&) = delete;

  [[nodiscard]] auto vocabulary() const noexcept -> std::size_t { return network_->sizes().vocabulary; }
  [[nodiscard]] auto max_positions() const noexcept -> quire::token_count { return quire::token_count{64}; }
  [[nodiscard]] auto run(std::span<quire::action const> actions) -> quire::expected<void> {
    return backend_.run(actions);
  }
  [[nodiscard]] auto forward(quire::forward_batch const& batch) -> quire::expected<void> {
    auto const& s = network_->sizes();
    auto const n = batch.tokens.size();
    std::vector<std::vector<real>> x;
    for (auto const token : batch.tokens) { x.push_back(network_->template embed<real>(token)); }
    for (std::uint32_t layer = 0; layer < s.layers; ++layer) {
      std::vector<real> q;
      std::vector<real> k;
      std::vector<real> v;
      auto const append = [](std::vector<real>& to, auto const& row) { to.insert(to.end(), row.begin(), row.end()); };
      for (std::size_t i = 0; i < n; ++i) {
        auto const at = static_cast<std::uint32_t>(batch.view.position[i]);
        auto const normed = toy_norm(x[i]);
        auto one_q = toy_product(network_->query[layer], normed);
        auto one_k = toy_product(network_->key[layer], normed);
        network_->rotate(one_q, s.query_width(), at);
        network_->rotate(one_k, s.latent() ? s.rank + s.rope.width : s.key_width, at);
        append(k, one_k);
        if (s.latent()) {
          append(q, latent_[layer].absorb_query(std::vector<double>(one_q.begin(), one_q.end())));
        } else {
          append(q, one_q);
          append(v, toy_product(network_->value[layer], normed));
        }
      }
      auto const p = network_->params(layer);
      auto const width = std::size_t{p.query_heads} * p.value_width;
      std::vector<real> mixed(n * width);
      auto const id = quire::layer_id{layer};
      auto const& view = batch.view_of(s.group(layer));
      if (auto const done = backend_.write(id, view, {.key = k, .value = v}); !done) { return done; }
      if (auto const done = backend_.attend(id, view, {.query = q}, {.output = mixed}); !done) { return done; }
      for (std::size_t i = 0; i < n; ++i) {
        auto const begin = mixed.begin() + static_cast<std::ptrdiff_t>(i * width);
        auto const row = std::vector<real>(begin, begin + static_cast<std::ptrdiff_t>(width));
        toy_add(x[i], toy_product(s.latent() ? merged_[layer] : network_->output[layer], row));
        toy_add(x[i], network_->feed_forward(layer, x[i]));
      }
    }
    for (std::size_t w = 0; w < batch.wanted.size(); ++w) {
      auto const logits = toy_product(network_->head, toy_norm(x[batch.wanted[w]]));
      std::copy(logits.begin(), logits.end(), batch.logits_of(w).begin());
    }
    return {};
  }

private:
  using layer_type =
      std::conditional_t<std::same_as<Backend, quire::oracle_backend>, quire::oracle_layer, quire::cpu_layer>;

  static auto layers_of(any_network const& network, std::vector<std::vector<std::byte>>& planes,
                        quire::block_count blocks, quire::token_count unit, quire::dtype stored)
      -> std::vector<layer_type> {
    auto out = std::vector<layer_type>{};
    for (std::size_t layer = 0; layer < network.sizes().layers; ++layer) {
      auto const p = network.params(layer);
      auto const plane = [&](std::size_t number, std::uint32_t width) {
        auto const layout = quire::plane_layout::nhd({.blocks = blocks,
                                                      .block_tokens = unit,
                                                      .heads = p.kv_heads,
                                                      .dim = width,
                                                      .element_bits = quire::bits_of(stored)});
        planes[number].assign((layout.last_offset() + 1) * quire::bits_of(stored) / 8, quire::nan_poison);
        if constexpr (std::same_as<Backend, quire::oracle_backend>) {
          return quire::oracle_plane{.layout = layout, .type = stored, .tensor = planes[number]};
        } else {
          return quire::cpu_plane{.layout = layout, .format = {.type = stored}, .tensor = planes[number]};
        }
      };
      out.push_back({.params = p, .key = plane(2 * layer, p.key_width)});
      out.back().group = network.sizes().group(layer);
      if (!network.sizes().latent()) { out.back().value = plane(2 * layer + 1, p.value_width); }
    }
    return out;
  }

  any_network const* network_;
  std::vector<std::vector<std::byte>> planes_;
  Backend backend_;
  std::vector<quire::latent_weights> latent_;
  std::vector<std::vector<double>> merged_;
};

} // namespace quire_test
