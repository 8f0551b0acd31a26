// SPDX-License-Identifier: Apache-2.0
// Compaction (S15), preemption (S24), and what happens when a device is lost.
#include <quire/block/fifo_allocation.hpp>
#include <quire/block/lowest_allocation.hpp>
#include <quire/block/ticket_fence.hpp>
#include <quire/cache/kv_cache.hpp>
#include <quire/prefix/flat_index.hpp>

#include "storage/storage_fixture.hpp"
#include "support/catch_compat.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace {
using namespace quire;
using quire_test::ascending;
using quire_test::check;
using quire_test::engine;
using quire_test::joined;
using quire_test::numbers;
using quire_test::pool_of;
using quire_test::tail;
using quire_test::text;

struct flat_ring : default_policies {
  using allocation = fifo_allocation;
  template <class E, class D>
  using index = flat_index<E, D>;
};
struct lowest : default_policies {
  using allocation = lowest_allocation;
};
template <std::size_t N>
struct on_timelines : default_policies {
  using fence = ticket_fence<N>;
};
constexpr auto t0 = timeline_id{0};
constexpr auto t1 = timeline_id{1};
} // namespace

TEMPLATE_TEST_CASE("S15: after compaction every later read gives the same", "", default_policies, flat_ring, lowest) {
  auto e = engine<TestType>{pool_of(32)};
  auto gone = e.serve(ascending(21, 500), 2);
  auto a = e.serve(ascending(10), 8);
  auto b = e.fork(a, 9);
  auto c = e.serve(ascending(5, 100), 8);
  e.keep(ascending(9, 300));
  e.release(gone);
  auto wide = e.serve(ascending(70, 900), 1); // evicts, so that free places lie low
  e.release(wide);
  auto const moves = e.cache.compact();
  check(e.cache);
  REQUIRE(moves.has_value());
  auto targets = std::set<std::uint32_t>{};
  for (auto const& move : *moves) {
    CHECK(move.kind == action_kind::move);
    CHECK(move.target.block < move.source.block);
    CHECK(targets.insert(move.target.block.value()).second);
  }
  e.perform(*moves);
  auto in_use = 0U;
  for (std::uint32_t block = 0; block < 32; ++block) {
    in_use += e.cache.block_state_of(group_id{0}, block_id{block}) != block_state::free ? 1U : 0U;
  }
  for (std::uint32_t block = 0; block < in_use; ++block) {
    CHECK(e.cache.block_state_of(group_id{0}, block_id{block}) != block_state::free);
  }
  for (auto* const r : {&a, &b, &c}) { e.read(*r); }
  CHECK(e.hit(ascending(9, 900)) == 8); // and prefixes are found at their new places
  for (token_id t = 0; t < 4; ++t) { e.step({{&a, {t}}, {&b, {50 + t}}, {&c, {70 + t}}}); }
  for (auto* const r : {&a, &b, &c}) { e.read(*r); }
  CHECK(e.cache.compact()->size() <= moves->size());
}

TEST_CASE("S15: a dense cache moves nothing") {
  auto e = engine<>{pool_of(8)};
  auto r = e.serve(ascending(9), 3);
  auto const moves = e.cache.compact();
  REQUIRE(moves.has_value());
  CHECK(moves->empty());
}

TEST_CASE("S15: the move list of a pool with a hole, worked by hand") {
  auto e = engine<>{pool_of(8)};
  auto a = e.serve(ascending(3, 100), 5); // block 0
  auto b = e.serve(ascending(6, 200), 2); // blocks 1 2
  auto c = e.serve(ascending(3, 300), 5); // block 3
  e.release(a);                           // a hole at 0; nothing of a was full
  auto const moves = e.cache.compact();
  REQUIRE(moves.has_value());
  REQUIRE(moves->size() == 1);
  CHECK((*moves)[0] == action::move_block(group_id{0}, block_id{3}, block_id{0}));
  e.perform(*moves);
  CHECK(numbers(c.seq.blocks()) == std::vector<std::uint32_t>{0});
  e.read(b);
  e.read(c);
  e.step({{&b, {7}}, {&c, {8, 9}}});
}

TEST_CASE("S15: nothing moves while a plan is open or work is in flight") {
  auto e = engine<on_timelines<1>>{pool_of(8)};
  auto r = e.serve(ascending(6), 8);
  {
    auto const planned = e.plan({{&r, {7}}});
    CHECK(e.cache.compact().error() == errc::plan_open);
  }
  auto const until = e.cache.fence().issue(t0);
  e.step({{&r, {7}}}, until);
  CHECK(e.cache.compact().error() == errc::views_in_flight);
  e.release(r);
  CHECK(e.cache.compact().error() == errc::views_in_flight);
  e.cache.fence().complete(t0, until);
  CHECK(e.cache.compact().has_value());
  check(e.cache);
}

