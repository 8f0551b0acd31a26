// SPDX-License-Identifier: Apache-2.0
#include <quire/observe/counting_observer.hpp>

#include <quire/observe/observer_pair.hpp>

#include "support/catch_compat.hpp"

#include <cstdint>
#include <vector>

namespace {
using namespace quire;

auto tokens(std::uint32_t n) -> token_count { return token_count{n}; }
auto blocks(std::uint32_t n) -> block_count { return block_count{n}; }

// Checks the sums after every event.
struct audited {
  counting_observer counts = {};
  auto commit(commit_event const& event) -> cache_statistics {
    counts.on_commit(event);
    CHECK(counts.statistics().partitioned());
    return counts.statistics();
  }
};
} // namespace

TEST_CASE("S42: a full hit counts P - 1 hit and one computed, together P (case 24)") {
  auto watch = audited{};
  auto const now = watch.commit({.first = true, .hit = tokens(63), .computed_prompt = tokens(1), .length = tokens(64)});
  CHECK(now.requests == 1);
  CHECK(now.prompt_tokens == 64);
  CHECK(now.hit_tokens == 63);
  CHECK(now.computed_tokens == 1);
  CHECK(now.output_tokens == 0);
}

TEST_CASE("S42: chunks and outputs are counted once, by the commit that covers them") {
  auto watch = audited{};
  watch.commit({.first = true, .hit = tokens(16), .computed_prompt = tokens(10)});
  auto now = watch.commit({.computed_prompt = tokens(10)});
  CHECK(now.prompt_tokens == 36);
  now = watch.commit({.computed_prompt = tokens(4), .computed_output = tokens(2), .copied = blocks(1)});
  now = watch.commit({.computed_output = tokens(1)});
  CHECK(now.requests == 1);
  CHECK(now.prompt_tokens == 40);
  CHECK(now.hit_tokens == 16);
  CHECK(now.computed_tokens == 24);
  CHECK(now.output_tokens == 3);
  CHECK(now.copied_blocks == 1);
}

TEST_CASE("S24: what a preempted request finds of its own work is no hit (case 131)") {
  auto watch = audited{};
  watch.commit({.first = true, .computed_prompt = tokens(100)});
  watch.counts.on_release({.length = tokens(100), .preempted = true});
  watch.counts.on_admit({.prompt = tokens(100), .attached = tokens(96), .resumed = true});
  auto const now = watch.commit(
      {.first = true, .resumed = true, .hit = tokens(80), .loaded = tokens(16), .computed_prompt = tokens(4)});
  CHECK(now.hit_tokens == 0);
  CHECK(now.prompt_tokens == 100);
  CHECK(now.computed_tokens == 100);
  CHECK(now.self_hit_tokens == 96);
  CHECK(now.recomputed_tokens == 4);
  CHECK(now.resumed_tokens == 100);
  CHECK(now.requests == 1);
  CHECK(now.resumed_requests == 1);
  CHECK(now.preemptions == 1);
  CHECK(now.releases == 0);
}

TEST_CASE("S42: a request that is retried five times counts once (case 132)") {
  auto watch = audited{};
  for (auto i = 0; i < 5; ++i) { watch.counts.on_refuse({.reason = errc::no_blocks, .missing = blocks(2)}); }
  watch.counts.on_admit({.prompt = tokens(32), .attached = tokens(16)});
  CHECK(watch.counts.statistics() == cache_statistics{.admissions = 1, .refusals = 5}); // nothing else yet
  auto const now = watch.commit({.first = true, .hit = tokens(16), .computed_prompt = tokens(16)});
  CHECK(now.requests == 1);
  CHECK(now.prompt_tokens == 32);
  CHECK(now.hit_tokens == 16);
}

TEST_CASE("S42: a tier is asked for what the cache did not have (case 133)") {
  auto watch = audited{};
  auto const now =
      watch.commit({.first = true, .hit = tokens(600), .loaded = tokens(200), .computed_prompt = tokens(200)});
  CHECK(now.prompt_tokens == 1000);
  CHECK(now.tier_queries() == 400);
  CHECK(now.loaded_tokens == 200);
}

TEST_CASE("S42: found but not attached is not a hit (case 134)") {
  auto watch = audited{};
  watch.counts.on_admit({.prompt = tokens(50), .attached = tokens(48)});
  auto const now = watch.commit({.first = true, .computed_prompt = tokens(50)}); // the path dropped it
  CHECK(now.hit_tokens == 0);
  CHECK(now.computed_tokens == 50);
}

TEST_CASE("S42: each event moves its own counters") {
  auto counts = counting_observer{};
  counts.on_publish({.blocks = blocks(3), .duplicates = blocks(2)});
  CHECK(counts.statistics() == cache_statistics{.published_blocks = 3, .duplicate_blocks = 2});
  counts = {};
  counts.on_evict({.group = group_id{1}, .blocks = blocks(7)});
  CHECK(counts.statistics() == cache_statistics{.evicted_blocks = 7});
  counts = {};
  counts.on_release({.length = tokens(9), .returned = blocks(2), .kept = blocks(1)});
  CHECK(counts.statistics() == cache_statistics{.releases = 1});
  counts = {};
  counts.on_admit({.prompt = tokens(9)});
  CHECK(counts.statistics() == cache_statistics{.admissions = 1});
  counts = {};
  counts.on_refuse({.reason = errc::never_fits});
  CHECK(counts.statistics() == cache_statistics{.refusals = 1});
}

TEST_CASE("S42: counters do not wrap at 32 bits") {
  auto counts = counting_observer{};
  constexpr auto most = 0xFFFF'FFFFU;
  counts.on_commit({.first = true, .hit = tokens(most), .computed_prompt = tokens(most)});
  counts.on_commit({.computed_output = tokens(most)});
  counts.on_commit({.computed_output = tokens(most)});
  CHECK(counts.statistics().prompt_tokens == 2 * std::uint64_t{most});
  CHECK(counts.statistics().output_tokens == 2 * std::uint64_t{most});
}

TEST_CASE("S42: readings add and subtract in every counter") {
  // every counter different, so that a forgotten one shows
  constexpr auto one = cache_statistics{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19};
  constexpr auto two = cache_statistics{2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 38};
  STATIC_REQUIRE(sizeof(cache_statistics) == 19 * sizeof(std::uint64_t)); // a new counter has to be added here, too
  STATIC_REQUIRE(one + one == two);
  STATIC_REQUIRE(two - one == one);
  STATIC_REQUIRE(one != two);
}

TEST_CASE("S42: a false sum is seen") {
  CHECK(cache_statistics{}.partitioned());
  CHECK_FALSE(cache_statistics{.prompt_tokens = 3, .hit_tokens = 3, .computed_tokens = 1}.partitioned());
  CHECK_FALSE(cache_statistics{.prompt_tokens = 3, .loaded_tokens = 2}.partitioned());
  CHECK_FALSE(cache_statistics{.resumed_tokens = 3, .self_hit_tokens = 2}.partitioned());
  CHECK_FALSE(cache_statistics{.resumed_tokens = 3, .self_hit_tokens = 2, .recomputed_tokens = 2}.partitioned());
}
