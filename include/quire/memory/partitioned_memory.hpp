// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A fixed share of the budget for each group.

#include <quire/block/lifo_allocation.hpp>
#include <quire/core/checked.hpp>
#include <quire/core/config_error.hpp>
#include <quire/core/contract.hpp>
#include <quire/core/types.hpp>
#include <quire/memory/concepts.hpp>
#include <quire/memory/detail/memory_sizes.hpp>
#include <quire/memory/memory_usage.hpp>
#include <quire/memory/owner_hint.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace quire {

/// A stack of blocks per group, none of which another group ever gets. No padding, and no group can starve another; what one
/// does not need, nobody else can use. The right choice where the proportions of the load are known.
class partitioned_memory {
public:
  /// Shares in proportion to \p parts. \param block_bytes one size per group \param parts one number per group, such as the
  ///   bytes that a typical sequence has in it; empty: equal shares. A share is rounded down to a multiple of 256 bytes
  ///   where it is larger than that, so that all groups are aligned
  /// \throws config_error without groups, for a block of 0 bytes, for another number of parts than groups, or unless each
  ///   share has between 1 and 2^31 - 1 blocks
  partitioned_memory(std::span<byte_count const> block_bytes, byte_count budget,
                     std::span<std::uint32_t const> parts = {})
      : budget_{budget} {
    auto const sizes = detail::checked_sizes(block_bytes);
    if (!parts.empty() && parts.size() != sizes.size()) {
      throw config_error{
          "partitioned_memory: another number of parts than groups: use one each, or none for equal shares"};
    }
    auto const part = [&](std::size_t g) -> std::uint64_t { return parts.empty() ? 1 : parts[g]; };
    std::uint64_t all = 0;
    for (std::size_t g = 0; g < sizes.size(); ++g) { all += part(g); }
    if (all == 0) { throw config_error{"partitioned_memory: all parts are 0: give each group at least 1"}; }
    auto end = byte_count{};
    groups_.reserve(sizes.size());
    for (std::size_t g = 0; g < sizes.size(); ++g) {
      // budget · part / all without leaving 64 bits: the quotient and the rest apart
      auto bytes = checked_mul(budget.value() / all, part(g), "share of a group") +
                   checked_mul(budget.value() % all, part(g), "share of a group") / all;
      if (bytes > alignment) { bytes -= bytes % alignment; }
      auto const blocks = detail::blocks_within(byte_count{bytes}, sizes[g]);
      groups_.push_back({.block = sizes[g], .base = end, .blocks = blocks, .free = lifo_allocation{blocks}});
      end += byte_count{bytes};
    }
  }

  /// Number of groups.
  [[nodiscard]] auto groups() const noexcept -> std::size_t { return groups_.size(); }
  /// [bytes] that were asked for.
  [[nodiscard]] auto budget() const noexcept -> byte_count { return budget_; }
  /// [bytes] from the first block of the first group to the end of the last one's.
  [[nodiscard]] auto arena() const noexcept -> byte_count { return groups_.back().base + bytes_of(groups_.back()); }
  /// [bytes] from the start of the arena to block 0 of \p group: where its share starts. \pre the group exists
  [[nodiscard]] auto base(group_id group) const noexcept -> byte_count { return groups_[group.value()].base; }
  /// [bytes] from one block of \p group to the next. \pre the group exists
  [[nodiscard]] auto stride(group_id group) const noexcept -> byte_count { return groups_[group.value()].block; }
  /// Blocks of \p group lie in [0, capacity). \pre the group exists
  [[nodiscard]] auto capacity(group_id group) const noexcept -> block_count { return groups_[group.value()].blocks; }
  /// Blocks that this group can take, whatever the others do. \pre the group exists
  [[nodiscard]] auto available(group_id group) const noexcept -> block_count {
    return groups_[group.value()].free.available();
  }
  /// True if the groups could take \p needs, one count per group, all together. \pre one per group \complexity O(groups)
  [[nodiscard]] auto fits(std::span<block_count const> needs) const -> bool {
    QUIRE_EXPECTS(needs.size() == groups_.size());
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (needs[g] > groups_[g].free.available()) { return false; }
    }
    return true;
  }

  /// Takes one block; `none()` if there is none. \pre the group exists \complexity O(1)
  [[nodiscard]] auto take(group_id group, owner_hint /*hint*/ = owner_hint::none()) noexcept -> block_id {
    return groups_[group.value()].free.take();
  }
  /// Fills \p out from the front as far as blocks go; returns how many. \pre the group exists \complexity O(out)
  auto take(group_id group, std::span<block_id> out, owner_hint /*hint*/ = owner_hint::none()) noexcept -> block_count {
    return groups_[group.value()].free.take(out);
  }
  /// Returns a block. \pre this group took it and did not give it back \complexity O(1)
  auto give(group_id group, block_id block) noexcept -> void { groups_[group.value()].free.give(block); }
  /// Returns many blocks. \pre as for one \complexity O(blocks)
  auto give(group_id group, std::span<block_id const> blocks) noexcept -> void {
    groups_[group.value()].free.give(blocks);
  }

  /// Where the bytes of one group are: it always holds its whole share. \pre the group exists \complexity O(1)
  [[nodiscard]] auto usage(group_id group) const -> memory_usage {
    QUIRE_EXPECTS(group.value() < groups_.size());
    auto const& one = groups_[group.value()];
    auto const external = byte_count{one.free.available().value() * one.block.value()};
    auto const held = bytes_of(one);
    return {.held = held, .used = held - external, .external = external};
  }
  /// Where the bytes of all groups are. \complexity O(groups)
  [[nodiscard]] auto usage() const -> memory_usage { return detail::usage_of_groups(*this); }

private:
  static constexpr std::uint64_t alignment = 256; // [bytes] what device allocations have
  struct share {
    byte_count block;
    byte_count base;
    block_count blocks;
    lifo_allocation free;
  };
  [[nodiscard]] static auto bytes_of(share const& one) noexcept -> byte_count {
    return byte_count{one.block.value() * one.blocks.value()};
  }

  byte_count budget_;
  std::vector<share> groups_;
};
static_assert(group_memory<partitioned_memory>);

} // namespace quire
