// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Free blocks as a stack.

#include <quire/block/concepts.hpp>
#include <quire/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace quire {

/// Hands out the block that was freed last: the warmest one, and the cheapest order. A fresh pool hands
/// out 0, 1, 2, …
class lifo_allocation {
public:
  /// All of \p capacity blocks are free.
  explicit lifo_allocation(block_count capacity) : stack_(capacity.value()), size_{capacity.value()} {
    for (std::uint32_t i = 0; i < size_; ++i) { stack_[i] = size_ - 1 - i; }
  }
  /// Takes one block; `none()` if there is none. \complexity O(1)
  [[nodiscard]] auto take() noexcept -> block_id { return size_ == 0 ? block_id::none() : block_id{stack_[--size_]}; }
  /// Fills \p out from the front as far as blocks go; returns how many. \complexity O(out)
  auto take(std::span<block_id> out) noexcept -> block_count {
    auto const n = static_cast<std::uint32_t>(std::min<std::size_t>(out.size(), size_));
    for (std::uint32_t i = 0; i < n; ++i) { out[i] = block_id{stack_[--size_]}; }
    return block_count{n};
  }
  /// Returns a block. \pre it was taken and not given back. \complexity O(1)
  auto give(block_id block) noexcept -> void { stack_[size_++] = block.value(); }
  /// Returns many blocks, the last one on top: what a pool uses where a policy has it. \complexity O(blocks)
  auto give(std::span<block_id const> blocks) noexcept -> void {
    auto* top = stack_.data() + size_;
    for (auto const block : blocks) { *top++ = block.value(); }
    size_ += static_cast<std::uint32_t>(blocks.size());
  }
  /// Free blocks.
  [[nodiscard]] auto available() const noexcept -> block_count { return block_count{size_}; }

private:
  std::vector<std::uint32_t> stack_;
  std::uint32_t size_;
};
static_assert(allocation_policy<lifo_allocation>);

} // namespace quire
