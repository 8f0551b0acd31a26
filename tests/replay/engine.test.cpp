// SPDX-License-Identifier: Apache-2.0

/// \file
/// The normal mode: partial last blocks, outputs that are appended and published, forks, refusals, overlapping requests.

#include "support/catch_compat.hpp"

#include "replay/engine.hpp"
#include "replay/future.hpp"
#include "replay/offline_bound.hpp"
#include "replay/overlap_loop.hpp"
#include "replay/run_replay.hpp"
#include "replay/serial_loop.hpp"
#include "replay/tokens.hpp"
#include "replay/trace.hpp"
#include "replay/workload.hpp"

#include <quire/prefix/fifo_eviction.hpp>
#include <quire/prefix/lfu_eviction.hpp>
#include <quire/prefix/lru_eviction.hpp>
#include <quire/prefix/optimal_eviction.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator> // std::prev
#include <limits>
#include <list>
#include <map>
#include <span>
#include <utility> // std::pair
#include <vector>

namespace {

constexpr auto unlimited = std::numeric_limits<std::uint64_t>::max();

/// Adds a request for \p prompt.
auto add(replay::trace& t, std::vector<replay::segment> const& prompt, std::uint32_t output, double arrival = 0,
         std::uint32_t branches = 1) -> void {
  auto r = replay::request{.arrival = arrival,
                           .first_segment = t.segments.size(),
                           .segments = static_cast<std::uint32_t>(prompt.size()),
                           .output = output,
                           .branches = branches,
                           .number = t.requests.size()};
  for (auto const& s : prompt) { r.prompt += s.tokens; }
  t.segments.insert(t.segments.end(), prompt.begin(), prompt.end());
  t.requests.push_back(r);
}

/// Replays and proves that everything was given back.
template <class Eviction>
auto run_checked(replay::trace const& t, replay::run_options const& options) -> replay::run_result {
  auto f = replay::future{t, options.block_tokens, options.pool()};
  replay::engine<Eviction> e{t, f, options};
  auto result = replay::run(e, [](std::size_t) {});
  auto const audit = e.cache().audit();
  INFO((audit ? "" : audit.error()));
  REQUIRE(audit.has_value());
  REQUIRE(e.cache().live_sequences() == quire::sequence_count{0});
  auto const left = e.cache().figures(quire::group_id{0});
  REQUIRE(left.promised == quire::block_count{0});
  REQUIRE(left.available == left.capacity);
  REQUIRE(e.cache().statistics().partitioned());
  REQUIRE(result.requests + result.refused == t.requests.size());
  REQUIRE(result.peak_blocks <= options.blocks);
  REQUIRE(result.evictions + left.published.value() == result.published);
  return result;
}

auto equal_figures(replay::run_result a, replay::run_result b) -> bool {
  return a.hit_blocks == b.hit_blocks && a.hit_tokens == b.hit_tokens && a.evictions == b.evictions &&
         a.peak_blocks == b.peak_blocks && a.mean_blocks == b.mean_blocks && a.published == b.published &&
         a.waited == b.waited && a.peak_running == b.peak_running;
}

/// LRU over prefixes, block by block, with nothing but standard containers: hits of a serial replay without forks.
auto naive_lru(replay::trace const& t, std::uint32_t block_tokens, std::size_t blocks) -> std::uint64_t {
  std::map<std::pair<int, std::vector<quire::token_id>>, int>
      names;            // of a prefix: the name of what is before it, its last block
  std::list<int> order; // first = next victim
  std::map<int, std::list<int>::iterator> resident;
  std::uint64_t hits = 0;
  for (auto const& r : t.requests) {
    if (replay::budget_of(r, block_tokens) > blocks) { continue; } // refused
    auto tokens = std::vector<quire::token_id>(r.prompt + r.output);
    replay::write_prompt(t, r, tokens);
    replay::write_tokens(replay::answer_text(r.number, 0), 0, std::span{tokens}.subspan(r.prompt));
    auto path = std::vector<int>{};
    for (std::size_t at = 0; at + block_tokens <= tokens.size(); at += block_tokens) {
      auto const block = std::span{tokens}.subspan(at, block_tokens);
      auto const key =
          std::pair{path.empty() ? -1 : path.back(), std::vector<quire::token_id>(block.begin(), block.end())};
      path.push_back(names.emplace(key, static_cast<int>(names.size())).first->second);
    }
    std::size_t hit = 0;
    while (hit < r.prompt / block_tokens && resident.contains(path[hit])) { ++hit; }
    hits += hit;
    for (std::size_t n = 0; n < hit; ++n) { // in use: not in the order
      order.erase(resident[path[n]]);
      resident.erase(path[n]);
    }
    auto const needed = (tokens.size() + block_tokens - 1) / block_tokens;
    while (resident.size() + needed > blocks) {
      resident.erase(order.front());
      order.pop_front();
    }
    for (auto n = path.size(); n-- > 0;) { // released deepest first
      order.push_back(path[n]);
      resident[path[n]] = std::prev(order.end());
    }
  }
  return hits;
}

} // namespace

