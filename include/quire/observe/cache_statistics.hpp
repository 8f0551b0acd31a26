// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What a cache did, in numbers that add up.
///
///     prompt positions covered by commits, each in exactly one box:
///     first time   ├── hit_tokens ──┼── loaded_tokens ──┼── computed_tokens ──┤ = prompt_tokens
///     after a
///     preemption   ├──────── self_hit_tokens ───────────┼── recomputed_tokens ┤ = resumed_tokens
///
/// Both sums hold after every commit, not only at the end: a position is counted by the commit that covers it, so a
/// request that is retried before its admission counts once (case 132), a request that is cancelled half-way counts what
/// it covered, the recomputed last position of a full hit is computed and not hit (case 24), and what a preempted request
/// finds of its own work is no success of the cache (case 131).

#include <cstdint>

namespace quire {

/// Counters since the cache was made. Counts of events, never of time; they do not mix computed and measured figures
/// (S42). Plain data: copy it to take a reading, subtract two readings for an interval.
struct cache_statistics {
  /// Admissions, resumed ones included.
  std::uint64_t admissions = 0;
  /// Refusals of admissions and step items.
  std::uint64_t refusals = 0;
  /// Releases, preemptions not included.
  std::uint64_t releases = 0;
  /// Preemptions.
  std::uint64_t preemptions = 0;
  /// Requests that committed their first step.
  std::uint64_t requests = 0;
  /// Requests that committed their first step after a preemption; each preemption counts.
  std::uint64_t resumed_requests = 0;
  /// [tokens] of prompts covered, resumed admissions not included.
  std::uint64_t prompt_tokens = 0;
  /// [tokens] thereof attached from the cache.
  std::uint64_t hit_tokens = 0;
  /// [tokens] thereof brought by a tier.
  std::uint64_t loaded_tokens = 0;
  /// [tokens] thereof computed.
  std::uint64_t computed_tokens = 0;
  /// [tokens] covered again after a preemption.
  std::uint64_t resumed_tokens = 0;
  /// [tokens] thereof found: attached, or brought by a tier.
  std::uint64_t self_hit_tokens = 0;
  /// [tokens] thereof computed again.
  std::uint64_t recomputed_tokens = 0;
  /// [tokens] computed behind the prompt.
  std::uint64_t output_tokens = 0;
  /// [blocks of a unit] that became matchable.
  std::uint64_t published_blocks = 0;
  /// [blocks of a unit] that existed already when they would have been published.
  std::uint64_t duplicate_blocks = 0;
  /// [blocks] evicted.
  std::uint64_t evicted_blocks = 0;
  /// [blocks] copied on write.
  std::uint64_t copied_blocks = 0;
  /// Look-ups that met the hash of other content. Each was a miss, or found its own entry beside it (case 2); many of them
  /// tell that somebody feeds prompts which were made to collide. The index counts them, no event tells of them.
  std::uint64_t hash_collisions = 0;

  /// [tokens] that a tier was asked for at most: what the cache itself did not have (case 133).
  /// \pre `partitioned()`
  [[nodiscard]] constexpr auto tier_queries() const noexcept -> std::uint64_t { return prompt_tokens - hit_tokens; }
  /// True if both sums above hold; false is a bug in whoever fed the counters.
  [[nodiscard]] constexpr auto partitioned() const noexcept -> bool {
    return hit_tokens + loaded_tokens + computed_tokens == prompt_tokens &&
           self_hit_tokens + recomputed_tokens == resumed_tokens;
  }
  /// Adds another reading, of another cache or interval, counter by counter.
  constexpr auto operator+=(cache_statistics const& other) noexcept -> cache_statistics& {
    for (auto const counter : counters) { this->*counter += other.*counter; }
    return *this;
  }
  /// Takes away an earlier reading of the same cache. \pre no counter of \p earlier is greater
  constexpr auto operator-=(cache_statistics const& earlier) noexcept -> cache_statistics& {
    for (auto const counter : counters) { this->*counter -= earlier.*counter; }
    return *this;
  }
  /// Sum of two readings.
  [[nodiscard]] friend constexpr auto operator+(cache_statistics a, cache_statistics const& b) noexcept
      -> cache_statistics {
    return a += b;
  }
  /// What happened between two readings. \pre \p b is the earlier one
  [[nodiscard]] friend constexpr auto operator-(cache_statistics a, cache_statistics const& b) noexcept
      -> cache_statistics {
    return a -= b;
  }
  /// True if every counter agrees.
  friend constexpr auto operator==(cache_statistics const&, cache_statistics const&) noexcept -> bool = default;

private:
  static constexpr std::uint64_t cache_statistics::* const counters[] = {
      &cache_statistics::admissions,        &cache_statistics::refusals,       &cache_statistics::releases,
      &cache_statistics::preemptions,       &cache_statistics::requests,       &cache_statistics::resumed_requests,
      &cache_statistics::prompt_tokens,     &cache_statistics::hit_tokens,     &cache_statistics::loaded_tokens,
      &cache_statistics::computed_tokens,   &cache_statistics::resumed_tokens, &cache_statistics::self_hit_tokens,
      &cache_statistics::recomputed_tokens, &cache_statistics::output_tokens,  &cache_statistics::published_blocks,
      &cache_statistics::duplicate_blocks,  &cache_statistics::evicted_blocks, &cache_statistics::copied_blocks,
      &cache_statistics::hash_collisions};
};

} // namespace quire
