// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// One layer of the CPU backend.

#include <quire/attention/attention_params.hpp>
#include <quire/attention/cpu_plane.hpp>
#include <quire/core/types.hpp>

#include <optional>

namespace quire {

/// Parameters and memory of one layer. A layer that borrows another's cache names the same planes and is not written.
struct cpu_layer {
  /// Heads, widths, rule.
  attention_params params = {};
  /// Group whose views and actions concern it.
  group_id group = group_id{0};
  /// Keys; of a latent layer the latent with the rotary key behind it.
  cpu_plane key = {};
  /// Values; none for a latent layer, whose values are the first d_v elements of the keys.
  std::optional<cpu_plane> value = {};
};

} // namespace quire
