// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A small transformer, twice: recomputed in full over the oracle, and as an engine runs it, with paged keys and values,
/// a chosen arithmetic and storage type, and mistakes on request. The engine's attention is written here and shares no
/// code with the library's.

#include <quire/attention/accumulation_error.hpp>
#include <quire/attention/element_codec.hpp>
#include <quire/attention/oracle_attention.hpp>
#include <quire/attention/resolved_rope.hpp>
#include <quire/attention/strided_tensor.hpp>

#include "mathematics/numbers.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace quire_test {

/// Sizes and weights.
struct toy_weights {
  std::uint32_t layers = 3;
  std::uint32_t hidden = 16;
  std::uint32_t vocabulary = 11;
  quire::attention_params attention = {.query_heads = 4, .kv_heads = 2, .key_width = 4, .value_width = 4, .scale = 0.5};
  quire::resolved_rope rope = quire::resolved_rope{{.width = 4, .base = 100.0}, {}};
  std::vector<double> embedding = {};
  std::vector<std::vector<double>> query = {};
  std::vector<std::vector<double>> key = {};
  std::vector<std::vector<double>> value = {};
  std::vector<std::vector<double>> output = {};
  std::vector<std::vector<double>> up = {};
  std::vector<std::vector<double>> down = {};
  std::vector<double> head = {};

  explicit toy_weights(std::uint64_t seed, quire::attention_rule rule = {}, std::vector<double> slopes = {}) {
    attention.rule = rule;
    attention.alibi_slopes = std::move(slopes);
    auto draw = numbers{seed};
    auto const d = std::size_t{hidden};
    auto const q = std::size_t{attention.query_heads} * attention.key_width;
    auto const kv = std::size_t{attention.kv_heads} * attention.key_width;
    embedding = draw.many(vocabulary * d);
    for (std::uint32_t layer = 0; layer < layers; ++layer) {
      query.push_back(draw.many(q * d, 0.6));
      key.push_back(draw.many(kv * d, 0.6));
      value.push_back(draw.many(kv * d, 0.8));
      output.push_back(draw.many(d * q, 0.8));
      up.push_back(draw.many(2 * d * d, 0.4));
      down.push_back(draw.many(d * 2 * d, 0.4));
    }
    head = draw.many(vocabulary * d);
  }

  /// Size of the computation for a bound on rounding: the longest sum, the sums in a row, the largest logit's terms.
  [[nodiscard]] auto sums(quire::dtype arithmetic, std::uint64_t context) const -> quire::accumulation_error {
    auto magnitude = 0.0;
    for (std::uint32_t row = 0; row < vocabulary; ++row) {
      auto total = 0.0;
      for (std::uint32_t d = 0; d < hidden; ++d) { total += std::fabs(head[row * hidden + d]); }
      magnitude = std::max(magnitude, total);
    }
    return {.arithmetic = arithmetic,
            .terms = std::max<std::uint64_t>(2 * hidden, context),
            .stages = 6 * layers + 2,
            .magnitude = 2.0 * magnitude};
  }
};

/// matrix [rows, x.size()] · x; `reversed` adds the terms from the last to the first.
template <class Real>
[[nodiscard]] auto toy_product(std::vector<double> const& matrix, std::vector<Real> const& x, bool reversed = false)
    -> std::vector<Real> {
  std::vector<Real> out(matrix.size() / x.size());
  for (std::size_t row = 0; row < out.size(); ++row) {
    auto sum = Real{0};
    for (std::size_t i = 0; i < x.size(); ++i) {
      auto const d = reversed ? x.size() - 1 - i : i;
      sum += static_cast<Real>(matrix[row * x.size() + d]) * x[d];
    }
    out[row] = sum;
  }
  return out;
}
template <class Real>
[[nodiscard]] auto toy_norm(std::vector<Real> const& x) -> std::vector<Real> {
  auto sum = Real{0};
  for (auto const v : x) { sum += v * v; }
  auto const factor = Real{1} / std::sqrt(sum / static_cast<Real>(x.size()) + static_cast<Real>(1e-6));
  auto out = x;
  for (auto& v : out) { v *= factor; }
  return out;
}
template <class Real>
void toy_add(std::vector<Real>& x, std::vector<Real> const& y) {
  for (std::size_t i = 0; i < x.size(); ++i) { x[i] += y[i]; }
}
template <class Real>
[[nodiscard]] auto toy_feed_forward(toy_weights const& w, std::size_t layer, std::vector<Real> const& x,
                                    bool reversed = false) -> std::vector<Real> {
  auto middle = toy_product(w.up[layer], toy_norm(x), reversed);
  for (auto& v : middle) { v = std::tanh(v); }
  return toy_product(w.down[layer], middle, reversed);
}
template <class Real>
[[nodiscard]] auto toy_embedding(toy_weights const& w, std::uint32_t token) -> std::vector<Real> {
  auto const begin = w.embedding.begin() + static_cast<std::ptrdiff_t>(token * w.hidden);
  return {begin, begin + w.hidden};
}
template <class Real>
void toy_rotate(toy_weights const& w, std::vector<Real>& heads, std::uint32_t at) {
  for (std::size_t i = 0; i < heads.size(); i += w.attention.key_width) {
    w.rope.rotate(std::span{heads}.subspan(i, w.attention.key_width), quire::token_pos{at});
  }
}

