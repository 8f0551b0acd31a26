// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Free blocks as a bitmap.

#include <quire/block/concepts.hpp>
#include <quire/core/detail/bit_tree.hpp>
#include <quire/core/types.hpp>

#include <cstdint>
#include <span>

namespace quire {

/// Hands out the free block with the lowest number: the cache stays dense at low addresses, so that its
/// tail can be given back to the system or compacted.
class lowest_allocation {
public:
  /// All of \p capacity blocks are free.
  explicit lowest_allocation(block_count capacity) : free_{capacity.value()}, size_{capacity.value()} {
    for (std::uint32_t i = 0; i < size_; ++i) { free_.insert(i); }
  }
  /// Takes one block; `none()` if there is none. \complexity O(log64 capacity)
  [[nodiscard]] auto take() noexcept -> block_id {
    if (size_ == 0) { return block_id::none(); }
    auto const lowest = free_.min();
    free_.erase(lowest);
    --size_;
    return block_id{static_cast<std::uint32_t>(lowest)};
  }
  /// Fills \p out from the front as far as blocks go; returns how many. \complexity O(out · log64 capacity)
  auto take(std::span<block_id> out) noexcept -> block_count {
    std::uint32_t n = 0;
    for (; n < out.size() && size_ != 0; ++n) { out[n] = take(); }
    return block_count{n};
  }
  /// Returns a block. \pre it was taken and not given back. \complexity O(log64 capacity)
  auto give(block_id block) noexcept -> void {
    free_.insert(block.value());
    ++size_;
  }
  /// Free blocks.
  [[nodiscard]] auto available() const noexcept -> block_count { return block_count{size_}; }

private:
  detail::bit_tree free_;
  std::uint32_t size_;
};
static_assert(allocation_policy<lowest_allocation>);

} // namespace quire
