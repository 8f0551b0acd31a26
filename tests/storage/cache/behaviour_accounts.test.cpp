// SPDX-License-Identifier: Apache-2.0
// The accounts of requests add up after any cut, fork, preemption and rebuild; what a preemption tells comes true; what
// nobody can reach leaves first; and outputs stay private where the caller says so.
#include <quire/block/ticket_fence.hpp>
#include <quire/cache/kv_cache.hpp>
#include <quire/core/types.hpp>
#include <quire/model/retention.hpp>
#include <quire/observe/cache_statistics.hpp>
#include <quire/prefix/fifo_eviction.hpp>
#include <quire/prefix/lfu_eviction.hpp>
#include <quire/prefix/lru_eviction.hpp>

#include "storage/group_fixture.hpp"
#include "storage/storage_fixture.hpp"
#include "support/catch_compat.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace {
using namespace quire;
using quire_test::ascending;
using quire_test::check;
using quire_test::commit_done;
using quire_test::engine;
using quire_test::group;
using quire_test::group_engine;
using quire_test::group_of;
using quire_test::groups_of;
using quire_test::head;
using quire_test::joined;
using quire_test::pool_of;
using quire_test::tail;
using quire_test::text;
using quire_test::tokens;
using quire_test::window_of;

struct optimists : default_policies {
  using admission = optimistic;
};
struct ticketed : default_policies {
  using fence = ticket_fence<2>;
  using admission = optimistic;
};
template <class Order>
struct evicting : default_policies {
  using eviction = Order;
};
template <class Order>
struct evicting_late : evicting<Order> {
  using fence = ticket_fence<1>;
};

// What the requests since \p before were made of.
template <class Cache>
auto since(Cache const& cache, cache_statistics const& before) -> cache_statistics {
  auto out = cache.statistics();
  CHECK(out.partitioned());
  out -= before;
  return out;
}
} // namespace

// --- hits that are given back ---------------------------------------------------------------------------------------

TEST_CASE("S40: a hit that is given back before the first commit was none") {
  auto e = engine<>{pool_of(64, 16)};
  e.keep(ascending(64));
  auto const before = e.cache.statistics();
  auto r = e.admit(ascending(70));
  REQUIRE(r.seq.cached() == token_count{64});
  e.truncate(r, 48);
  e.prefill(r, ascending(70)); // 22 positions
  auto const seen = since(e.cache, before);
  CHECK(seen.hit_tokens == 48);
  CHECK(seen.computed_tokens == 22);
  CHECK(seen.prompt_tokens == 70);
}

TEST_CASE(
    "S40: hit and computed are what was found and what was computed, wherever a request is cut before and after") {
  for (std::uint32_t first = 0; first <= 24; ++first) {
    for (std::uint32_t second = 0; second <= 30; second += 3) {
      auto e = engine<>{pool_of(64)};
      e.keep(ascending(24));
      auto const before = e.cache.statistics();
      auto const prompt = ascending(30);
      auto r = e.admit(prompt, 4);
      e.truncate(r, first);
      e.step({{&r, tail(prompt, first)}});
      e.step({{&r, {900}}});
      e.truncate(r, second);
      if (second < 30) { e.prefill(r, prompt); }
      auto const seen = since(e.cache, before);
      INFO("cut to " << first << " and to " << second);
      CHECK(seen.hit_tokens == first);
      CHECK(seen.computed_tokens == 30 - first);
      CHECK(seen.output_tokens == 1); // counted once, although it is gone
      e.read(r);
    }
  }
}

TEST_CASE("S40: a fork of a request that has computed nothing is no request, and found nothing") {
  auto e = engine<>{pool_of(64)};
  e.keep(ascending(24));
  auto const before = e.cache.statistics();
  auto r = e.admit(ascending(30), 4);
  auto child = e.fork(r, 24);
  auto shorter = e.fork(r, 10);
  e.prefill(child, ascending(30));
  e.step({{&shorter, {7}}});
  auto seen = since(e.cache, before);
  CHECK(seen.hit_tokens == 0);
  CHECK(seen.computed_tokens == 7);
  e.prefill(r, ascending(30));
  seen = since(e.cache, before);
  CHECK(seen.hit_tokens == 24);
  CHECK(seen.computed_tokens == 13);
}