/// A key that is lost, doubled or made weightless for all later queries of one layer.
struct toy_key {
  std::uint32_t layer = 0;
  std::uint32_t position = 0;
};

/// Logits of every position, recomputed in full, in double. \param storage what keys and values go through
/// \param dropped a key that later positions do not see
[[nodiscard]] inline auto toy_reference(toy_weights const& w, std::vector<std::uint32_t> const& tokens,
                                        quire::dtype storage = quire::dtype::f64, toy_key const* dropped = nullptr)
    -> std::vector<std::vector<double>> {
  auto const& p = w.attention;
  std::vector<std::vector<double>> x;
  for (auto const token : tokens) { x.push_back(toy_embedding<double>(w, token)); }
  for (std::uint32_t layer = 0; layer < w.layers; ++layer) {
    std::vector<double> q;
    std::vector<double> k;
    std::vector<double> v;
    for (std::uint32_t at = 0; at < tokens.size(); ++at) {
      auto const normed = toy_norm(x[at]);
      auto query = toy_product(w.query[layer], normed);
      auto key = toy_product(w.key[layer], normed);
      auto value = toy_product(w.value[layer], normed);
      toy_rotate(w, query, at);
      toy_rotate(w, key, at);
      for (auto& e : key) { e = quire::stored_value(storage, e); }
      for (auto& e : value) { e = quire::stored_value(storage, e); }
      q.insert(q.end(), query.begin(), query.end());
      k.insert(k.end(), key.begin(), key.end());
      v.insert(v.end(), value.begin(), value.end());
    }
    auto const mixed = quire::oracle_attention(
        p, quire::attention_extent::append({.appended = quire::token_count{static_cast<std::uint32_t>(tokens.size())}}),
        quire::strided_tensor<double>::packed(q, {.heads = p.query_heads, .width = p.key_width}),
        quire::strided_tensor<double>::packed(k, {.heads = p.kv_heads, .width = p.key_width}),
        quire::strided_tensor<double>::packed(v, {.heads = p.kv_heads, .width = p.value_width}),
        [&](quire::score_place const& at) {
          auto const lost =
              dropped != nullptr && dropped->layer == layer && at.key.value() == dropped->position && at.query > at.key;
          return lost ? -std::numeric_limits<double>::infinity() : 0.0;
        });
    auto const width = std::size_t{p.query_heads} * p.value_width;
    for (std::size_t at = 0; at < tokens.size(); ++at) {
      auto const begin = mixed.output.begin() + static_cast<std::ptrdiff_t>(at * width);
      toy_add(x[at],
              toy_product(w.output[layer], std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(width))));
      toy_add(x[at], toy_feed_forward(w, layer, x[at]));
    }
  }
  std::vector<std::vector<double>> logits;
  for (auto const& row : x) { logits.push_back(toy_product(w.head, toy_norm(row))); }
  return logits;
}

/// Mistakes of the engine.
enum class toy_fault : std::uint8_t {
  none,
  dropped_key,         ///< A key is skipped by all later queries.
  doubled_key,         ///< A key is counted twice.
  position_off_by_one, ///< Keys of later steps are rotated for the next position.
  wrong_head_map,      ///< Query head i reads KV head i mod h_kv.
  mask_hides_self,     ///< A query does not see its own position.
  mask_leaks,          ///< A query sees one position ahead inside its step.
  window_too_short,    ///< One position less than the window.
  stale_block,         ///< The table's first block is one with older contents.
  swapped_rows,        ///< The row reads another request's table.
  last_layer_only,     ///< Only the last layer's keys are kept between steps.
};

/// An engine with a paged cache. \tparam Real its arithmetic
template <class Real>
class toy_engine {
public:
  static constexpr std::uint32_t block_tokens = 4;

  toy_engine(toy_weights const& weights, quire::dtype storage, toy_fault fault = toy_fault::none, toy_key where = {},
             bool reversed = false)
      : w_{&weights}, storage_{storage}, fault_{fault}, where_{where}, reversed_{reversed}, keys_(weights.layers),
        values_(weights.layers) {}

