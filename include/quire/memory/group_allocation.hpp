// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// One group of a memory, as the allocation policy of that group's pool.

#include <quire/core/contract.hpp>
#include <quire/core/types.hpp>
#include <quire/memory/concepts.hpp>

#include <span>

namespace quire {

/// Takes the blocks of one group from a memory that several groups share. Several pools hold one each:
/// ```cpp
/// auto memory = quire::two_level_memory{block_bytes, budget};
/// auto const full = quire::group_allocation{memory, quire::group_id{0}};
/// auto pool = quire::block_pool<quire::group_allocation<quire::two_level_memory>>{full.capacity(), full};
/// ```
/// `available()` is what this group could take if no other one did: what several groups need together is a question for
/// `Memory::fits`. The pool's `relocate` takes every free block for a moment, which shared memory does not allow: blocks of
/// such a pool are not compacted.
/// \tparam Memory models `group_memory`; it stays where it is while views of it exist
template <group_memory Memory>
class group_allocation {
public:
  /// The memory.
  using memory_type = Memory;
  /// A view of nothing: never a block. \param capacity ignored; what every allocation policy can be made from
  explicit group_allocation([[maybe_unused]] block_count capacity) noexcept {}
  /// The view of \p group. \pre it is one of the memory's
  group_allocation(Memory& memory, group_id group) : memory_{&memory}, group_{group} {
    QUIRE_EXPECTS(group.value() < memory.groups());
  }

  /// The group.
  [[nodiscard]] auto group() const noexcept -> group_id { return group_; }
  /// Blocks lie in [0, capacity): the capacity of the pool.
  [[nodiscard]] auto capacity() const noexcept -> block_count {
    return memory_ == nullptr ? block_count{} : memory_->capacity(group_);
  }

  /// Takes one block; `none()` if there is none. \complexity O(1)
  [[nodiscard]] auto take() noexcept -> block_id {
    return memory_ == nullptr ? block_id::none() : memory_->take(group_);
  }
  /// Fills \p out from the front as far as blocks go; returns how many. \complexity O(out)
  auto take(std::span<block_id> out) noexcept -> block_count {
    return memory_ == nullptr ? block_count{} : memory_->take(group_, out);
  }
  /// Returns a block. \pre it was taken and not given back. \complexity O(1)
  auto give(block_id block) noexcept -> void { memory_->give(group_, block); }
  /// Returns many blocks. \complexity O(blocks)
  auto give(std::span<block_id const> blocks) noexcept -> void {
    if (!blocks.empty()) { memory_->give(group_, blocks); }
  }
  /// Blocks that this group could take if no other group did.
  [[nodiscard]] auto available() const noexcept -> block_count {
    return memory_ == nullptr ? block_count{} : memory_->available(group_);
  }

private:
  Memory* memory_ = nullptr;
  group_id group_{};
};

} // namespace quire
