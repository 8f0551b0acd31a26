// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The name of a generation.

#include <quire/core/strong.hpp>

#include <cstdint>

namespace quire {

/// \cond INTERNAL
namespace tag {
struct generation;
} // namespace tag
/// \endcond

/// Names a generation of one generator; never used twice. It is not a row, and no row is it (S19).
using generation_id = strong_id<tag::generation, std::uint64_t>;

} // namespace quire
