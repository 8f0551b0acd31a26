// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The roles that an engine fills for a generation: a model, a clock, and somebody who guesses ahead. The rules that no
/// compiler sees stand in `docs/concepts/language_model.md` and `docs/concepts/clock.md`.

#include <quire/core/expected.hpp>
#include <quire/core/types.hpp>
#include <quire/generate/forward_batch.hpp>
#include <quire/generate/types.hpp>
#include <quire/view/concepts.hpp>

#include <concepts>
#include <cstddef>
#include <span>

namespace quire {

/// Tells the time. The library never looks at a clock by itself: whoever wants times brings one.
template <class C>
concept clock = std::movable<C> && requires(C const& c) {
  { c.now() } noexcept -> std::same_as<instant>;
};

/// Runs a network over the positions of a step: writes K and V at the slots of the view, attends over its tables, and
/// gives the logits that were asked for. It performs the actions of a plan on the same bytes.
template <class M>
concept language_model = executor<M> && requires(M& m, M const& c, forward_batch const& batch) {
  { c.vocabulary() } noexcept -> std::same_as<std::size_t>;
  { c.max_positions() } noexcept -> std::same_as<token_count>;
  { m.forward(batch) } -> std::same_as<expected<void>>;
};

/// Guesses the tokens that come next, for speculation (B6). A wrong guess costs time and nothing else.
template <class D>
concept drafter = std::movable<D> && requires(D& d, std::span<token_id const> text, std::span<token_id> guesses) {
  { d.propose(text, guesses) } -> std::same_as<std::size_t>;
};

} // namespace quire
