// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// How a trace is replayed, and what came of it.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace replay {

/// What one run is to do.
struct run_options {
  std::uint32_t blocks = 0;       ///< N. With `whole` the pool has one more.
  std::uint32_t block_tokens = 0; ///< [tokens] per block.
  bool whole = false;             ///< The trace was made by `whole_blocks`.
  bool overlap = false;           ///< Requests run at the same time, by their time of arrival.
  double prefill_rate = 10'000;   ///< [tokens/s] of one request, with `overlap`.
  double decode_rate = 40;        ///< [tokens/s] of one request, with `overlap`.

  /// [blocks] of the pool.
  [[nodiscard]] auto pool() const noexcept -> std::uint32_t { return blocks + (whole ? 1U : 0U); }
};

/// What one run counted.
struct run_result {
  std::string_view eviction;       ///< Name of the policy.
  std::uint32_t blocks = 0;        ///< N.
  std::size_t requests = 0;        ///< Served.
  std::size_t refused = 0;         ///< Never fit the pool.
  std::size_t refused_at = 0;      ///< The first of them, by its number in the trace from 1.
  std::string refusal;             ///< What the cache said to it.
  std::size_t forks = 0;           ///< Branches that shared their prompt by a fork.
  std::size_t refused_forks = 0;   ///< Branches for which there was no room.
  std::size_t waited = 0;          ///< Requests that were let in later than they came, with `overlap`.
  std::size_t peak_running = 0;    ///< Requests at the same time.
  std::uint64_t references = 0;    ///< [blocks] full ones of the prompts of served requests.
  std::uint64_t hit_blocks = 0;    ///< [blocks] thereof found in the cache.
  std::uint64_t prompt_tokens = 0; ///< [tokens] of these prompts.
  std::uint64_t hit_tokens = 0;    ///< [tokens] thereof that needed no compute.
  std::uint64_t output_tokens = 0; ///< [tokens] appended behind them.
  std::uint64_t published = 0;     ///< [blocks] that became matchable.
  std::uint64_t evictions = 0;     ///< [blocks] evicted.
  std::uint64_t copies = 0;        ///< [blocks] copied on write.
  std::uint32_t peak_blocks = 0;   ///< [blocks] with content at most, cached or in use.
  double mean_blocks = 0;          ///< [blocks] on average.
  std::uint32_t peak_in_use = 0;   ///< [blocks] that requests held at most.
  double mean_in_use = 0;          ///< [blocks] on average.
  std::uint64_t slots = 0;         ///< [tokens] that the blocks of all requests could hold when they ended.
  std::uint64_t filled = 0;        ///< [tokens] thereof that they did hold.
  double seconds = 0;              ///< [s] of the replay loop.

  /// Share of the references that hit.
  [[nodiscard]] auto block_rate() const noexcept -> double { return ratio(hit_blocks, references); }
  /// Share of the prompt tokens that hit.
  [[nodiscard]] auto token_rate() const noexcept -> double { return ratio(hit_tokens, prompt_tokens); }
  /// Share of the slots in blocks of requests that stayed empty.
  [[nodiscard]] auto waste() const noexcept -> double { return ratio(slots - filled, slots); }
  /// References per second of the replay loop.
  [[nodiscard]] auto speed() const noexcept -> double {
    return seconds > 0 ? static_cast<double>(references) / seconds : 0;
  }

private:
  [[nodiscard]] static auto ratio(std::uint64_t part, std::uint64_t whole) noexcept -> double {
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
  }
};

} // namespace replay
