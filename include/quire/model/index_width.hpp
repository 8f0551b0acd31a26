// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Whether a device index type can address a cache. Two public reports (cases 115 and 116) show what
/// happens otherwise: wrapped offsets, faults, silent zeros. It is checked when a layout is planned.

#include <quire/core/checked.hpp>
#include <quire/core/config_error.hpp>
#include <quire/core/types.hpp>

#include <algorithm> // std::min
#include <cstdint>
#include <limits>
#include <string>

namespace quire {

/// The integer in which device code computes offsets.
enum class index_width : std::uint8_t {
  int32, ///< Signed 32 bits: offsets up to 2 147 483 647.
  int64, ///< Signed 64 bits.
};

/// Distance between the same place of two neighbouring blocks, in the unit in which offsets are computed
/// (elements or bytes). Its own type, so that it cannot be taken for a number of blocks.
struct block_stride {
  std::uint64_t units = 0; ///< [elements or bytes]
};

/// The largest offset of the type.
[[nodiscard]] constexpr auto largest_offset(index_width width) noexcept -> std::uint64_t {
  return width == index_width::int32 ? std::uint64_t{std::numeric_limits<std::int32_t>::max()}
                                     : static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
}

/// The most blocks whose every unit, the last one of the last block included, has an offset in the type.
/// \returns [blocks], at most what a `block_id` can name. \throws config_error if the stride is 0.
/// \complexity O(1) \source cases 115, 116
[[nodiscard]] constexpr auto addressable_blocks(block_stride stride, index_width width) -> block_count {
  if (stride.units == 0) {
    throw config_error{"addressable_blocks: a stride of 0: use the size of one block, at least 1"};
  }
  // offsets 0 … n·stride − 1 must all be ≤ largest; int64's largest + 1 does not overflow 64 unsigned bits
  auto const most = (largest_offset(width) + 1) / stride.units;
  auto const ids = std::uint64_t{std::numeric_limits<std::uint32_t>::max()}; // block_id::none() is not a block
  return block_count{static_cast<std::uint32_t>(std::min(most, ids))};
}

/// Refuses a number of blocks that the index type cannot address. \param what names the plane in the text
/// \throws config_error naming the first offset that does not fit and what would work. \source cases 115, 116
constexpr void require_addressable(block_count blocks, block_stride stride, index_width width, char const* what) {
  auto const most = addressable_blocks(stride, width);
  if (blocks > most) {
    auto const size = checked_mul(blocks.value(), stride.units, what);
    throw config_error{std::string{what} + ": " + std::to_string(blocks.value()) + " blocks with a stride of " +
                       std::to_string(stride.units) + " reach offset " + std::to_string(size - 1) +
                       ", but the index type ends at " + std::to_string(largest_offset(width)) + ": use at most " +
                       std::to_string(most.value()) + " blocks" +
                       (width == index_width::int32 ? ", or a 64-bit index" : "")};
  }
}

} // namespace quire
