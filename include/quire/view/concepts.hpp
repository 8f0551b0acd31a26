// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The roles that a backend fills: who performs actions, and who waits for a ticket.

#include <quire/core/expected.hpp>
#include <quire/core/types.hpp>
#include <quire/view/action.hpp>

#include <concepts>
#include <span>

namespace quire {

/// Performs the actions of a launched plan on the bytes of the cache, in order. The rules that no compiler sees stand in
/// `docs/concepts/executor.md`.
template <class E>
concept executor = requires(E& e, std::span<action const> actions) {
  { e.run(actions) } -> std::same_as<expected<void>>;
};

/// Returns when a timeline has reached a ticket.
template <class W>
concept ticket_waiter = requires(W& w, timeline_id timeline, ticket until) {
  { w(timeline, until) } -> std::same_as<void>;
};

} // namespace quire
