// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// One account of a group's blocks: what tables hold, what sequences were promised, what the plan at hand will take.
///
/// ```text
///   kept by path     promised = what each may still take                       counted down as blocks are taken
///   kept by block    promised = all budgets - the blocks in use                a block that several use counts once
///   reserved         by the plan at hand; what is reserved for live sequences is promised no more
/// ```

#include <quire/core/types.hpp>
#include <quire/sequence/block_table.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
/// Arithmetic only: it knows no pool. Every number is in blocks.
class block_ledger {
public:
  block_ledger(bool by_path, std::uint32_t blocks) : by_path_{by_path}, users_(by_path ? 0 : blocks) {}

  /// Held by all tables, with their multiplicity.
  [[nodiscard]] auto held() const noexcept -> std::uint32_t { return held_; }
  /// What sequences may still take. Kept by block: when one of several users moves on, the others keep the block and the
  /// one needs another, so that it counts once.
  [[nodiscard]] auto promised() const noexcept -> std::uint32_t {
    auto const all = by_path_ ? owed_ : budgets_ - std::min(budgets_, in_use_);
    return all - std::min(all, reserved_by_live());
  }
  /// What the plan at hand will take.
  [[nodiscard]] auto reserved() const noexcept -> std::uint32_t { return reserved_; }
  /// The part of it for sequences that are promised it.
  [[nodiscard]] auto reserved_by_live() const noexcept -> std::uint32_t { return reserved_ - reserved_by_ended_; }
  auto reserve(std::uint32_t blocks) noexcept -> void { reserved_ += blocks; }
  /// The item at hand is not part of the plan after all.
  auto return_reserved(std::uint32_t blocks) noexcept -> void { reserved_ -= blocks; }
  auto unreserve() noexcept -> void { reserved_ = reserved_by_ended_ = 0; }
  /// A sequence ends whose \p blocks are reserved: nobody was promised them any more.
  auto end_reserved(std::uint32_t blocks) noexcept -> void { reserved_by_ended_ += blocks; }

  /// \p t holds more or fewer blocks than it did.
  auto account(block_table& t) noexcept -> void {
    held_ = held_ - t.counted + t.held;
    t.counted = t.held;
  }
  /// A sequence kept by path may take \p blocks more.
  auto owe(block_table& t, std::uint32_t blocks) noexcept -> void {
    owed_ = owed_ - t.owed + blocks;
    t.owed = blocks;
  }
  /// It has taken \p blocks.
  auto took(block_table& t, std::uint32_t blocks) noexcept -> void {
    if (by_path_) { owe(t, t.owed - std::min(t.owed, blocks)); }
  }
  /// A sequence kept by block may hold \p blocks at once.
  auto set_budget(block_table& t, std::uint32_t blocks) noexcept -> void {
    budgets_ = budgets_ - t.budget + blocks;
    t.budget = blocks;
  }
  /// A live sequence uses \p block.
  auto use(block_table const& t, block_id block) noexcept -> void {
    if (t.budget > 0) { in_use_ += users_[block.value()]++ == 0 ? 1U : 0U; }
  }
  /// It does no more. Of a sequence that has ended, its end has said so.
  auto leave_use(block_table const& t, block_id block) noexcept -> void {
    if (t.budget > 0) { in_use_ -= --users_[block.value()] == 0 ? 1U : 0U; }
  }
  /// What is said of \p from holds for \p to, and the other way round.
  auto swap(block_id from, block_id to) noexcept -> void { std::swap(users_[from.value()], users_[to.value()]); }

  /// Sequences, not ended, that hold \p block (a group kept by block).
  [[nodiscard]] auto users(block_id block) const noexcept -> std::uint32_t { return users_[block.value()]; }
  /// Blocks with users.
  [[nodiscard]] auto in_use() const noexcept -> std::uint32_t { return in_use_; }

private:
  bool by_path_;
  std::vector<std::uint32_t> users_; // by block
  std::uint32_t held_ = 0;
  std::uint32_t owed_ = 0;
  std::uint32_t budgets_ = 0;
  std::uint32_t in_use_ = 0;
  std::uint32_t reserved_ = 0;
  std::uint32_t reserved_by_ended_ = 0;
};
/// \endcond

} // namespace quire::detail
