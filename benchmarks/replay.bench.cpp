// SPDX-License-Identifier: Apache-2.0

/// \file
/// Replay of a real trace through the whole cache: the conversation trace in whole-block mode (512 tokens a block), LRU,
/// 10 000 blocks. The floor makes the same tokens, compares each block that hits once, and copies and digests each block
/// that does not. Here the ratio is floor / replay: the share of the time that could not be saved.
///
/// The trace is read from the folder in the environment variable QUIRE_SHARED_DATA, or from ../shared/data beside the
/// source; where it is absent the row says so and nothing is measured.

#include "support.hpp"

#include <string>

#if __has_include(<nlohmann/json.hpp>) // reads the trace

#include "replay/engine.hpp"
#include "replay/floor.hpp"
#include "replay/future.hpp"
#include "replay/read_trace.hpp"
#include "replay/run_replay.hpp"
#include "replay/run_result.hpp"
#include "replay/trace.hpp"
#include "replay/whole_blocks.hpp"

#include <quire/prefix/lru_eviction.hpp>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <limits>

namespace {

using namespace quire_bench;

auto conversation(benchmark::State& state) {
  auto const* const folder = std::getenv("QUIRE_SHARED_DATA");
  auto const file = std::string{folder != nullptr ? folder : QUIRE_BENCH_DATA} + "/traces/conversation_trace.jsonl";
  if (!std::filesystem::exists(file)) {
    state.SkipWithError(("skipped: there is no " + file).c_str());
    return;
  }
  auto const trace = replay::whole_blocks(replay::read_trace(file, std::numeric_limits<std::size_t>::max()));
  auto const options =
      replay::run_options{.blocks = 10'000, .block_tokens = replay::trace::tokens_of_id, .whole = true};
  replay::future future{trace, options.block_tokens, options.pool()};
  auto floor = replay::replay_floor::of<quire::lru_eviction>(trace, future, options);
  auto references = 0.0;
  auto const work = [&] {
    replay::engine<quire::lru_eviction> engine{trace, future, options};
    auto const done = replay::run(engine, [](std::size_t) {});
    references = static_cast<double>(done.references);
    state.counters["hit_blocks"] = static_cast<double>(done.hit_blocks);
    return done.seconds * 1e9;
  };
  auto r = alternate(state, 1, work, [&] { return floor.measure() * 1e9; });
  report(state, {r.ns / references, r.floor_ns / references, 1 / r.ratio}, "ratio>=0.65 of the floor's speed");
}

[[maybe_unused]] auto const registered = add("replay/conversation_per_block", 15, conversation);

} // namespace

#endif