TEST_CASE("replay: partial blocks are not found, a whole prompt is found up to its last position") {
  auto t = replay::trace{};
  auto const text = replay::own_text(0);
  add(t, {{text, 40}}, 0); // 2 full blocks of 16 and 8 tokens
  add(t, {{text, 40}}, 0); // finds 32
  add(t, {{text, 32}}, 0); // finds both blocks, but computes position 31 again
  add(t, {{text, 31}}, 0); // finds 16
  add(t, {{replay::own_text(1), 7}}, 0);
  auto const run = run_checked<quire::lru_eviction>(t, {.blocks = 100, .block_tokens = 16});
  CHECK(run.references == 2 + 2 + 2 + 1 + 0);
  CHECK(run.hit_blocks == 0 + 2 + 2 + 1 + 0);
  CHECK(run.hit_tokens == 0 + 32 + 31 + 16 + 0);
  CHECK(run.prompt_tokens == 150);
  CHECK(run.output_tokens == 0);
  CHECK(run.published == 2);
  CHECK(run.slots == (3 + 3 + 2 + 2 + 1) * 16);
  CHECK(run.filled == 150);
}

TEST_CASE("replay: outputs are appended and found by the next turn") {
  auto t = replay::trace{};
  auto const text = replay::own_text(0);
  add(t, {{text, 20}}, 30);                                                            // 50 tokens: 3 full blocks
  add(t, {{text, 20}, {replay::answer_text(0, 0), 30}, {replay::own_text(1), 10}}, 5); // finds 48
  add(t, {{text, 20}, {replay::answer_text(1, 0), 30}}, 5);                            // another answer: finds 16
  auto const run = run_checked<quire::lru_eviction>(t, {.blocks = 100, .block_tokens = 16});
  CHECK(run.hit_blocks == 3 + 1);
  CHECK(run.hit_tokens == 48 + 16);
  CHECK(run.output_tokens == 40);
  CHECK(run.published == 3 + 1 + 2); // 50 tokens; 65 tokens of which 48 were there; 55 tokens of which 16 were
}

TEST_CASE("replay: branches share their prompt, and the next turn finds the one it goes on with") {
  for (auto const overlap : {false, true}) {
    auto t = replay::trace{};
    auto const text = replay::own_text(0);
    add(t, {{text, 36}}, 20, 0, 3);
    add(t, {{text, 36}, {replay::answer_text(0, 2), 20}, {replay::own_text(1), 9}}, 4, 1000);
    auto const run = run_checked<quire::lru_eviction>(t, {.blocks = 100, .block_tokens = 16, .overlap = overlap});
    CHECK(run.forks == 2);
    CHECK(run.refused_forks == 0);
    CHECK(run.copies == 2); // of the partial block, by all but its last writer
    CHECK(run.hit_blocks == 3);
    CHECK(run.published == 2 + 3 + 1); // prompt; block 2 of each branch; block 3 of the next turn
    auto const tight = run_checked<quire::lru_eviction>(t, {.blocks = 5, .block_tokens = 16, .overlap = overlap});
    CHECK(tight.refused == 0);
    CHECK(tight.forks + tight.refused_forks == 2);
    CHECK(tight.refused_forks > 0);
  }
}