TEST_CASE("S24: a preempted request gives its blocks to others and computes them again") {
  auto e = engine<>{pool_of(5)};
  auto r = e.serve(ascending(9), 5);
  e.step({{&r, {10}}});
  auto const so_far = r.tokens;
  REQUIRE(e.cache.preempt(r.seq).has_value());
  check(e.cache);
  CHECK_FALSE(static_cast<bool>(r.seq));
  CHECK(e.now().available == block_count{5});
  e.keep(ascending(19, 100)); // takes everything
  auto wanted = admit_request{};
  wanted.scope = e.scope;
  wanted.prompt = so_far;
  wanted.max_output = token_count{4};
  wanted.resumed = true;
  auto again = e.admit(wanted);
  e.prefill(again, so_far);
  e.read(again);
  auto const s = e.cache.statistics();
  CHECK(s.preemptions == 1);
  CHECK(s.requests == 2);
  CHECK(s.resumed_requests == 1);
  CHECK(s.recomputed_tokens == 10);
  CHECK(s.prompt_tokens == 9 + 19); // what is computed again is not computed for the first time
}

TEST_CASE("case 131: what a preempted request finds of its own work is no hit") {
  auto e = engine<>{pool_of(8)};
  auto r = e.serve(ascending(9), 5);
  REQUIRE(e.cache.preempt(r.seq).has_value());
  auto const prompt = ascending(9);
  auto wanted = admit_request{};
  wanted.scope = e.scope;
  wanted.prompt = prompt;
  wanted.max_output = token_count{5};
  wanted.resumed = true;
  auto again = e.admit(wanted);
  CHECK(again.seq.cached() == token_count{8});
  e.prefill(again, prompt);
  auto const s = e.cache.statistics();
  CHECK(s.hit_tokens == 0);
  CHECK(s.self_hit_tokens == 8);
  CHECK(s.recomputed_tokens == 1);
}

TEST_CASE("S24: a request that has computed nothing is not preempted, its handle stays usable") {
  auto e = engine<>{pool_of(8)};
  auto r = e.admit(ascending(9), 5);
  auto const refused = e.cache.preempt(r.seq);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error() == errc::illegal_transition);
  check(e.cache);
  e.prefill(r, ascending(9));
}

TEST_CASE("case 42: a request that never got a block is cancelled without one") {
  auto e = engine<>{pool_of(8)};
  auto r = e.admit(ascending(9), 5);
  CHECK(r.seq.phase() == request_state::waiting);
  e.cache.cancel(std::move(r.seq));
  check(e.cache);
  CHECK(e.now().free == block_count{8});
  CHECK(e.now().promised == block_count{0});
}

TEST_CASE("S25: a request goes through its states") {
  auto e = engine<>{pool_of(16)};
  auto r = e.admit(ascending(9), 5);
  CHECK(r.seq.phase() == request_state::waiting);
  e.step({{&r, ascending(5)}});
  CHECK(r.seq.phase() == request_state::prefilling);
  e.prefill(r, ascending(9));
  CHECK(r.seq.phase() == request_state::decoding);
  e.step({{&r, {10}}});
  CHECK(r.seq.phase() == request_state::decoding);
  e.cache.time_out(std::move(r.seq));
  check(e.cache);
  CHECK(e.cache.statistics().releases == 1);
}

TEST_CASE("S18: a lost timeline loses what was never ready, and nothing else") {
  auto e = engine<on_timelines<1>>{pool_of(16)};
  e.keep(ascending(9));
  auto r = e.admit(ascending(9), 12);
  CHECK(r.seq.cached() == token_count{8});
  auto const good = e.cache.fence().issue(t0);
  e.prefill(r, ascending(9), good);
  e.cache.fence().complete(t0, good);
  auto const never = e.cache.fence().issue(t0);
  e.step({{&r, {10, 11, 12, 13}}}, never); // block 2 is published, but its last positions were never finished
  CHECK(e.now().published == block_count{3});
  auto const lost = e.cache.abandon(t0);
  check(e.cache);
  REQUIRE(lost.has_value());
  CHECK(*lost == block_count{2}); // the device may still write them: block 2 and the one behind it
  CHECK(e.now().lost == block_count{2});
  CHECK(e.now().published == block_count{2});
  CHECK(r.seq.length() == token_count{8}); // block 2 went with its ready position 8
  r.tokens.resize(r.seq.length().value());
  e.prefill(r, ascending(12));
  e.read(r);
  CHECK(e.hit(ascending(13)) == 12);
}

