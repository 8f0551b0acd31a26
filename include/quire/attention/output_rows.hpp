// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Where a backend puts the results of one layer, packed.

#include <concepts>
#include <span>

namespace quire {

/// Where a backend over host memory writes its answers. Owns nothing. \tparam Float type of the elements
template <std::floating_point Float>
struct output_rows {
  /// \shape [Σq, h_q, d_v]; of a latent layer [Σq, h_q, r_c]
  std::span<Float> output = {};
  /// \shape [Σq, h_q] natural logarithm, without learned sinks; −∞ for an empty row. May be an empty span: not wanted.
  std::span<Float> lse = {};
};

} // namespace quire