TEST_CASE("replay: a request larger than the pool is refused with figures and changes nothing") {
  for (auto const overlap : {false, true}) {
    auto t = replay::trace{};
    add(t, {{replay::own_text(0), 40}}, 8);
    add(t, {{replay::own_text(1), 80}}, 8);  // 6 blocks
    add(t, {{replay::own_text(2), 16}}, 70); // 6 blocks
    add(t, {{replay::own_text(0), 40}}, 8);
    auto const run = run_checked<quire::lru_eviction>(t, {.blocks = 5, .block_tokens = 16, .overlap = overlap});
    CHECK(run.requests == 2);
    CHECK(run.refused == 2);
    CHECK(run.refused_at == 2);
    CHECK_THAT(run.refusal, quire_test::ContainsSubstring("needs 6 blocks"));
    CHECK_THAT(run.refusal, quire_test::ContainsSubstring("the pool has 5"));
    CHECK(run.references == 4);
    CHECK(run.prompt_tokens == 80);
  }
}

TEST_CASE("replay: a pool of 0 blocks is refused") {
  auto t = replay::trace{};
  add(t, {{replay::own_text(0), 40}}, 8);
  auto f = replay::future{t, 16, 0};
  CHECK_THROWS_AS((replay::engine<quire::lru_eviction>{t, f, {.blocks = 0, .block_tokens = 16}}), quire::config_error);
}

TEST_CASE("replay: a serial replay equals a naive per-block LRU") {
  auto t = replay::make_workload(3, 12);
  for (auto& r : t.requests) { r.branches = 1; }
  auto const block_tokens = GENERATE(16U, 50U, 128U);
  auto const f = replay::future{t, block_tokens, unlimited};
  for (auto const share : {3U, 6U, 15U}) {
    auto const blocks = static_cast<std::uint32_t>(f.distinct() / share);
    INFO(block_tokens << " tokens, " << blocks << " blocks");
    auto const run = run_checked<quire::lru_eviction>(t, {.blocks = blocks, .block_tokens = block_tokens});
    CHECK(run.hit_blocks == naive_lru(t, block_tokens, blocks));
  }
}

TEMPLATE_TEST_CASE("replay: every policy keeps the books, and a replay always does the same", "", quire::lru_eviction,
                   quire::fifo_eviction, quire::lfu_eviction, quire::optimal_eviction) {
  auto const t = replay::make_workload(5, 40);
  auto const f = replay::future{t, 16, unlimited};
  for (auto const overlap : {false, true}) {
    for (auto const share : {1U, 10U, 40U}) {
      auto const options = replay::run_options{
          .blocks = static_cast<std::uint32_t>(f.distinct() / share + 1), .block_tokens = 16, .overlap = overlap};
      INFO("overlap " << overlap << ", " << options.blocks << " blocks");
      auto const once = run_checked<TestType>(t, options);
      auto const again = run_checked<TestType>(t, options);
      CHECK(equal_figures(once, again));
      CHECK(once.hit_tokens <= once.prompt_tokens);
      if (!overlap) {
        CHECK(once.hit_blocks <= replay::offline_bound(replay::future{t, 16, options.pool()}, t, options.blocks));
      }
      if (share == 1) {
        CHECK(once.refused == 0);
        CHECK(once.refused_forks == 0);
        if (!overlap) { CHECK(once.evictions == 0); }
      }
    }
  }
}

TEST_CASE("replay: overlapping requests hold blocks at the same time and wait in order") {
  auto t = replay::trace{};
  for (std::uint32_t i = 0; i < 4; ++i) { add(t, {{replay::own_text(i), 60}}, 40); } // 7 blocks each
  auto const roomy = run_checked<quire::lru_eviction>(t, {.blocks = 28, .block_tokens = 16, .overlap = true});
  CHECK(roomy.peak_running == 4);
  CHECK(roomy.waited == 0);
  CHECK(roomy.peak_in_use == 28);
  auto const tight = run_checked<quire::lru_eviction>(t, {.blocks = 15, .block_tokens = 16, .overlap = true});
  CHECK(tight.peak_running == 2);
  CHECK(tight.waited == 2);
  CHECK(tight.peak_in_use <= 15);
  auto const serial = run_checked<quire::lru_eviction>(t, {.blocks = 15, .block_tokens = 16});
  CHECK(serial.peak_running == 1);
  CHECK(serial.peak_in_use == 7);
}
