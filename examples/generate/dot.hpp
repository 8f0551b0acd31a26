// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The one inner loop of the network.

#include <cstddef>
#include <cstring> // std::memcpy

namespace llama2 {

/// Four floats that a compiler keeps in one register.
using float4 [[gnu::vector_size(16)]] = float;

/// Σ a[i] · b[i]. Sixteen partial sums, added in a fixed order: the result depends on the numbers and on nothing else, so
/// that a row computed in a batch, in a chunk or alone is the same row to the last bit.
[[nodiscard]] inline auto dot(float const* a, float const* b, std::size_t n) noexcept -> float {
  float4 sums[4] = {};
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (std::size_t k = 0; k < 4; ++k) {
      float4 x;
      float4 y;
      std::memcpy(&x, a + i + 4 * k, sizeof x);
      std::memcpy(&y, b + i + 4 * k, sizeof y);
      sums[k] += x * y;
    }
  }
  auto const sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  auto out = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  for (; i < n; ++i) { out += a[i] * b[i]; }
  return out;
}

} // namespace llama2
