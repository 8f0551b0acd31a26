// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The null allocation policy.

#include <quire/block/concepts.hpp>
#include <quire/core/types.hpp>

#include <span>

namespace quire {

/// Never has a block: the null model, for tests of what happens without memory.
struct no_allocation {
  /// Ignores the capacity.
  explicit no_allocation(block_count) noexcept {}
  /// Always `none()`.
  [[nodiscard]] auto take() noexcept -> block_id { return block_id::none(); }
  /// Always nothing.
  auto take(std::span<block_id>) noexcept -> block_count { return block_count{0}; }
  /// Forgets the block.
  auto give(block_id) noexcept -> void {}
  /// Always zero.
  [[nodiscard]] auto available() const noexcept -> block_count { return block_count{0}; }
};
static_assert(allocation_policy<no_allocation>);

} // namespace quire
