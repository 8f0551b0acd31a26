// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The residency of a sliding window that never lets the first positions go.

#include <quire/core/types.hpp>
#include <quire/model/retention.hpp>
#include <quire/sequence/concepts.hpp>
#include <quire/sequence/residency_of.hpp>

#include <cstdint>

namespace quire {

/// Keeps the first positions and what windows reach (StreamingLLM). Learned logits (gpt-oss) are no positions and retain
/// nothing. \tparam Sinks [tokens] that stay; without any it is `sliding_window_residency`
/// \tparam Window [tokens] w, the query's own position included; at least 1
template <std::uint32_t Sinks, std::uint32_t Window>
struct sink_window_residency : residency_of<sink_window_residency<Sinks, Window>> {
  /// What it keeps; sizes that cannot be do not compile.
  static constexpr retention keeps =
      retention::sink_window({.sinks = token_count{Sinks}, .window = token_count{Window}});
};
static_assert(residency_policy<sink_window_residency<4, 4096>>);

} // namespace quire
