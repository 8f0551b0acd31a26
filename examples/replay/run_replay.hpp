// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// One run: a trace, an eviction policy by name and a size. The only place that knows all policies.

#include "replay/engine.hpp"
#include "replay/future.hpp"
#include "replay/input_error.hpp"
#include "replay/overlap_loop.hpp"
#include "replay/run_result.hpp"
#include "replay/serial_loop.hpp"
#include "replay/trace.hpp"

#include <quire/prefix/fifo_eviction.hpp>
#include <quire/prefix/lfu_eviction.hpp>
#include <quire/prefix/lru_eviction.hpp>
#include <quire/prefix/optimal_eviction.hpp>

#include <array>
#include <chrono>
#include <string>
#include <string_view>

namespace replay {

/// Names of the eviction policies.
inline constexpr std::array<std::string_view, 4> eviction_names{"lru", "fifo", "lfu", "optimal"};

/// Replays what is loaded into \p e and measures the loop alone: neither reading the trace nor making the cache.
template <class Eviction, class Progress>
[[nodiscard]] auto run(engine<Eviction>& e, Progress progress) -> run_result {
  auto const start = std::chrono::steady_clock::now();
  if (e.options().overlap) {
    overlap_loop<Eviction, Progress>{e, progress};
  } else {
    serial_loop(e, progress);
  }
  return e.finish(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

/// Replays \p t under the policy called \p eviction. \throws input_error if there is no such policy
template <class Progress>
[[nodiscard]] auto run_replay(std::string_view eviction, trace const& t, future& f, run_options const& options,
                              Progress progress) -> run_result {
  auto const with = [&]<class Eviction>(std::string_view name) {
    engine<Eviction> e{t, f, options};
    auto result = run(e, progress);
    result.eviction = name;
    return result;
  };
  if (eviction == "lru") { return with.template operator()<quire::lru_eviction>("lru"); }
  if (eviction == "fifo") { return with.template operator()<quire::fifo_eviction>("fifo"); }
  if (eviction == "lfu") { return with.template operator()<quire::lfu_eviction>("lfu"); }
  if (eviction == "optimal") { return with.template operator()<quire::optimal_eviction>("optimal"); }
  throw input_error{"there is no eviction policy \"" + std::string{eviction} +
                    "\"; there are lru, fifo, lfu and optimal"};
}

} // namespace replay
