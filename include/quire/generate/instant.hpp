// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Points in time as the accounts of a generation use them.

#include <quire/core/strong.hpp>

#include <cstdint>

namespace quire {

/// \cond INTERNAL
namespace tag {
struct nanosecond;
} // namespace tag
/// \endcond

/// Amount of nanoseconds.
using nanosecond_count = strong_count<tag::nanosecond, std::uint64_t>;
/// [ns] A point in time, from an origin that a clock chooses. Instants of two clocks have nothing to do with each other.
using instant = strong_position<nanosecond_count>;

} // namespace quire
