// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// New keys and values of one layer, packed.

#include <concepts>
#include <span>

namespace quire {

/// What a backend over host memory is given to write. Owns nothing. \tparam Float type of the elements
template <std::floating_point Float>
struct kv_rows {
  /// \shape [Σq, h_kv, d_k] keys, rotated; of a latent layer [Σq, r_c + d_R], the latent and the rotary key.
  std::span<Float const> key = {};
  /// \shape [Σq, h_kv, d_v]; empty for a latent layer.
  std::span<Float const> value = {};
};

} // namespace quire
