// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Sizes of a network.

#include <quire/core/types.hpp>
#include <quire/model/dtype.hpp>
#include <quire/model/element_format.hpp>
#include <quire/model/layer_spec.hpp>
#include <quire/model/model_description.hpp>
#include <quire/model/model_spec.hpp>

#include <cstdint>
#include <string>
#include <utility> // std::move

namespace llama2 {

/// Sizes of a network of the Llama 2 kind, in the order of a checkpoint's header.
struct network_shape {
  std::uint32_t dim = 0;        ///< Hidden size.
  std::uint32_t hidden = 0;     ///< Width of the feed-forward part.
  std::uint32_t layers = 0;     ///< N.
  std::uint32_t heads = 0;      ///< h_q.
  std::uint32_t kv_heads = 0;   ///< h_kv.
  std::uint32_t vocabulary = 0; ///< V.
  std::uint32_t positions = 0;  ///< [tokens] longest sequence.

  /// [elements] per head.
  [[nodiscard]] constexpr auto head_size() const noexcept -> std::uint32_t { return dim / heads; }
  /// [elements] of all keys of one position and layer.
  [[nodiscard]] constexpr auto kv_dim() const noexcept -> std::uint32_t { return head_size() * kv_heads; }
  /// What it caches, for quire.
  [[nodiscard]] auto spec(std::string name) const -> quire::model_spec {
    auto out = quire::model_description{.name = std::move(name), .max_positions = quire::token_count{positions}};
    auto const format = quire::element_format{quire::dtype::f32};
    for (std::uint32_t i = 0; i < layers; ++i) {
      out.layers.push_back({.query_heads = heads,
                            .kv_heads = kv_heads,
                            .key_width = head_size(),
                            .value_width = head_size(),
                            .key_format = format,
                            .value_format = format});
    }
    return quire::model_spec{out};
  }
};

} // namespace llama2
