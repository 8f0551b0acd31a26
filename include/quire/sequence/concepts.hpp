// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The policies of the sequence room. Semantics that no compiler sees: docs/concepts/copy_policy.md and
/// docs/concepts/retention_policy.md.

#include <quire/core/types.hpp>
#include <quire/model/capacity.hpp>
#include <quire/model/intervals.hpp>
#include <quire/model/resident_blocks.hpp>
#include <quire/model/retention.hpp>
#include <quire/view/action.hpp>

#include <concepts>
#include <optional>

namespace quire {

/// Decides what happens when a sequence would write into a block that others read. See docs/concepts/copy_policy.md.
template <class C>
concept copy_policy = requires(group_id group, block_id source, block_id target, token_count valid, token_count block) {
  requires std::same_as<decltype(C::allowed), bool const>;
  { C::copy(group, source, target, valid, block) } noexcept -> std::same_as<action>;
};

/// A life cycle of requests: states, events and one table. See docs/concepts/lifecycle_policy.md.
template <class L>
concept request_lifecycle = requires(typename L::state s, typename L::event e) {
  { L::table.next(s, e) } noexcept -> std::same_as<std::optional<typename L::state>>;
  { L::state::waiting } -> std::convertible_to<typename L::state>;
  { L::event::start } -> std::convertible_to<typename L::event>;
  { L::event::decode } -> std::convertible_to<typename L::event>;
  { L::event::preempt } -> std::convertible_to<typename L::event>;
  { L::event::finish } -> std::convertible_to<typename L::event>;
  { L::event::cancel } -> std::convertible_to<typename L::event>;
  { L::event::time_out } -> std::convertible_to<typename L::event>;
  { L::event::release } -> std::convertible_to<typename L::event>;
};

/// Does the arithmetic of what a layer group keeps. See docs/concepts/retention_policy.md.
template <class R>
concept retention_policy =
    requires(token_pos query, retention const& keeps, token_count tokens, position_interval present, paging pages) {
      { R::resident(query, keeps, tokens) } -> std::same_as<resident_blocks>;
      { R::earliest_resumable(query, present, keeps) } -> std::same_as<std::optional<token_pos>>;
      { R::peak_blocks(keeps, tokens, pages) } -> std::same_as<block_count>;
    };

} // namespace quire
