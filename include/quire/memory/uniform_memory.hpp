// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// One size for all groups: every block is as large as the largest.

#include <quire/block/lifo_allocation.hpp>
#include <quire/core/contract.hpp>
#include <quire/core/types.hpp>
#include <quire/memory/concepts.hpp>
#include <quire/memory/detail/memory_sizes.hpp>
#include <quire/memory/memory_usage.hpp>
#include <quire/memory/owner_hint.hpp>

#include <algorithm> // std::equal_to, std::max_element
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace quire {

/// One stack of equal blocks that any group takes from. Any free block serves any group, so nothing is fragmented outside
/// blocks; groups with small blocks pay for the largest. The right choice where block sizes are equal.
class uniform_memory {
public:
  /// As many blocks of the largest of \p block_bytes as fit \p budget.
  /// \param block_bytes one size per group
  /// \throws config_error without groups, for a block of 0 bytes, or unless between 1 and 2^31 - 1 blocks fit
  uniform_memory(std::span<byte_count const> block_bytes, byte_count budget)
      : sizes_{detail::checked_sizes(block_bytes)}, stride_{*std::max_element(sizes_.begin(), sizes_.end())},
        blocks_{detail::blocks_within(budget, stride_)}, budget_{budget}, taken_(sizes_.size()), free_{blocks_} {}

  /// Number of groups.
  [[nodiscard]] auto groups() const noexcept -> std::size_t { return sizes_.size(); }
  /// [bytes] that were asked for.
  [[nodiscard]] auto budget() const noexcept -> byte_count { return budget_; }
  /// [bytes] from the first block to the end of the last.
  [[nodiscard]] auto arena() const noexcept -> byte_count { return byte_count{stride_.value() * blocks_.value()}; }
  /// [bytes] from the start of the arena to block 0 of a group: 0.
  [[nodiscard]] auto base(group_id /*group*/) const noexcept -> byte_count { return {}; }
  /// [bytes] from one block of a group to the next: those of the largest group.
  [[nodiscard]] auto stride(group_id /*group*/) const noexcept -> byte_count { return stride_; }
  /// Blocks of a group lie in [0, capacity): all blocks, for every group.
  [[nodiscard]] auto capacity(group_id /*group*/) const noexcept -> block_count { return blocks_; }
  /// Blocks that this group could take if no other group did.
  [[nodiscard]] auto available(group_id /*group*/) const noexcept -> block_count { return free_.available(); }
  /// True if the groups could take \p needs, one count per group, all together. \pre one per group \complexity O(groups)
  [[nodiscard]] auto fits(std::span<block_count const> needs) const -> bool {
    QUIRE_EXPECTS(needs.size() == sizes_.size());
    std::uint64_t all = 0;
    for (auto const need : needs) { all += need.value(); }
    return all <= free_.available().value();
  }

  /// Takes one block; `none()` if there is none. \pre the group exists \complexity O(1)
  [[nodiscard]] auto take(group_id group, owner_hint /*hint*/ = owner_hint::none()) noexcept -> block_id {
    auto const block = free_.take();
    taken_[group.value()] += block ? 1U : 0U;
    return block;
  }
  /// Fills \p out from the front as far as blocks go; returns how many. \pre the group exists \complexity O(out)
  auto take(group_id group, std::span<block_id> out, owner_hint /*hint*/ = owner_hint::none()) noexcept -> block_count {
    auto const n = free_.take(out);
    taken_[group.value()] += n.value();
    return n;
  }
  /// Returns a block. \pre this group took it and did not give it back \complexity O(1)
  auto give(group_id group, block_id block) noexcept -> void {
    free_.give(block);
    --taken_[group.value()];
  }
  /// Returns many blocks. \pre as for one \complexity O(blocks)
  auto give(group_id group, std::span<block_id const> blocks) noexcept -> void {
    free_.give(blocks);
    taken_[group.value()] -= static_cast<std::uint32_t>(blocks.size());
  }

  /// Where the bytes of one group are. \pre the group exists \complexity O(1)
  [[nodiscard]] auto usage(group_id group) const -> memory_usage {
    QUIRE_EXPECTS(group.value() < sizes_.size());
    auto const taken = std::uint64_t{taken_[group.value()]};
    auto const used = byte_count{taken * sizes_[group.value()].value()};
    auto const held = byte_count{taken * stride_.value()};
    return {.held = held, .used = used, .padding = held - used};
  }
  /// Where the bytes of all groups are. \complexity O(groups)
  [[nodiscard]] auto usage() const -> memory_usage { return detail::usage_of_groups(*this); }

private:
  std::vector<byte_count> sizes_;
  byte_count stride_;
  block_count blocks_;
  byte_count budget_;
  std::vector<std::uint32_t> taken_;
  lifo_allocation free_;
};
static_assert(group_memory<uniform_memory>);

} // namespace quire
