// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The residency of chunked local attention.

#include <quire/core/types.hpp>
#include <quire/model/retention.hpp>
#include <quire/sequence/concepts.hpp>
#include <quire/sequence/residency_of.hpp>

#include <cstdint>

namespace quire {

/// Keeps the chunk of the oldest query in flight: a whole chunk dies at once, when the first query of the next one is oldest.
/// \tparam Chunk [tokens] per chunk; at least 1
template <std::uint32_t Chunk>
struct chunked_residency : residency_of<chunked_residency<Chunk>> {
  /// What it keeps; sizes that cannot be do not compile.
  static constexpr retention keeps = retention::chunked(token_count{Chunk});
};
static_assert(residency_policy<chunked_residency<8192>>);

} // namespace quire
