// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// One request at a time, in the order of the trace.

#include "replay/engine.hpp"
#include "replay/tokens.hpp"
#include "replay/trace.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility> // std::move
#include <vector>

namespace replay {

/// Replays everything. \param progress is called with the number of requests that are done.
template <class Eviction, class Progress>
auto serial_loop(engine<Eviction>& e, Progress progress) -> void {
  using sequence = typename engine<Eviction>::sequence;
  using step_item = typename engine<Eviction>::step_item;
  auto const& requests = e.input().requests;
  std::vector<sequence> branches;
  std::vector<std::uint32_t> branch_of; // of an entry of `branches`
  std::vector<step_item> items;
  std::vector<quire::token_id> outputs;

  for (std::size_t i = 0; i < requests.size(); ++i) {
    if ((i & 63U) == 0) { progress(i); }
    auto const& r = requests[i];
    auto admitted = e.admit(i);
    if (!admitted) { continue; } // it was counted as refused: alone in the pool, whatever fits is let in
    e.prefill(*admitted);

    if (r.output == 0) {
      e.sample(1);
      e.release(std::move(*admitted), i, 0, i + 1);
      continue;
    }
    branches.clear();
    branch_of.assign(1, 0);
    branches.push_back(std::move(*admitted));
    for (std::uint32_t b = 1; b < r.branches; ++b) {
      if (auto child = e.fork(branches.front())) {
        branches.push_back(std::move(*child));
        branch_of.push_back(b);
      }
    }
    outputs.resize(std::size_t{r.output} * branches.size());
    items.clear();
    for (std::size_t k = 0; k < branches.size(); ++k) {
      auto const own = std::span{outputs}.subspan(k * r.output, r.output);
      write_tokens(answer_text(r.number, branch_of[k]), 0, own);
      items.emplace_back(branches[k], own);
    }
    e.step(items);
    e.sample(1);
    for (std::size_t k = 0; k < branches.size(); ++k) { e.release(std::move(branches[k]), i, branch_of[k], i + 1); }
  }
  e.result().peak_running = e.result().requests > 0 ? 1 : 0;
}

} // namespace replay
