// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Sizes of a network.

#include <quire/cache/cache_group.hpp>
#include <quire/core/types.hpp>
#include <quire/model/attention_rule.hpp>
#include <quire/model/dtype.hpp>
#include <quire/model/element_format.hpp>
#include <quire/model/layer_spec.hpp>
#include <quire/model/model_spec.hpp>
#include <quire/model/retention.hpp>

#include <cstdint>
#include <string>
#include <utility> // std::move
#include <vector>

namespace llama2 {

/// Sizes of a network of the Llama 2 kind, in the order of a checkpoint's header.
struct network_shape {
  std::uint32_t dim = 0;                                       ///< Hidden size.
  std::uint32_t hidden = 0;                                    ///< Width of the feed-forward part.
  std::uint32_t layers = 0;                                    ///< N.
  std::uint32_t heads = 0;                                     ///< h_q.
  std::uint32_t kv_heads = 0;                                  ///< h_kv.
  std::uint32_t vocabulary = 0;                                ///< V.
  std::uint32_t positions = 0;                                 ///< [tokens] longest sequence.
  quire::attention_rule odd = quire::attention_rule::causal(); ///< What layers 1, 3, … see; the others see everything.

  /// True if the odd layers keep less than the others: two layer groups.
  [[nodiscard]] auto mixed() const -> bool { return !quire::retention::of(odd).keeps_all(); }
  /// What \p layer sees.
  [[nodiscard]] auto rule(std::uint32_t layer) const -> quire::attention_rule {
    return layer % 2 == 1 ? odd : quire::attention_rule::causal();
  }
  /// Layer group of \p layer.
  [[nodiscard]] auto group(std::uint32_t layer) const -> quire::group_id {
    return quire::group_id{mixed() && layer % 2 == 1 ? 1U : 0U};
  }
  /// The layer groups of a cache; none if there is one only.
  [[nodiscard]] auto groups() const -> std::vector<quire::cache_group> {
    if (!mixed()) { return {}; }
    return {{}, {.keeps = quire::retention::of(odd), .blocks = {}, .block_tokens = {}}};
  }

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
                            .value_format = format,
                            .rule = rule(i)});
    }
    return quire::model_spec{out};
  }
};

} // namespace llama2
