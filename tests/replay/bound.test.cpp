// SPDX-License-Identifier: Apache-2.0
#include "support/catch_compat.hpp"

#include "replay/engine.hpp"
#include "replay/future.hpp"
#include "replay/offline_bound.hpp"
#include "replay/serial_loop.hpp"
#include "replay/trace.hpp"
#include "replay/whole_blocks.hpp"
#include "replay/workload.hpp" // detail::dice

#include <quire/prefix/optimal_eviction.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace {

/// Prompts of whole ids, each id a path of its own: id = 3 · id of the parent + branch.
auto trace_of(std::vector<std::vector<std::uint64_t>> const& prompts) -> replay::trace {
  auto t = replay::trace{.name = "small", .has_ids = true};
  for (auto const& ids : prompts) {
    auto r = replay::request{.first_segment = t.segments.size(),
                             .segments = static_cast<std::uint32_t>(ids.size()),
                             .number = t.requests.size()};
    r.prompt = 512 * r.segments;
    for (auto const id : ids) { t.segments.push_back({replay::hashed_text(id), 512}); }
    t.requests.push_back(r);
  }
  return replay::whole_blocks(t);
}

/// Most hits over all decisions, by trying all of them: the state is the set of resident blocks.
auto exhaustive(std::vector<std::vector<std::uint64_t>> const& prompts, unsigned blocks, bool on_demand)
    -> std::uint64_t {
  std::map<std::uint64_t, unsigned> bit_of;
  for (auto const& ids : prompts) {
    for (auto const id : ids) { bit_of.emplace(id, static_cast<unsigned>(bit_of.size())); }
  }
  std::map<std::uint32_t, std::uint64_t> best{{0, 0}}; // resident set, hits so far
  for (auto const& ids : prompts) {
    std::uint32_t path = 0;
    for (auto const id : ids) { path |= 1U << bit_of[id]; }
    std::map<std::uint32_t, std::uint64_t> after;
    for (auto const& [resident, hits] : best) {
      auto n = hits;
      for (auto const id : ids) {
        if ((resident >> bit_of[id] & 1U) == 0) { break; }
        ++n;
      }
      auto const could = resident | path;
      for (auto keep = could;; keep = (keep - 1) & could) { // every subset
        if (static_cast<unsigned>(std::popcount(keep)) <= blocks && (!on_demand || (keep & path) == path)) {
          auto& value = after[keep];
          value = std::max(value, n);
        }
        if (keep == 0) { break; }
      }
    }
    best = std::move(after);
  }
  std::uint64_t most = 0;
  for (auto const& [resident, hits] : best) { most = std::max(most, hits); }
  return most;
}

} // namespace

TEST_CASE("replay: the future tells the next use by depth") {
  auto const t = trace_of({{1, 2, 3}, {1, 4}, {1, 2, 5}, {6}, {1, 4}});
  auto f = replay::future{t, 512, 100};
  auto const uses = [&](std::size_t i) {
    auto const span = f.next_uses(i, 0);
    return std::vector<std::uint32_t>(span.begin(), span.end());
  };
  constexpr auto never = replay::future::never;
  CHECK(uses(0) == std::vector<std::uint32_t>{1, 2, never});
  CHECK(uses(1) == std::vector<std::uint32_t>{2, 4});
  CHECK(uses(2) == std::vector<std::uint32_t>{4, never, never});
  CHECK(uses(3) == std::vector<std::uint32_t>{never});
  CHECK(f.references() == 11);
  CHECK(f.distinct() == 6);
  auto const later = f.next_uses(0, 0, 3); // as if requests 1 and 2 had been admitted already
  CHECK(std::vector<std::uint32_t>(later.begin(), later.end()) == std::vector<std::uint32_t>{4, never, never});
  auto const small = replay::future{t, 512, 3}; // the first and the third need 4
  CHECK_FALSE(small.fits(0));
  CHECK(small.fitting() == 3);
  CHECK(small.references() == 5);
}

TEST_CASE("replay: bound and optimal policy equal an exhaustive search") {
  auto dice = replay::detail::dice{20261129};
  for (int round = 0; round < 150; ++round) {
    std::vector<std::vector<std::uint64_t>> prompts(dice.between(3, 9));
    for (auto& ids : prompts) {
      std::uint64_t id = 0;
      for (auto left = dice.between(1, 3); left > 0; --left) { ids.push_back(id = 3 * id + dice.between(1, 2)); }
    }
    auto const t = trace_of(prompts);
    for (auto const blocks : {3U, 4U, 6U}) {
      auto f = replay::future{t, 512, blocks + 1};
      REQUIRE(f.fitting() == prompts.size());
      REQUIRE(replay::offline_bound(f, t, blocks) == exhaustive(prompts, blocks, false));
      auto const options = replay::run_options{.blocks = blocks, .block_tokens = 512, .whole = true};
      replay::engine<quire::optimal_eviction> e{t, f, options};
      replay::serial_loop(e, [](std::size_t) {});
      REQUIRE(e.finish(0).hit_blocks == exhaustive(prompts, blocks, true));
    }
  }
}
