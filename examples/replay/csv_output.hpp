// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A line per run, for spreadsheets.

#include "replay/report.hpp"

#include <fmt/format.h>

#include <string>

namespace replay {

/// All runs as CSV with a header.
[[nodiscard]] inline auto csv_of(report const& all) -> std::string {
  auto out = std::string{
      "eviction,blocks,block_tokens,requests,refused,references,hit_blocks,prompt_tokens,hit_tokens,bound_hit_blocks,"
      "peak_blocks,mean_blocks,peak_in_use,mean_in_use,internal_waste,evictions,seconds\n"};
  for (auto const& run : all.runs) {
    auto const& r = run.result;
    out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{:.2f},{},{:.2f},{:.6f},{},{:.6f}\n", r.eviction, r.blocks,
                       all.block_tokens, r.requests, r.refused, r.references, r.hit_blocks, r.prompt_tokens,
                       r.hit_tokens, run.bound, r.peak_blocks, r.mean_blocks, r.peak_in_use, r.mean_in_use, r.waste(),
                       r.evictions, r.seconds);
  }
  return out;
}

} // namespace replay
