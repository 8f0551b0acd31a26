// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// One piece of work that the core asks an executor to perform on the bytes of the cache.
///
///     core   plan ──► launch ──► span<action const>          backend
///                                [ wait  t3 ≥ 17      ]  ──►  executor.run(span)
///                                [ copy  2 → 9, 3 tok ]       in this order, then
///                                [ scrub 4            ]  ──►  backend.forward(batch_view)
///
/// The core never touches a byte: it says what has to happen and in which order. The place in the span is
/// the order of execution: an action sees the effect of every earlier one, so a block may be the target of
/// one action and the source of a later one (S18, and the hazard of copy lists that run in any order).
/// A block is all its planes (K and V or latent, scales, side state) in every layer of its group.

#include <quire/core/types.hpp>

#include <cstdint>
#include <string_view>
#include <type_traits>

namespace quire {

/// What an executor is asked to do with one block, or with a timeline.
enum class action_kind : std::uint8_t {
  wait,  ///< Do nothing further until a ticket of a timeline is reached.
  copy,  ///< The target reads like the source in its first `tokens` tokens; the source stays as it is.
  move,  ///< As copy, with all tokens of the block; the source's bytes are of no further use to anyone.
  scrub, ///< Overwrite every byte of the target.
  store, ///< Bring the source to a tier.
  load,  ///< Fill the target from a tier.
};

/// Name of \p kind, for messages.
[[nodiscard]] constexpr auto to_string(action_kind kind) noexcept -> std::string_view {
  switch (kind) {
  case action_kind::wait: return "wait";
  case action_kind::copy: return "copy";
  case action_kind::move: return "move";
  case action_kind::scrub: return "scrub";
  case action_kind::store: return "store";
  case action_kind::load: return "load";
  }
  return "unknown action";
}

/// Where a block lies: on the device, unless a tier is named.
struct block_place {
  /// Memory.
  tier_id tier = device_tier;
  /// Block of it; none() if no place is meant.
  block_id block = {};

  /// No place.
  constexpr block_place() noexcept = default;
  /// \p on_device, in the device's memory.
  constexpr block_place(block_id on_device) noexcept : block{on_device} {} // NOLINT(google-explicit-constructor)
  /// \p number in the memory \p of.
  constexpr block_place(tier_id of, block_id number) noexcept : tier{of}, block{number} {}
  /// True if a place is meant.
  [[nodiscard]] explicit constexpr operator bool() const noexcept { return static_cast<bool>(block); }
  /// True if memory and block agree.
  friend constexpr auto operator==(block_place const&, block_place const&) noexcept -> bool = default;
};

/// A request to an executor. Plain data: it may be copied to a device or written to a log as it is.
/// Fields that a kind does not use hold their default, so that equal actions compare equal.
struct action {
  /// What to do.
  action_kind kind = action_kind::wait;
  /// Layer group whose block is meant.
  group_id group = {};
  /// Where is read (copy, move, store, load).
  block_place source = {};
  /// Where is written (copy, move, scrub, store, load).
  block_place target = {};
  /// [tokens] How many, from the start of the block, have to be right afterwards (copy, store, load).
  token_count tokens = {};
  /// Queue that is waited for (wait).
  timeline_id timeline = {};
  /// Point on `timeline` that must be reached before the next action runs (wait).
  ticket until = {};

  /// Action that holds back later ones until \p timeline has reached \p until.
  [[nodiscard]] static constexpr auto wait_for(timeline_id timeline, ticket until) noexcept -> action {
    return {.kind = action_kind::wait, .timeline = timeline, .until = until};
  }
  /// Action that copies the first \p tokens tokens of \p source to \p target. More may be copied: the
  /// length of a sequence bounds every read (S37). \pre the blocks differ and `tokens > 0`.
  [[nodiscard]] static constexpr auto copy_block(group_id group, block_id source, block_id target,
                                                 token_count tokens) noexcept -> action {
    return {.kind = action_kind::copy, .group = group, .source = source, .target = target, .tokens = tokens};
  }
  /// Action that relocates the whole block \p source to \p target (S15). \pre the blocks differ.
  [[nodiscard]] static constexpr auto move_block(group_id group, block_id source, block_id target) noexcept -> action {
    return {.kind = action_kind::move, .group = group, .source = source, .target = target};
  }
  /// Action that overwrites every byte of \p target, so that nothing of its past is left (S37).
  [[nodiscard]] static constexpr auto scrub_block(group_id group, block_id target) noexcept -> action {
    return {.kind = action_kind::scrub, .group = group, .target = target};
  }
  /// Action that brings the first \p tokens tokens of \p source to \p target, a place in a tier.
  [[nodiscard]] static constexpr auto store_block(group_id group, block_id source, block_place target,
                                                  token_count tokens) noexcept -> action {
    return {.kind = action_kind::store, .group = group, .source = source, .target = target, .tokens = tokens};
  }
  /// Action that fills the first \p tokens tokens of \p target from \p source, a place in a tier.
  [[nodiscard]] static constexpr auto load_block(group_id group, block_place source, block_id target,
                                                 token_count tokens) noexcept -> action {
    return {.kind = action_kind::load, .group = group, .source = source, .target = target, .tokens = tokens};
  }

  /// True if kind and every field agree.
  friend constexpr auto operator==(action const&, action const&) noexcept -> bool = default;
};

static_assert(std::is_trivially_copyable_v<action> && std::is_standard_layout_v<action>,
              "an action crosses to devices and logs as bytes");

} // namespace quire
