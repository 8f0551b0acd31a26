// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// How many blocks lie before a block.

#include <quire/core/strong.hpp>

#include <cstdint>

namespace quire {

/// \cond INTERNAL
namespace tag {
struct depth;
} // namespace tag
/// \endcond

/// Number of blocks between the start of a sequence and a block [blocks]; the first block has depth 0.
using block_depth = strong_count<tag::depth, std::uint32_t>;

} // namespace quire