  /// Feeds new tokens of a request. \returns logits of each new position
  auto feed(std::uint32_t request, std::vector<std::uint32_t> const& tokens) -> std::vector<std::vector<Real>> {
    auto const cached = lengths_[request];
    auto const length = cached + static_cast<std::uint32_t>(tokens.size());
    auto& table = tables_[request];
    while (table.size() * block_tokens < length) { table.push_back(next_block_++); }
    std::vector<std::vector<Real>> x;
    for (auto const token : tokens) { x.push_back(toy_embedding<Real>(*w_, token)); }
    auto read = table;
    if (cached > 0 && fault_ == toy_fault::swapped_rows) { read = tables_.begin()->second; }
    if (cached > 0 && fault_ == toy_fault::stale_block) { read[0] = 0; } // written by an earlier request
    for (std::uint32_t layer = 0; layer < w_->layers; ++layer) {
      std::vector<std::vector<Real>> queries;
      for (std::uint32_t i = 0; i < tokens.size(); ++i) {
        auto const at = cached + i;
        auto const normed = toy_norm(x[i]);
        auto query = toy_product(w_->query[layer], normed, reversed_);
        auto key = toy_product(w_->key[layer], normed, reversed_);
        auto value = toy_product(w_->value[layer], normed, reversed_);
        toy_rotate(*w_, query, at);
        toy_rotate(*w_, key, cached > 0 && fault_ == toy_fault::position_off_by_one ? at + 1 : at);
        queries.push_back(query);
        keys_[layer][{table[at / block_tokens], at % block_tokens}] = rounded(key);
        values_[layer][{table[at / block_tokens], at % block_tokens}] = rounded(value);
      }
      for (std::uint32_t i = 0; i < tokens.size(); ++i) {
        auto const mixed = attend(layer, queries[i], read, cached, cached + i, length);
        toy_add(x[i], toy_product(w_->output[layer], mixed, reversed_));
        toy_add(x[i], toy_feed_forward(*w_, layer, x[i], reversed_));
      }
    }
    lengths_[request] = length;
    std::vector<std::vector<Real>> logits;
    for (auto const& row : x) { logits.push_back(toy_product(w_->head, toy_norm(row), reversed_)); }
    return logits;
  }

private:
  [[nodiscard]] auto rounded(std::vector<Real> from) const -> std::vector<Real> {
    for (auto& e : from) { e = static_cast<Real>(quire::stored_value(storage_, static_cast<double>(e))); }
    return from;
  }
  [[nodiscard]] auto sees(std::uint32_t layer, std::uint32_t cached, std::uint32_t query, std::uint32_t key) const
      -> bool {
    auto const& rule = w_->attention.rule;
    auto const window = rule.extent.value() - (fault_ == toy_fault::window_too_short ? 1U : 0U);
    if (rule.extent.value() > 0 && key + window <= query) { return false; }
    if (fault_ == toy_fault::last_layer_only && layer + 1 < w_->layers && key < cached) { return false; }
    if (fault_ == toy_fault::mask_hides_self && key == query && query > 0) { return false; }
    if (fault_ == toy_fault::mask_leaks) { return key <= query + 1; }
    if (fault_ == toy_fault::dropped_key && is_target(layer, query, key)) { return false; }
    return key <= query;
  }
  [[nodiscard]] auto is_target(std::uint32_t layer, std::uint32_t query, std::uint32_t key) const -> bool {
    return layer == where_.layer && key == where_.position && query > key;
  }
  [[nodiscard]] auto attend(std::uint32_t layer, std::vector<Real> const& query,
                            std::vector<std::uint32_t> const& table, std::uint32_t cached, std::uint32_t at,
                            std::uint32_t length) -> std::vector<Real> {
    auto const& p = w_->attention;
    std::vector<Real> out(std::size_t{p.query_heads} * p.value_width, Real{0});
    for (std::uint32_t head = 0; head < p.query_heads; ++head) {
      auto const g = fault_ == toy_fault::wrong_head_map ? head % p.kv_heads : head / (p.query_heads / p.kv_heads);
      auto denominator = Real{0};
      for (std::uint32_t n = 0; n < length; ++n) {
        auto const j = reversed_ ? length - 1 - n : n;
        if (!sees(layer, cached, at, j)) { continue; }
        auto const place = std::pair{table[j / block_tokens], j % block_tokens};
        auto const& k = keys_[layer][place];
        auto const& v = values_[layer][place];
        auto score = Real{0};
        for (std::uint32_t d = 0; d < p.key_width; ++d) {
          score += query[head * p.key_width + d] * k.at(g * p.key_width + d);
        }
        score *= static_cast<Real>(p.scale);
        if (p.rule.alibi) { score -= static_cast<Real>(p.alibi_slopes[head]) * static_cast<Real>(at - j); }
        auto weight = std::exp(score);
        if (fault_ == toy_fault::doubled_key && is_target(layer, at, j)) { weight *= Real{2}; }
        denominator += weight;
        for (std::uint32_t d = 0; d < p.value_width; ++d) {
          out[head * p.value_width + d] += weight * v.at(g * p.value_width + d);
        }
      }
      for (std::uint32_t d = 0; d < p.value_width; ++d) { out[head * p.value_width + d] /= denominator; }
    }
    return out;
  }

  toy_weights const* w_;
  quire::dtype storage_;
  toy_fault fault_;
  toy_key where_;
  bool reversed_;
  std::vector<std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Real>>> keys_;
  std::vector<std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Real>>> values_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> tables_ = {};
  std::map<std::uint32_t, std::uint32_t> lengths_ = {};
  std::uint32_t next_block_ = 0;
};

} // namespace quire_test
