// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What the memories of several groups have in common: checks of sizes, and sums over groups.

#include <quire/core/config_error.hpp>
#include <quire/core/types.hpp>
#include <quire/memory/memory_usage.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace quire::detail {

/// The same sizes. \throws config_error if there are none, or one is 0
[[nodiscard]] inline auto checked_sizes(std::span<byte_count const> block_bytes) -> std::vector<byte_count> {
  if (block_bytes.empty()) { throw config_error{"group memory: no groups: name the block size of at least one"}; }
  for (auto const size : block_bytes) {
    if (size == byte_count{}) { throw config_error{"group memory: a block of 0 bytes: use at least 1"}; }
  }
  return {block_bytes.begin(), block_bytes.end()};
}

/// Blocks of \p size bytes within \p budget. \throws config_error unless it is between 1 and 2^31 - 1
[[nodiscard]] inline auto blocks_within(byte_count budget, byte_count size) -> block_count {
  auto const blocks = budget.value() / size.value();
  if (blocks == 0) {
    throw config_error{"group memory: " + std::to_string(budget.value()) + " bytes hold no block of " +
                       std::to_string(size.value()) + ": use a larger budget or smaller blocks"};
  }
  if (blocks > 0x7fff'ffffU) { // the views carry block numbers as int32
    throw config_error{"group memory: more than 2^31 - 1 blocks: use larger blocks or several memories"};
  }
  return block_count{static_cast<std::uint32_t>(blocks)};
}

/// The sum of `memory.usage(g)` over its groups.
template <class Memory>
[[nodiscard]] auto usage_of_groups(Memory const& memory) -> memory_usage {
  auto out = memory_usage{};
  for (std::uint32_t g = 0; g < memory.groups(); ++g) { out += memory.usage(group_id{g}); }
  return out;
}

} // namespace quire::detail
