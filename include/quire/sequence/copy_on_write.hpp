// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Models of `copy_policy`.

#include <quire/core/types.hpp>
#include <quire/sequence/concepts.hpp>
#include <quire/view/action.hpp>

namespace quire {

/// Copies the valid tokens of the shared block and nothing else (S23).
struct copy_on_write {
  /// A writer gets its own block.
  static constexpr bool allowed = true;
  /// The first \p valid tokens.
  [[nodiscard]] static auto copy(group_id group, block_id source, block_id target, token_count valid,
                                 token_count) noexcept -> action {
    return action::copy_block(group, source, target, valid);
  }
};
static_assert(copy_policy<copy_on_write>);

/// Copies the whole block: for backends whose copies are cheapest in whole pages.
struct copy_whole_block {
  /// A writer gets its own block.
  static constexpr bool allowed = true;
  /// All tokens of the block, the invalid ones too (length bounds every read).
  [[nodiscard]] static auto copy(group_id group, block_id source, block_id target, token_count,
                                 token_count block) noexcept -> action {
    return action::copy_block(group, source, target, block);
  }
};
static_assert(copy_policy<copy_whole_block>);

/// The null model: nothing is ever copied, so a step that would have to is refused with `errc::not_supported`.
struct never_copy {
  /// A writer is refused.
  static constexpr bool allowed = false;
  /// Never called.
  [[nodiscard]] static auto copy(group_id, block_id, block_id, token_count, token_count) noexcept -> action {
    return {};
  }
};
static_assert(copy_policy<never_copy>);

} // namespace quire
