// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A tensor in memory, in any axis order: one span and three strides.
///
///     axes (outermost first)   token_stride   head_stride   dim_stride
///     [token, head, dim]       heads · dim    dim           1
///     [head, token, dim]       dim            tokens · dim  1
///     [head, dim, token]       1              dim · tokens  tokens

#include <quire/attention/concepts.hpp>
#include <quire/attention/tensor_place.hpp>
#include <quire/core/contract.hpp>
#include <quire/core/types.hpp>

#include <concepts>
#include <cstdint>
#include <span>

namespace quire {

/// Reads elements through strides. Owns nothing. \tparam Float type of the elements
template <std::floating_point Float>
struct strided_tensor {
  /// The elements; offset 0 is the element (`first`, head 0, dim 0).
  std::span<Float const> elements = {};
  /// Heads and widths of a packed tensor, named so that they cannot be swapped.
  struct packed_shape {
    /// Heads per token.
    std::uint32_t heads = 1;
    /// [elements] per head.
    std::uint32_t width = 1;
  };

  /// [elements] from a token to the next.
  std::uint64_t token_stride = 0;
  /// [elements] from a head to the next.
  std::uint64_t head_stride = 0;
  /// [elements] from a dim to the next.
  std::uint64_t dim_stride = 1;
  /// `token` of the first one in memory: the logical position where keys of a window begin; 0 for queries.
  token_pos first = {};

  /// Order [token, head, dim] without gaps.
  [[nodiscard]] static constexpr auto packed(std::span<Float const> elements, packed_shape shape, token_pos first = {})
      -> strided_tensor {
    return {.elements = elements,
            .token_stride = std::uint64_t{shape.heads} * shape.width,
            .head_stride = shape.width,
            .dim_stride = 1,
            .first = first};
  }

  /// The element at \p at. \pre `at.token >= first`, and the element lies in the span
  [[nodiscard]] constexpr auto operator()(tensor_place const& at) const -> Float {
    QUIRE_EXPECTS(at.token >= first.value());
    auto const index = std::uint64_t{at.token - first.value()} * token_stride + std::uint64_t{at.head} * head_stride +
                       std::uint64_t{at.dim} * dim_stride;
    QUIRE_EXPECTS(index < elements.size());
    return elements[index];
  }
};

static_assert(attention_accessor<strided_tensor<double>> && attention_accessor<strided_tensor<float>>);

} // namespace quire
