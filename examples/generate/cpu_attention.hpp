// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The library's CPU backend over the paged memory of this example.

#include "generate/network_shape.hpp"
#include "generate/paged_memory.hpp"

#include <quire/attention/attention_params.hpp>
#include <quire/attention/cpu_backend.hpp>
#include <quire/attention/cpu_layer.hpp>
#include <quire/core/types.hpp>
#include <quire/model/dtype.hpp>
#include <quire/model/element_format.hpp>
#include <quire/view/host_executor.hpp>
#include <quire/view/plane_layout.hpp>

#include <cstdint>
#include <span>
#include <utility> // std::move
#include <vector>

namespace llama2 {

/// A backend for a network of \p shape whose keys and values lie in \p memory, which outlives it.
[[nodiscard]] inline auto cpu_attention(network_shape const& shape, paged_memory& memory, quire::block_count blocks)
    -> quire::cpu_backend {
  auto params = quire::attention_params{.query_heads = shape.heads,
                                        .kv_heads = shape.kv_heads,
                                        .key_width = shape.head_size(),
                                        .value_width = shape.head_size(),
                                        .scale = quire::attention_params::usual_scale(shape.head_size())};
  auto const plane = [&](quire::layout_role role, std::span<float> elements) {
    return quire::cpu_plane{.layout =
                                quire::plane_layout::nhd({.role = role,
                                                          .blocks = blocks,
                                                          .block_tokens = quire::token_count{memory.block_tokens()},
                                                          .heads = shape.kv_heads,
                                                          .dim = shape.head_size(),
                                                          .element_bits = 32}),
                            .format = quire::element_format{quire::dtype::f32},
                            .tensor = std::as_writable_bytes(elements)};
  };
  auto layers = std::vector<quire::cpu_layer>{};
  for (std::uint32_t i = 0; i < shape.layers; ++i) {
    params.rule = shape.rule(i);
    layers.push_back({.params = params,
                      .group = shape.group(i),
                      .key = plane(quire::layout_role::key, memory.keys(i)),
                      .value = plane(quire::layout_role::value, memory.values(i))});
  }
  return quire::cpu_backend{std::move(layers), quire::nan_poison};
}

} // namespace llama2
