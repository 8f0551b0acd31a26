// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The vocabulary of the room: names of generations, and points in time as their accounts use them.

#include <quire/core/strong.hpp>

#include <cstdint>

namespace quire {

/// \cond INTERNAL
namespace tag {
struct generation;
struct nanosecond;
} // namespace tag
/// \endcond

/// Names a generation of one generator; never used twice. It is not a row, and no row is it (S19).
using generation_id = strong_id<tag::generation, std::uint64_t>;

/// Amount of nanoseconds.
using nanosecond_count = strong_count<tag::nanosecond, std::uint64_t>;
/// [ns] A point in time, from an origin that a clock chooses. Instants of two clocks have nothing to do with each other.
using instant = strong_position<nanosecond_count>;

} // namespace quire
