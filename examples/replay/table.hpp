// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The table of a replay, and what its columns mean.

#include "replay/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>

namespace replay {

namespace detail {

/// \p n with thin groups of three: 1 234 567.
[[nodiscard]] inline auto grouped(std::uint64_t n) -> std::string {
  auto digits = std::to_string(n);
  for (auto i = static_cast<int>(digits.size()) - 3; i > 0; i -= 3) { digits.insert(static_cast<std::size_t>(i), " "); }
  return digits;
}
[[nodiscard]] inline auto percent(double share) -> std::string { return fmt::format("{:.2f} %", 100 * share); }

} // namespace detail

/// All runs in one table, with what there is to say about them.
[[nodiscard]] inline auto table_of(report const& all) -> std::string {
  using detail::grouped;
  using detail::percent;
  auto out = fmt::format("{}\n{} requests, {} references to full blocks of {} tokens, {} of them different\n{}\n\n",
                         all.trace_name, grouped(all.requests), grouped(all.references), all.block_tokens,
                         grouped(all.distinct), all.mode);
  if (!all.memory.empty()) { out += all.memory + "\n\n"; }
  constexpr auto line = "{:<8} {:>9}  {:>9} {:>9} {:>10}  {:>8} {:>9} {:>9} {:>9}  {:>8} {:>10} {:>10}\n";
  out += fmt::format(line, "eviction", "blocks", "block hit", "token hit", "of optimum", "peak", "mean", "in use",
                     "mean", "waste", "evictions", "refs/s");
  std::uint32_t blocks = 0;
  for (auto const& run : all.runs) {
    auto const& r = run.result;
    if (blocks != 0 && r.blocks != blocks) { out += '\n'; }
    if (r.blocks != blocks && r.requests > 0) {
      out += fmt::format(line, "(bound)", grouped(r.blocks), percent(ratio(run.bound, r.references)), "", "", "", "",
                         "", "", "", "", "");
    }
    blocks = r.blocks;
    if (r.requests == 0) {
      out += fmt::format("{:<8} {:>9}  every request was refused\n", r.eviction, grouped(r.blocks));
      continue;
    }
    out += fmt::format(line, r.eviction, grouped(r.blocks), percent(r.block_rate()), percent(r.token_rate()),
                       run.bound > 0 ? percent(ratio(r.hit_blocks, run.bound)) : "-", grouped(r.peak_blocks),
                       grouped(rounded(r.mean_blocks)), grouped(r.peak_in_use), grouped(rounded(r.mean_in_use)),
                       percent(r.waste()), grouped(r.evictions), grouped(rounded(r.speed())));
  }
  out += '\n';
  for (auto const& run : all.runs) {
    auto const& r = run.result;
    if (r.refused > 0) {
      out +=
          fmt::format("refused  {} at {} blocks: {} of {} requests; the first is request {}: {}\n", r.eviction,
                      grouped(r.blocks), grouped(r.refused), grouped(r.refused + r.requests), r.refused_at, r.refusal);
    }
    if (r.refused_forks > 0) {
      out += fmt::format("refused  {} at {} blocks: {} of {} forks, for which there was no room\n", r.eviction,
                         grouped(r.blocks), grouped(r.refused_forks), grouped(r.refused_forks + r.forks));
    }
    if (r.waited > 0) {
      out += fmt::format(
          "waited   {} at {} blocks: {} requests, until others had ended; {} ran at the same time at most\n",
          r.eviction, grouped(r.blocks), grouped(r.waited), grouped(r.peak_running));
    }
  }
  out += all.explanation;
  return out;
}

} // namespace replay
