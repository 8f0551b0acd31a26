// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The residency of ring storage.

#include <quire/core/types.hpp>
#include <quire/model/retention.hpp>
#include <quire/sequence/concepts.hpp>
#include <quire/sequence/fwd.hpp>
#include <quire/sequence/residency_of.hpp>

#include <cstdint>

namespace quire {

/// Keeps windows in a fixed number of slots that are overwritten in place: no block ever goes. See `ring_table`.
/// \tparam Capacity [slots] in all, sink slots included \tparam Window [tokens] w, the query's own position included
/// \tparam Sinks [tokens] first positions that stay
template <std::uint32_t Capacity, std::uint32_t Window, std::uint32_t Sinks>
struct ring_residency : residency_of<ring_residency<Capacity, Window, Sinks>> {
  /// What it keeps; sizes that cannot be do not compile.
  static constexpr retention keeps =
      retention::ring({.capacity = token_count{Capacity}, .window = token_count{Window}, .sinks = token_count{Sinks}});
};
static_assert(residency_policy<ring_residency<4351, 4096>>);

} // namespace quire
