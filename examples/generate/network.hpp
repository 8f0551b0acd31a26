// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The forward pass of a Llama 2 network over the rows of a batch view.
///
///     tokens ─▶ embedding ─▶ N × [ norm ─▶ q k v ─▶ rotate ─▶ write ─▶ attend ─▶ wo ─▶ + ─▶ norm ─▶ SwiGLU ─▶ + ] ─▶
///     norm ─▶ classifier, for the positions whose logits are wanted
///
/// Rows of one step may belong to different requests and have different numbers of positions: nothing but the view and
/// the attention backend knows about it.

#include "generate/checkpoint.hpp"
#include "generate/dot.hpp"
#include "generate/network_shape.hpp"

#include <quire/attention/concepts.hpp>
#include <quire/attention/kv_rows.hpp>
#include <quire/attention/output_rows.hpp>
#include <quire/attention/query_rows.hpp>
#include <quire/attention/resolved_rope.hpp>
#include <quire/attention/rope_config.hpp>
#include <quire/attention/rope_layout.hpp>
#include <quire/core/errc.hpp>
#include <quire/core/expected.hpp>
#include <quire/core/types.hpp>
#include <quire/generate/concepts.hpp>
#include <quire/generate/forward_batch.hpp>
#include <quire/view/action.hpp>

#include <algorithm> // std::copy
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace llama2 {

/// The rotary rule of these checkpoints.
[[nodiscard]] inline auto rotation_of(network_shape const& shape) -> quire::resolved_rope {
  return quire::resolved_rope{{.width = shape.head_size(), .layout = quire::rope_layout::interleaved, .base = 10000.0},
                              quire::token_count{shape.positions}};
}

/// A network that runs. A model of `quire::language_model`.
template <quire::attention_backend Attention>
class network {
public:
  /// Runs \p weights through \p attention; both outlive it.
  network(checkpoint const& file, Attention& attention) : file_{&file}, attention_{&attention} {
    auto const& s = file.shape();
    auto const rotation = rotation_of(s);
    auto const angles = rotation.frequencies();
    for (std::uint32_t position = 0; position < s.positions; ++position) {
      for (auto const frequency : angles) { // in double: see resolved_rope.hpp
        auto const angle = static_cast<double>(position) * frequency;
        turns_.push_back({static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))});
      }
    }
  }

  /// V.
  [[nodiscard]] auto vocabulary() const noexcept -> std::size_t { return file_->shape().vocabulary; }
  /// [tokens] longest sequence.
  [[nodiscard]] auto max_positions() const noexcept -> quire::token_count {
    return quire::token_count{file_->shape().positions};
  }
  /// Performs the actions of a plan.
  [[nodiscard]] auto run(std::span<quire::action const> actions) -> quire::expected<void> {
    return attention_->run(actions);
  }

  /// Computes a step. \errors errc::out_of_range if a token or a position does not exist; what the attention refuses
  [[nodiscard]] auto forward(quire::forward_batch const& batch) -> quire::expected<void> {
    auto const& s = file_->shape();
    auto const& at = file_->layout();
    auto const n = batch.tokens.size();
    for (std::size_t i = 0; i < n; ++i) {
      if (batch.tokens[i] < 0 || static_cast<std::uint32_t>(batch.tokens[i]) >= s.vocabulary) {
        return quire::refuse(quire::errc::out_of_range);
      }
      if (static_cast<std::uint32_t>(batch.view.position[i]) >= s.positions) {
        return quire::refuse(quire::errc::out_of_range);
      }
    }
    x_.resize(n * s.dim);
    auto const embedding = file_->whole(at.embedding);
    for (std::size_t i = 0; i < n; ++i) {
      auto const row = embedding.subspan(static_cast<std::size_t>(batch.tokens[i]) * s.dim, s.dim);
      std::copy(row.begin(), row.end(), x_.begin() + static_cast<std::ptrdiff_t>(i * s.dim));
    }
    for (std::uint32_t layer = 0; layer < s.layers; ++layer) {
      if (auto const done = attention_part(layer, batch); !done) { return done; }
      feed_forward_part(layer, n);
    }
    auto const classifier = file_->whole(at.classifier);
    for (std::size_t w = 0; w < batch.wanted.size(); ++w) {
      normalise(std::span<float const>{x_}.subspan(batch.wanted[w] * std::size_t{s.dim}, s.dim),
                file_->whole(at.final_norm), one(s.dim));
      multiply(classifier, normed_, batch.logits_of(w), 1);
    }
    return {};
  }