TEST_CASE("S40: what a preempted request finds of its own work is no hit, cut back or not") {
  for (auto const cut : {30U, 20U, 9U, 0U}) {
    auto e = engine<optimists>{pool_of(64)};
    auto r = e.serve(ascending(30), 8);
    e.step({{&r, {77}}});
    REQUIRE(e.cache.preempt(r.seq).has_value());
    check(e.cache);
    auto const all = joined(ascending(30), {77});
    auto const before = e.cache.statistics();
    auto wanted = admit_request{};
    wanted.scope = e.scope;
    wanted.prompt = all;
    wanted.max_output = token_count{8};
    wanted.resumed = true;
    auto again = e.admit(wanted);
    REQUIRE(again.seq.cached() == token_count{28});
    if (cut < 28) { e.truncate(again, cut); }
    e.prefill(again, all);
    auto const seen = since(e.cache, before);
    CHECK(seen.hit_tokens + seen.computed_tokens + seen.prompt_tokens == 0);
    CHECK(seen.self_hit_tokens == std::min(cut, 28U));
    CHECK(seen.recomputed_tokens == 31 - std::min(cut, 28U));
  }
}

TEST_CASE("S40: what rebuilds a window is computed, and counts as such, given back or not") {
  for (auto const given_back : {false, true}) {
    auto options = groups_of(64, {group_of({}), group_of(window_of(5), 6)});
    options.rebuild = token_count{8};
    options.max_append = token_count{4};
    auto e = group_engine<>{options};
    auto first = e.admit(ascending(32));
    e.prefill(first, ascending(32), 4);
    e.release(first);
    for (auto i = 0; i < 3; ++i) { // its windows go
      auto other = e.admit(ascending(12, 1000 * (i + 1)));
      e.prefill(other, ascending(12, 1000 * (i + 1)), 4);
      e.release(other);
    }
    auto const before = e.cache.statistics();
    auto asked = e.ask(e.wanted(ascending(32), 2));
    REQUIRE(asked.has_value());
    auto const start = asked->length().value();
    REQUIRE(asked->rebuilt() == token_count{31 - start});
    REQUIRE(asked->rebuilt() > token_count{});
    if (given_back) {
      REQUIRE(e.cache.truncate(*asked, token_count{0}).has_value());
      check(e.cache);
    }
    auto const from = given_back ? 0U : start;
    for (auto at = from; at < 32;) {
      auto const ids = head(tail(ascending(32), at), 4 - at % 4);
      auto plan = e.cache.plan_step({group_engine<>::step_item{*asked, ids}}).value();
      REQUIRE(plan.complete());
      static_cast<void>(plan.launch());
      REQUIRE(e.cache.commit(std::move(plan)).has_value());
      check(e.cache);
      at += static_cast<std::uint32_t>(ids.size());
    }
    auto const seen = since(e.cache, before);
    CHECK(seen.hit_tokens == from);
    CHECK(seen.computed_tokens == 32 - from);
    CHECK(asked->rebuilt() == token_count{given_back ? 0 : 31 - start}); // begun anew it is exact all along
    CHECK(e.cache.resumable_length(*asked, token_count{0}).has_value());
  }
}

// --- preemption -----------------------------------------------------------------------------------------------------

TEST_CASE("S24: a preemption tells what comes back now, and what after which tickets") {
  auto e = engine<ticketed>{pool_of(16)};
  auto r = e.admit(ascending(14), 8);
  e.prefill(r, ascending(14)); // over
  e.cache.reclaim();
  auto const until = e.cache.fence().issue(timeline_id{1});
  e.step({{&r, {70}}}, until, timeline_id{1}); // in flight
  auto const before = e.now();
  auto const told = e.cache.preempt(r.seq);
  check(e.cache);
  REQUIRE(told.has_value());
  REQUIRE(told->groups.size() == 1);
  CHECK(told->groups[0].now == block_count{0});
  CHECK(told->groups[0].later == block_count{4});
  CHECK(e.now().waiting == block_count{1});  // the partial one
  CHECK(e.now().draining == block_count{3}); // found by others, and held by the pin that waits
  CHECK(told->until[1] == until);
  CHECK(e.now().free + e.now().evictable == before.free + before.evictable);
  e.cache.fence().complete(timeline_id{1}, until);
  e.cache.reclaim();
  check(e.cache);
  CHECK(e.now().free + e.now().evictable == block_count{16});
  CHECK(e.now().waiting + e.now().draining == block_count{0});
}

TEST_CASE("S24: a preempted parent waits for the copy that its child makes of its block") {
  auto e = engine<ticketed>{pool_of(16)};
  auto r = e.admit(ascending(6), 8);
  e.prefill(r, ascending(6));
  e.cache.reclaim();
  auto child = e.fork(r, 6);
  auto const until = e.cache.fence().issue(timeline_id{1});
  e.step({{&child, {70}}}, until, timeline_id{1}); // in flight, copies the partial block
  auto const before = e.now();
  CHECK(before.waiting + before.draining == block_count{0});
  auto const told = e.cache.preempt(r.seq);
  REQUIRE(told.has_value());
  CHECK(told->groups[0].now == block_count{0});
  CHECK(told->groups[0].later == block_count{1});
  for (std::uint32_t t = 0; t < 2; ++t) { e.cache.fence().complete(timeline_id{t}, told->until[t]); }
  e.cache.reclaim();
  CHECK(e.now().free + e.now().evictable == before.free + before.evictable + block_count{1});
}

