// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The residency of a sliding window.

#include <quire/core/types.hpp>
#include <quire/model/retention.hpp>
#include <quire/sequence/concepts.hpp>
#include <quire/sequence/residency_of.hpp>

#include <cstdint>

namespace quire {

/// Keeps what the windows of the oldest query in flight and of all later ones reach, decided by the one `resident_range`.
/// \tparam Window [tokens] w, the query's own position included; at least 1
template <std::uint32_t Window>
struct sliding_window_residency : residency_of<sliding_window_residency<Window>> {
  /// What it keeps; sizes that cannot be do not compile.
  static constexpr retention keeps = retention::sliding_window(token_count{Window});
};
static_assert(residency_policy<sliding_window_residency<4096>>);

} // namespace quire
