// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Logical coordinates of one element of a query, key, value or output tensor.

#include <cstdint>

namespace quire {

/// Names one element. Use designated initialisers. What `token` counts is said where a place is used: rows of a query
/// or output tensor count from 0, keys and values go by their logical position.
struct tensor_place {
  /// Row of a query or output, or logical position of a key or value.
  std::uint32_t token = 0;
  /// Head of the tensor at hand: query heads for queries and outputs, KV heads for keys and values.
  std::uint32_t head = 0;
  /// [elements] in the head.
  std::uint32_t dim = 0;

  /// True if all three agree.
  friend constexpr auto operator==(tensor_place const&, tensor_place const&) noexcept -> bool = default;
};

} // namespace quire