TEST_CASE("S24: what several preempted and ended requests leave is in the figures until it comes back") {
  auto e = engine<ticketed>{pool_of(20)};
  auto requests = std::array<engine<ticketed>::request, 4>{};
  for (auto i = 0; i < 4; ++i) {
    auto& r = requests[static_cast<std::size_t>(i)];
    r = e.admit(ascending(10, 100 * (i + 1)), 4);
    e.step({{&r, ascending(10, 100 * (i + 1))}}, {}, timeline_id{0});
  }
  for (auto& r : requests) {
    auto const until = e.cache.fence().issue(timeline_id{0});
    e.step({{&r, {5}}}, until);
    e.cache.release(std::move(r.seq));
    check(e.cache);
    auto const f = e.now();
    auto live = std::uint32_t{0}; // blocks of those that live
    for (auto const& other : requests) { live += other.seq ? 3U : 0U; }
    CHECK(f.free + f.evictable + f.waiting + f.draining + block_count{live} == f.capacity);
    e.cache.fence().complete(timeline_id{0}, until);
  }
}

TEST_CASE("S24: whatever else is in flight, once the tickets of a preemption are reached all it told is there") {
  auto checked = 0;
  for (auto seed = 0U; seed < 400; ++seed) {
    auto random = std::mt19937{seed};
    auto const below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    auto options = groups_of(64, {group_of({}), group_of(window_of(6), 64, 2), group_of({}, 200, 2)});
    options.batch_buffers = 32;
    auto e = group_engine<ticketed>{options};
    auto live = std::vector<group_engine<ticketed>::sequence>{};
    auto const step = [&](std::size_t i, std::uint32_t n) {
      auto const ids = ascending(n, static_cast<token_id>(live[i].length().value() + 1)); // texts that meet
      auto const timeline = timeline_id{below(2)};
      auto plan = e.cache.plan_step({group_engine<ticketed>::step_item{live[i], ids}}, timeline).value();
      if (!plan.complete()) { return; }
      static_cast<void>(plan.launch());
      check(e.cache);
      REQUIRE(e.cache.commit(std::move(plan), e.cache.fence().issue(timeline)).has_value());
      check(e.cache);
    };
    for (auto i = 0; i < 12; ++i) {
      if (live.empty() || below(4) == 0) {
        auto const prompt = ascending(9 + below(8));
        auto got = e.ask(e.wanted(prompt, 20));
        REQUIRE(got.has_value());
        live.push_back(std::move(*got));
        step(live.size() - 1, 4 + below(6));
      } else if (below(3) == 0) {
        auto child = e.cache.fork(live[below(static_cast<std::uint32_t>(live.size()))]);
        check(e.cache);
        if (child) { live.push_back(std::move(*child)); }
      } else if (below(3) == 0 && live.size() > 1) {
        live.pop_back();
        check(e.cache);
      } else {
        step(below(static_cast<std::uint32_t>(live.size())), 1 + below(3));
      }
      if (below(4) == 0) {
        auto const t = timeline_id{below(2)};
        e.cache.fence().complete(t, e.cache.fence().issued(t));
        e.cache.reclaim();
        check(e.cache);
      }
    }
    auto before = std::vector<group_figures>{};
    auto quiet = true; // nobody else's blocks come back meanwhile
    for (std::uint32_t g = 0; g < 3; ++g) {
      before.push_back(e.now(g));
      quiet = quiet && before.back().waiting + before.back().draining == block_count{};
    }
    auto told = e.cache.preempt(live[below(static_cast<std::uint32_t>(live.size()))]);
    check(e.cache);
    if (!told || !quiet) { continue; }
    ++checked;
    for (std::uint32_t g = 0; g < 3; ++g) {
      CHECK(e.now(g).free + e.now(g).evictable == before[g].free + before[g].evictable + told->groups[g].now);
    }
    for (std::uint32_t t = 0; t < 2; ++t) { e.cache.fence().complete(timeline_id{t}, told->until[t]); }
    e.cache.reclaim();
    check(e.cache);
    for (std::uint32_t g = 0; g < 3; ++g) {
      INFO("seed " << seed << ", group " << g);
      CHECK(e.now(g).free + e.now(g).evictable ==
            before[g].free + before[g].evictable + told->groups[g].now + told->groups[g].later);
      CHECK(e.now(g).waiting + e.now(g).draining == block_count{});
    }
  }
  CHECK(checked > 40);
}

// --- new weights ----------------------------------------------------------------------------------------------------

