// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Free blocks as a ring.

#include <quire/block/concepts.hpp>
#include <quire/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace quire {

/// Hands out the block that has been free longest: stale readers have the longest time to notice.
class fifo_allocation {
public:
  /// All of \p capacity blocks are free; 0 is the oldest.
  explicit fifo_allocation(block_count capacity) : ring_(capacity.value()), size_{capacity.value()} {
    for (std::uint32_t i = 0; i < size_; ++i) { ring_[i] = i; }
  }
  /// Takes one block; `none()` if there is none. \complexity O(1)
  [[nodiscard]] auto take() noexcept -> block_id {
    if (size_ == 0) { return block_id::none(); }
    auto const block = block_id{ring_[head_]};
    head_ = after(head_);
    --size_;
    return block;
  }
  /// Fills \p out from the front as far as blocks go; returns how many. \complexity O(out)
  auto take(std::span<block_id> out) noexcept -> block_count {
    auto const n = std::min<std::size_t>(out.size(), size_);
    for (std::size_t i = 0; i < n; ++i) { out[i] = take(); }
    return block_count{static_cast<std::uint32_t>(n)};
  }
  /// Returns a block. \pre it was taken and not given back. \complexity O(1)
  auto give(block_id block) noexcept -> void {
    ring_[tail_] = block.value();
    tail_ = after(tail_);
    ++size_;
  }
  /// Free blocks.
  [[nodiscard]] auto available() const noexcept -> block_count { return block_count{size_}; }

private:
  [[nodiscard]] auto after(std::uint32_t i) const noexcept -> std::uint32_t {
    return i + 1 == ring_.size() ? 0 : i + 1;
  }
  std::vector<std::uint32_t> ring_;
  std::uint32_t head_ = 0;
  std::uint32_t tail_ = 0; // a full ring: tail == head
  std::uint32_t size_;
};
static_assert(allocation_policy<fifo_allocation>);

} // namespace quire
