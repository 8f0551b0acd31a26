// SPDX-License-Identifier: Apache-2.0

/// \file
/// Replays real traces in whole-block mode against hit counts of independent simulators, at every size they list. The
/// folder of the traces is in the environment (QUIRE_TRACES); without it the tests say so and pass.

#include "support/catch_compat.hpp"

#if __has_include(<nlohmann/json.hpp>)

#include "replay/engine.hpp"
#include "replay/future.hpp"
#include "replay/offline_bound.hpp"
#include "replay/read_trace.hpp"
#include "replay/run_result.hpp"
#include "replay/serial_loop.hpp"
#include "replay/whole_blocks.hpp"

#include <quire/prefix/fifo_eviction.hpp>
#include <quire/prefix/lfu_eviction.hpp>
#include <quire/prefix/lru_eviction.hpp>
#include <quire/prefix/optimal_eviction.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

namespace {

auto folder() -> std::optional<std::filesystem::path> {
  auto const* const named = std::getenv("QUIRE_TRACES");
  auto const path = std::filesystem::path{named != nullptr ? named : "../shared/data/traces"};
  if (std::filesystem::exists(path / "conversation_trace.jsonl")) { return path; }
  WARN("skipped: there are no traces in " << path.string());
  return std::nullopt;
}
auto json_in(std::filesystem::path const& file) -> nlohmann::json {
  auto in = std::ifstream{file};
  REQUIRE(in);
  return nlohmann::json::parse(in);
}

template <class Eviction>
auto run(replay::trace const& t, replay::future& f, replay::run_options const& options) -> replay::run_result {
  replay::engine<Eviction> e{t, f, options};
  replay::serial_loop(e, [](std::size_t) {});
  return e.finish(0);
}

/// Calls \p check(trace, future, options, size as a key) for every size listed for trace \p name.
template <class Check>
auto at_every_size(std::filesystem::path const& traces, std::string const& name, Check check) -> void {
  auto const t = replay::whole_blocks(
      replay::read_trace((traces / (name + "_trace.jsonl")).string(), std::numeric_limits<std::size_t>::max()));
  auto const counts = json_in(traces / (name + "_hitrates.json"));
  auto f = replay::future{t, 512, std::numeric_limits<std::uint64_t>::max()};
  CHECK(f.references() == counts["stats"]["block_refs"].get<std::uint64_t>());
  CHECK(f.distinct() == counts["stats"]["trie_nodes"].get<std::uint64_t>());
  REQUIRE(counts["prefix"].size() >= 8);
  for (auto const& [size, row] : counts["prefix"].items()) {
    INFO(name << " at " << size << " blocks");
    auto const options =
        replay::run_options{.blocks = static_cast<std::uint32_t>(std::stoul(size)), .block_tokens = 512, .whole = true};
    check(t, f, options, size, row);
  }
}

/// Compares a policy with the column \p column of the prefix rows.
template <class Eviction>
auto compare(std::string const& name, char const* column) -> void {
  auto const traces = folder();
  if (!traces) { return; }
  at_every_size(*traces, name, [&](auto const& t, auto& f, auto const& options, auto const&, auto const& row) {
    auto const done = run<Eviction>(t, f, options);
    CHECK(done.hit_blocks == row[column]["hit_blocks"].template get<std::uint64_t>());
    CHECK(done.hit_tokens == 512 * done.hit_blocks);
    CHECK(done.references == row[column]["blocks"].template get<std::uint64_t>());
    CHECK(done.refused == 0);
    CHECK(done.peak_blocks <= options.blocks);
    CHECK(done.published - done.evictions <= options.blocks);
  });
}

/// The demand optimum, and the bound, which may bypass.
auto compare_optimum(std::string const& name) -> void {
  auto const traces = folder();
  if (!traces) { return; }
  auto const counts = json_in(*traces / "opt_demand_leaf.json");
  at_every_size(*traces, name, [&](auto const& t, auto& f, auto const& options, auto const& size, auto const& row) {
    CHECK(replay::offline_bound(f, t, options.blocks) == row["opt_leaf"]["hit_blocks"].template get<std::uint64_t>());
    auto const done = run<quire::optimal_eviction>(t, f, options);
    CHECK(done.hit_blocks == counts[name][size].template get<std::uint64_t>());
  });
}

/// Own definition (see fifo_eviction.hpp), so there is no independent count: it stays below the bound, and exact bookkeeping holds.
auto check_fifo(std::string const& name) -> void {
  auto const traces = folder();
  if (!traces) { return; }
  at_every_size(*traces, name, [&](auto const& t, auto& f, auto const& options, auto const& size, auto const& row) {
    if (size != "1000" && size != "10000") { return; }
    auto const done = run<quire::fifo_eviction>(t, f, options);
    CHECK(done.hit_blocks <= row["opt_leaf"]["hit_blocks"].template get<std::uint64_t>());
    CHECK(done.hit_tokens == 512 * done.hit_blocks);
    CHECK(done.published == done.references - done.hit_blocks);
    CHECK(done.published - done.evictions <= options.blocks);
  });
}

} // namespace

TEST_CASE("replay: LRU is exact on the conversation trace") {
  compare<quire::lru_eviction>("conversation", "lru_tail");
}
TEST_CASE("replay: LFU is exact on the conversation trace") {
  compare<quire::lfu_eviction>("conversation", "lfu_leaf");
}
TEST_CASE("replay: the optimum is exact on the conversation trace") { compare_optimum("conversation"); }
TEST_CASE("replay: FIFO is consistent on the conversation trace") { check_fifo("conversation"); }
TEST_CASE("replay: LRU is exact on the synthetic trace") { compare<quire::lru_eviction>("synthetic", "lru_tail"); }
TEST_CASE("replay: LFU is exact on the synthetic trace") { compare<quire::lfu_eviction>("synthetic", "lfu_leaf"); }
TEST_CASE("replay: the optimum is exact on the synthetic trace") { compare_optimum("synthetic"); }
TEST_CASE("replay: FIFO is consistent on the synthetic trace") { check_fifo("synthetic"); }

#else

TEST_CASE("replay: exactness") { WARN("skipped: there is no nlohmann-json"); }

#endif