TEMPLATE_TEST_CASE("S35: after new weights what nobody can reach leaves first, however often it was used", "",
                   evicting<lru_eviction>, evicting<fifo_eviction>, evicting<lfu_eviction>,
                   evicting_late<lfu_eviction>) {
  auto e = engine<TestType>{pool_of(20)};
  for (auto i = 0; i < 30; ++i) { e.keep(joined(ascending(72), {500})); } // 18 blocks and a partial one
  e.cache.advance_epoch(running_requests::finish_privately);
  check(e.cache);
  auto found = std::uint32_t{0};
  for (auto round = 0; round < 40; ++round) { // 10 prompts of one block: 1600 tokens
    for (auto i = 0; i < 10; ++i) {
      auto const prompt = joined(ascending(4, 1000 + 10 * i), {9});
      auto r = e.admit(prompt);
      found += r.seq.cached().value();
      e.prefill(r, prompt);
      e.release(r);
    }
  }
  CHECK(found == 1560); // all but the first round
}

TEMPLATE_TEST_CASE("S35: what nobody can reach any more leaves groups of windows first, too", "",
                   evicting<lru_eviction>, evicting<fifo_eviction>, evicting<lfu_eviction>,
                   evicting_late<lfu_eviction>) {
  auto e = group_engine<TestType>{groups_of(400, {group_of({}), group_of(window_of(80), 26)})};
  for (auto i = 0; i < 30; ++i) { e.keep(joined(ascending(72), {500})); } // 18 blocks of the window
  REQUIRE(e.now(1).evictable == block_count{18});
  auto running = e.serve(joined(ascending(12), {9})); // found before, ends after the new weights
  e.cache.advance_epoch(running_requests::finish_privately);
  check(e.cache);
  e.release(running);
  auto found = std::uint32_t{0};
  for (auto round = 0; round < 40; ++round) {
    for (auto i = 0; i < 10; ++i) {
      auto const prompt = joined(ascending(4, 1000 + 10 * i), {9});
      auto r = e.admit(prompt);
      found += r.seq.cached().value();
      e.prefill(r, prompt);
      e.release(r);
    }
  }
  CHECK(found == 1560);
}

// --- what is published ----------------------------------------------------------------------------------------------

namespace {
auto published_by(std::vector<cache_group> const& groups, publish_rule rule, bool forks) {
  auto e = group_engine<>{groups_of(64, groups)};
  auto wanted = e.wanted(ascending(10), 12);
  auto const prompt = ascending(10);
  wanted.prompt = prompt;
  wanted.publish = rule;
  auto asked = e.ask(wanted);
  auto r = group_engine<>::request{std::move(asked.value()), {}};
  e.prefill(r, prompt);
  for (token_id i = 0; i < 8; ++i) { e.step({{&r, {100 + i}}}); }
  auto const all = joined(prompt, ascending(8, 100));
  if (forks) {
    auto child = e.fork(r, 18);
    for (token_id i = 0; i < 2; ++i) { e.step({{&child, {200 + i}}}); }
    e.release(child);
  }
  e.release(r);
  struct found {
    std::uint32_t prompt, output, published;
  };
  return found{e.hit(joined(prompt, {900})), e.hit(joined(all, {200, 201, 300})), e.now().published.value()};
}
} // namespace

TEST_CASE("S37: outputs are private where the caller says so: blocks that end in the prompt are found, no others") {
  for (auto const& groups :
       {std::vector{group_of({})}, std::vector{group_of({}), group_of(window_of(40), 64, 2)},
        std::vector{group_of({}), group_of({}, 128, 2)}, std::vector{group_of(window_of(40), 64)}}) {
    for (auto const forks : {false, true}) {
      auto const all = published_by(groups, publish_rule::all, forks);
      CHECK(all.prompt == 8);
      CHECK(all.output == (forks ? 20 : 16));
      auto const prompt = published_by(groups, publish_rule::prompt, forks);
      CHECK(prompt.prompt == 8);
      CHECK(prompt.output == 8); // the block in which the prompt ends holds outputs too
      auto const none = published_by(groups, publish_rule::none, forks);
      CHECK(none.prompt == 0);
      CHECK(none.output == 0);
      CHECK(none.published == 0);
    }
  }
}

TEST_CASE("S37: a request that publishes nothing finds what others have published") {
  auto e = engine<>{pool_of(64)};
  e.keep(ascending(16));
  auto wanted = admit_request{};
  auto const prompt = ascending(24);
  wanted.scope = e.scope;
  wanted.prompt = prompt;
  wanted.max_output = token_count{1};
  wanted.publish = publish_rule::none;
  auto r = e.admit(wanted);
  CHECK(r.seq.cached() == token_count{16});
  e.prefill(r, prompt);
  e.release(r);
  CHECK(e.now().published == block_count{4});
}
