// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// New queries of one layer, packed.

#include <concepts>
#include <span>

namespace quire {

/// What a backend over host memory is asked. Owns nothing. \tparam Float type of the elements
template <std::floating_point Float>
struct query_rows {
  /// \shape [Σq, h_q, d_k] queries, rotated; of a latent layer [Σq, h_q, r_c + d_R], absorbed.
  std::span<Float const> query = {};
};

} // namespace quire
