// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What the loop asks of a cache beyond its handles, each question in one place.

#include <quire/core/expected.hpp>
#include <quire/core/types.hpp>

#include <cstdint>
#include <utility> // std::move

namespace quire::detail {

/// \cond INTERNAL
/// [tokens] that the pool of the groups which keep everything can hold: no request may need more.
template <class Cache>
[[nodiscard]] auto pool_positions(Cache const& cache) -> std::uint64_t {
  return std::uint64_t{cache.figures(group_id{0}).capacity.value()} * cache.block_tokens().value();
}

/// True if \p plan writes nothing for its only position, because the position's bytes lie in a shared block.
template <class Plan>
[[nodiscard]] auto writes_nothing(Plan const& plan) -> bool {
  return plan.results()[0].skipped == token_count{1};
}

/// Commits \p plan with a ticket behind everything that its step has enqueued. Logits may be read when `forward` returns,
/// but work may be in flight behind that: blocks and batch buffers wait for the ticket, unless the fence is immediate.
template <class Cache>
[[nodiscard]] auto commit_behind(Cache& cache, typename Cache::step_plan&& plan) -> expected<void> {
  return cache.commit(std::move(plan), cache.fence().issue(timeline_id{0}));
}
/// \endcond

} // namespace quire::detail