private:
  struct turn {
    float cosine;
    float sine;
  };

  [[nodiscard]] auto attention_part(std::uint32_t layer, quire::forward_batch const& batch) -> quire::expected<void> {
    auto const& s = file_->shape();
    auto const& at = file_->layout();
    auto const n = batch.tokens.size();
    normalise_all(file_->of_layer(at.attention_norm, layer), n);
    q_.resize(n * s.dim);
    k_.resize(n * s.kv_dim());
    v_.resize(n * s.kv_dim());
    mixed_.resize(n * s.dim);
    multiply(file_->of_layer(at.wq, layer), normed_, q_, n);
    multiply(file_->of_layer(at.wk, layer), normed_, k_, n);
    multiply(file_->of_layer(at.wv, layer), normed_, v_, n);
    for (std::size_t i = 0; i < n; ++i) { // by logical position, never by slot (S14)
      auto const position = static_cast<std::size_t>(batch.view.position[i]);
      rotate(std::span{q_}.subspan(i * s.dim, s.dim), position);
      rotate(std::span{k_}.subspan(i * s.kv_dim(), s.kv_dim()), position);
    }
    auto const id = quire::layer_id{layer};
    auto const& view = batch.view_of(s.group(layer));
    if (auto const done = attention_->write(id, view, {.key = k_, .value = v_}); !done) { return done; }
    if (auto const done = attention_->attend(id, view, {.query = q_}, {.output = mixed_}); !done) { return done; }
    add_product(file_->of_layer(at.wo, layer), mixed_, n);
    return {};
  }
  auto feed_forward_part(std::uint32_t layer, std::size_t n) -> void {
    auto const& s = file_->shape();
    auto const& at = file_->layout();
    normalise_all(file_->of_layer(at.feed_norm, layer), n);
    gate_.resize(n * s.hidden);
    up_.resize(n * s.hidden);
    multiply(file_->of_layer(at.w1, layer), normed_, gate_, n);
    multiply(file_->of_layer(at.w3, layer), normed_, up_, n);
    for (std::size_t i = 0; i < gate_.size(); ++i) { gate_[i] = gate_[i] / (1.0F + std::exp(-gate_[i])) * up_[i]; }
    add_product(file_->of_layer(at.w2, layer), gate_, n);
  }

  /// out[r] = matrix · in[r] for \p rows rows.
  static auto multiply(weights matrix, std::span<float const> in, std::span<float> out, std::size_t rows) -> void {
    auto const width = in.size() / rows;
    auto const height = out.size() / rows;
    for (std::size_t o = 0; o < height; ++o) {
      for (std::size_t r = 0; r < rows; ++r) {
        out[r * height + o] = dot(matrix.data() + o * width, in.data() + r * width, width);
      }
    }
  }
  auto add_product(weights matrix, std::span<float const> in, std::size_t rows) -> void {
    product_.resize(x_.size());
    multiply(matrix, in, product_, rows);
    for (std::size_t i = 0; i < x_.size(); ++i) { x_[i] += product_[i]; }
  }
  auto normalise_all(weights gain, std::size_t rows) -> void {
    normed_.resize(x_.size());
    auto const width = gain.size();
    for (std::size_t r = 0; r < rows; ++r) {
      normalise(std::span<float const>{x_}.subspan(r * width, width), gain,
                std::span{normed_}.subspan(r * width, width));
    }
  }
  [[nodiscard]] auto one(std::size_t width) -> std::span<float> {
    normed_.resize(width);
    return normed_;
  }
  static auto normalise(std::span<float const> in, weights gain, std::span<float> out) -> void {
    auto const squares = dot(in.data(), in.data(), in.size());
    auto const factor = 1.0F / std::sqrt(squares / static_cast<float>(in.size()) + 1e-5F);
    for (std::size_t i = 0; i < in.size(); ++i) { out[i] = in[i] * factor * gain[i]; }
  }
  auto rotate(std::span<float> heads, std::size_t position) const -> void {
    auto const pairs = std::size_t{file_->shape().head_size()} / 2;
    for (std::size_t i = 0; i < heads.size() / 2; ++i) {
      auto const [cosine, sine] = turns_[position * pairs + i % pairs];
      auto const a = heads[2 * i];
      auto const b = heads[2 * i + 1];
      heads[2 * i] = a * cosine - b * sine;
      heads[2 * i + 1] = a * sine + b * cosine;
    }
  }

  checkpoint const* file_;
  Attention* attention_;
  std::vector<turn> turns_; // [position][pair]
  std::vector<float> x_, normed_, q_, k_, v_, mixed_, product_, gate_, up_;
};

} // namespace llama2