TEST_CASE("S18: requests that had ended on a lost timeline give up their unfinished blocks") {
  auto e = engine<on_timelines<1>>{pool_of(16)};
  auto r = e.admit(ascending(10), 4);
  e.prefill(r, ascending(10), e.cache.fence().issue(t0));
  e.release(r); // drains
  CHECK(*e.cache.abandon(t0) == block_count{3});
  check(e.cache);
  CHECK(e.now().free == block_count{13});
  CHECK(e.now().published == block_count{0});
  CHECK(e.hit(ascending(10)) == 0);
  e.keep(ascending(10)); // life goes on
}

TEST_CASE("S18: what waits for a lost timeline is never used again") {
  auto e = engine<on_timelines<1>>{pool_of(8)};
  auto r = e.admit(ascending(10), 4);
  e.prefill(r, ascending(10), e.cache.fence().issue(t0));
  e.truncate(r, 4); // block 2 waits in limbo, block 1 behind a pin that waits
  CHECK(e.now().waiting == block_count{1});
  CHECK(*e.cache.abandon(t0) == block_count{3});
  check(e.cache);
  CHECK(e.now().lost == block_count{3});
  CHECK(e.now().free == block_count{5});
  CHECK(e.now().waiting == block_count{0});
}

TEST_CASE("S18: whoever attached what a lost timeline never finished is cut back too") {
  for (auto const ended : {false, true}) {
    auto e = engine<on_timelines<2>>{pool_of(16)};
    auto writer = e.admit(ascending(9), 4);
    e.prefill(writer, ascending(9), e.cache.fence().issue(t0), t0);
    auto reader = e.admit(ascending(9), 4); // on the other timeline, behind a wait for t0
    auto const until = e.cache.fence().issue(t1);
    e.prefill(reader, ascending(9), until, t1);
    if (ended) { e.release(reader); }
    REQUIRE(e.cache.abandon(t0).has_value());
    check(e.cache);
    CHECK(writer.seq.length() == token_count{0});
    CHECK(e.now().published == block_count{0});
    if (!ended) { CHECK(reader.seq.length() == token_count{0}); }
    e.cache.fence().complete(t1, until);
    e.cache.reclaim();
    check(e.cache);
  }
}

TEST_CASE("S18: who computed what a lost timeline never finished, and was pointed at it, loses it too") {
  auto e = engine<on_timelines<2>>{pool_of(16)};
  auto writer = e.admit(ascending(9), 4);
  auto other = e.admit(ascending(9), 4); // finds nothing either
  e.prefill(writer, ascending(9), e.cache.fence().issue(t0), t0);
  auto const until = e.cache.fence().issue(t1);
  e.prefill(other, ascending(9), until, t1); // blocks 0 and 1 are there already: it reads those, its own come back
  CHECK(numbers(other.seq.blocks().first(2)) == numbers(writer.seq.blocks().first(2)));
  e.cache.fence().complete(t1, until);
  REQUIRE(e.now().published == block_count{2});
  CHECK(*e.cache.abandon(t0) == block_count{3}); // the writer's; those of the other one were finished
  check(e.cache);
  CHECK(other.seq.length() == token_count{0});
  CHECK(e.now().published == block_count{0});
  CHECK(e.now().free == block_count{13});
  other.tokens.clear();
  e.prefill(other, ascending(9), e.cache.fence().issue(t1), t1);
}

TEST_CASE("S18: what was finished below a block that a lost timeline never finished leaves the cache with it") {
  auto e = engine<on_timelines<2>>{pool_of(32)};
  auto writer = e.admit(ascending(6), 4);
  auto const prompt = joined(ascending(4), ascending(6, 50));
  auto const branch = joined(ascending(4), ascending(6, 80));
  auto other = e.admit(prompt, 4); // finds nothing: it computes a block like the writer's, and one behind it
  auto third = e.admit(branch, 4); // the same, so that the two do not become one run with the writer's
  e.prefill(writer, ascending(6), e.cache.fence().issue(t0), t0);
  auto const until = e.cache.fence().issue(t1);
  e.step({{&other, prompt}, {&third, branch}}, until, t1);
  e.cache.fence().complete(t1, until);
  CHECK(e.now().published == block_count{3});
  REQUIRE(e.cache.abandon(t0).has_value());
  check(e.cache);
  CHECK(e.now().published == block_count{0});
  CHECK(e.hit(prompt) == 0);
  CHECK(e.hit(branch) == 0);
}

TEST_CASE("S18: a timeline is not given up while a plan is open") {
  auto e = engine<on_timelines<1>>{pool_of(8)};
  auto r = e.serve(ascending(6), 8);
  auto const planned = e.plan({{&r, {7}}});
  CHECK(e.cache.abandon(t0).error() == errc::plan_open);
  check(e.cache);
}
