// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// `{"trace": …, "runs": [{"eviction": "lru", "blocks": 1000, "references": …, …}, …]}`

#include "replay/report.hpp"

#include <nlohmann/json.hpp>

#include <string>

namespace replay {

/// All runs as JSON.
[[nodiscard]] inline auto json_of(report const& all) -> std::string {
  using json = nlohmann::ordered_json;
  auto runs = json::array();
  for (auto const& run : all.runs) {
    auto const& r = run.result;
    auto entry = json{{"eviction", r.eviction},
                      {"blocks", r.blocks},
                      {"references", r.references},
                      {"hit_blocks", r.hit_blocks},
                      {"hit_tokens", r.hit_tokens},
                      {"evictions", r.evictions},
                      {"peak_blocks", r.peak_blocks},
                      {"seconds", r.seconds},
                      {"block_tokens", all.block_tokens},
                      {"requests", r.requests},
                      {"refused", r.refused},
                      {"prompt_tokens", r.prompt_tokens},
                      {"output_tokens", r.output_tokens},
                      {"block_hit_rate", r.block_rate()},
                      {"token_hit_rate", r.token_rate()},
                      {"bound_hit_blocks", run.bound},
                      {"mean_blocks", r.mean_blocks},
                      {"peak_in_use", r.peak_in_use},
                      {"mean_in_use", r.mean_in_use},
                      {"internal_waste", r.waste()},
                      {"published_blocks", r.published},
                      {"copied_blocks", r.copies},
                      {"forks", r.forks},
                      {"refused_forks", r.refused_forks},
                      {"waited", r.waited},
                      {"peak_running", r.peak_running},
                      {"references_per_second", r.speed()}};
    if (run.floor_seconds > 0) { entry["floor_seconds"] = run.floor_seconds; }
    if (r.refused > 0) { entry["refusal"] = r.refusal; }
    runs.push_back(std::move(entry));
  }
  return json{{"trace", all.trace_name}, {"runs", std::move(runs)}}.dump(1) + "\n";
}

} // namespace replay
