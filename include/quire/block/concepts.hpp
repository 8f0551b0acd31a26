// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The policies of the block room: which free block is handed out, when in-flight work is over, which
/// life cycle blocks have. Semantics that no compiler sees: docs/concepts.

#include <quire/core/types.hpp>

#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <type_traits>

namespace quire {

/// Decides which free block is handed out next. See docs/concepts/allocation_policy.md.
template <class P>
concept allocation_policy = std::constructible_from<P, block_count> && std::movable<P> &&
                            requires(P p, P const& c, block_id b, std::span<block_id> out) {
                              { p.take() } noexcept -> std::same_as<block_id>;
                              { p.take(out) } noexcept -> std::same_as<block_count>;
                              { p.give(b) } noexcept -> std::same_as<void>;
                              { c.available() } noexcept -> std::same_as<block_count>;
                            };

/// Tells when device work that was enqueued before a ticket has ended. See docs/concepts/fence_policy.md.
template <class F>
concept fence_policy = std::default_initializable<F> && requires(F f, F const& c, timeline_id t, ticket k) {
  { F::timelines } -> std::convertible_to<std::size_t>;
  { f.issue(t) } noexcept -> std::same_as<ticket>;
  { c.issued(t) } noexcept -> std::same_as<ticket>;
  { c.reached(t, k) } noexcept -> std::same_as<bool>;
};

/// A life cycle of blocks: states, events and one table, with every name that a pool and a cache use. See
/// docs/concepts/lifecycle_policy.md.
template <class L>
concept block_lifecycle = requires(typename L::state s, typename L::event e) {
  { L::table.next(s, e) } noexcept -> std::same_as<std::optional<typename L::state>>;
  { L::table.allows(s, e) } noexcept -> std::same_as<bool>;
  requires std::same_as<std::remove_cvref_t<decltype(L::state::free)>, typename L::state>;
  requires std::same_as<std::remove_cvref_t<decltype(L::state::writing)>, typename L::state>;
  requires std::same_as<std::remove_cvref_t<decltype(L::state::private_)>, typename L::state>;
  requires std::same_as<std::remove_cvref_t<decltype(L::state::published)>, typename L::state>;
  requires std::same_as<std::remove_cvref_t<decltype(L::state::retiring)>, typename L::state>;
  requires std::same_as<std::remove_cvref_t<decltype(L::state::count_)>, typename L::state>;
  requires std::same_as<std::remove_cvref_t<decltype(L::event::allocate)>, typename L::event>;
  requires std::same_as<std::remove_cvref_t<decltype(L::event::commit)>, typename L::event>;
  requires std::same_as<std::remove_cvref_t<decltype(L::event::publish)>, typename L::event>;
  requires std::same_as<std::remove_cvref_t<decltype(L::event::unpublish)>, typename L::event>;
  requires std::same_as<std::remove_cvref_t<decltype(L::event::evict)>, typename L::event>;
  requires std::same_as<std::remove_cvref_t<decltype(L::event::retire)>, typename L::event>;
  requires std::same_as<std::remove_cvref_t<decltype(L::event::reclaim)>, typename L::event>;
};

} // namespace quire
