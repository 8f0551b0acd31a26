// SPDX-License-Identifier: Apache-2.0
// In-flight work: nothing that it may still touch is reclaimed, overwritten or moved before its ticket is reached (S18).
#include <quire/block/ticket_fence.hpp>
#include <quire/cache/kv_cache.hpp>

#include "storage/storage_fixture.hpp"
#include "support/catch_compat.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace {
using namespace quire;
using quire_test::ascending;
using quire_test::check;
using quire_test::engine;
using quire_test::figures;
using quire_test::figures_of;
using quire_test::joined;
using quire_test::pool_of;
using quire_test::tail;
using quire_test::text;

template <std::size_t N>
struct on_timelines : default_policies {
  using fence = ticket_fence<N>;
};
using one_line = engine<on_timelines<1>>;
using two_lines = engine<on_timelines<2>>;
constexpr auto t0 = timeline_id{0};
constexpr auto t1 = timeline_id{1};

template <class Engine>
void complete(Engine& e, ticket until, timeline_id t = t0) {
  e.cache.fence().complete(t, until);
  e.cache.reclaim();
  check(e.cache);
}

// All arrays of a view, by value.
struct snapshot {
  std::vector<std::int32_t> table, first, length, query_start, position;
  std::vector<std::int64_t> slot;
  explicit snapshot(batch_view const& v)
      : table(v.block_table.begin(), v.block_table.end()), first(v.first_position.begin(), v.first_position.end()),
        length(v.length.begin(), v.length.end()), query_start(v.query_start.begin(), v.query_start.end()),
        position(v.position.begin(), v.position.end()), slot(v.slot.begin(), v.slot.end()) {}
  friend auto operator==(snapshot const&, snapshot const&) -> bool = default;
};
} // namespace

TEST_CASE("S18: a released request drains until its ticket is reached") {
  auto e = one_line{pool_of(4)};
  auto r = e.admit(ascending(6), 2);
  auto const until = e.cache.fence().issue(t0);
  e.prefill(r, ascending(6), until);
  e.release(r);
  CHECK(figures_of(e.cache) == figures{2, 0, 1, 0, 1}); // neither freed nor evictable: one waits, one drains
  CHECK(e.now().draining == block_count{1});
  CHECK_FALSE(e.ask(ascending(10, 50), 2).has_value()); // 3 blocks are not there
  complete(e, until);
  CHECK(figures_of(e.cache) == figures{3, 1, 1, 0, 0});
  CHECK(e.ask(ascending(10, 50), 2).has_value());
}

TEST_CASE("S18: what was truncated away waits in limbo, private or shared") {
  auto e = one_line{pool_of(8)};
  auto r = e.admit(ascending(14), 2);
  auto const until = e.cache.fence().issue(t0);
  e.prefill(r, ascending(14), until);
  e.truncate(r, 12);
  CHECK(e.now().waiting == block_count{1});
  CHECK(e.now().free == block_count{4});
  e.truncate(r, 4);
  CHECK(e.now().evictable == block_count{0}); // the step in flight may read blocks 1 and 2
  complete(e, until);
  CHECK(e.now().waiting == block_count{0});
  CHECK(e.now().free == block_count{5});
  CHECK(e.now().evictable == block_count{2});
}

TEST_CASE("S18: the source of a copy is kept until the copy is done") {
  auto e = one_line{pool_of(4)};
  e.keep(ascending(9));
  auto r = e.admit(ascending(8), 4);
  e.truncate(r, 6);
  auto const source = r.seq.blocks()[1];
  auto const until = e.cache.fence().issue(t0);
  e.step({{&r, {70}}}, until);
  CHECK(r.seq.blocks()[1] != source);
  CHECK(e.cache.block_state_of(group_id{0}, source) == block_state::published);
  CHECK(e.now().evictable == block_count{0});
  complete(e, until);
  CHECK(e.now().evictable == block_count{1});
}

TEST_CASE("S18: two steps in flight retire blocks under two tickets") {
  auto e = one_line{pool_of(16)};
  auto a = e.admit(ascending(4), 4);
  auto b = e.admit(ascending(4, 50), 4);
  auto first = e.plan({{&a, ascending(4)}});
  e.execute(first, {{&a, ascending(4)}});
  auto second = e.plan({{&b, ascending(4, 50)}});
  e.execute(second, {{&b, ascending(4, 50)}});
  e.cache.cancel(std::move(a.seq));
  e.cache.cancel(std::move(b.seq));
  auto const one = e.cache.fence().issue(t0);
  auto const two = e.cache.fence().issue(t0);
  CHECK(e.cache.commit(std::move(first), one).error() == errc::stale);
  check(e.cache);
  CHECK(e.cache.commit(std::move(second), two).error() == errc::stale);
  check(e.cache);
  CHECK(e.now().free == block_count{14});
  complete(e, one);
  CHECK(e.now().free == block_count{15});
  complete(e, two);
  CHECK(e.now().free == block_count{16});
}

TEST_CASE("S18: a launched plan that is dropped retires its blocks under a ticket issued then") {
  auto e = one_line{pool_of(4)};
  auto r = e.admit(ascending(6), 2);
  {
    auto planned = e.plan({{&r, ascending(6)}});
    e.execute(planned, {{&r, ascending(6)}});
  }
  check(e.cache);
  CHECK(e.now().waiting == block_count{2});
  CHECK(e.now().free == block_count{2});
  complete(e, e.cache.fence().issued(t0));
  CHECK(e.now().free == block_count{4});
}

TEST_CASE("S18: views stand until their tickets are reached, and a further step is refused") {
  auto options = pool_of(32);
  options.batch_buffers = 2;
  auto e = one_line{options};
  auto r = e.serve(ascending(6), 16);
  auto const first = e.cache.fence().issue(t0);
  e.step({{&r, {7}}}, first);
  auto const second = e.cache.fence().issue(t0);
  e.step({{&r, {8}}}, second);
  auto const ids = text{9};
  auto const item = one_line::step_item{r.seq, ids};
  auto const refused = e.cache.plan_step({&item, 1});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error() == errc::views_in_flight);
  check(e.cache);
  complete(e, first);
  e.step({{&r, {9}}});
  e.read(r);
}

TEST_CASE("S18: a view does not change while other steps run, whatever happens to its requests") {
  auto options = pool_of(64);
  options.batch_buffers = 3;
  auto e = two_lines{options};
  auto a = e.serve(ascending(6, 100), 20);
  auto b = e.serve(ascending(9, 200), 20);
  auto const work = std::vector<two_lines::work>{{&a, {1}}, {&b, {2}}};
  auto planned = e.plan(work, t1);
  e.execute(planned, work);
  auto const view = planned.view();
  auto const before = snapshot{view};
  e.commit(std::move(planned), work, e.cache.fence().issue(t1)); // not over until the end
  auto c = e.serve(ascending(13, 300), 20); // on the other timeline: other tables, another order, forks, ends
  for (token_id t = 0; t < 6; ++t) {
    e.step({{&c, {t}}, {&b, {t}}});
    CHECK(snapshot{view} == before);
  }
  auto twin = e.fork(b, 8);
  e.step({{&twin, {5, 6, 7}}, {&a, {7}}});
  e.truncate(c, 3);
  e.release(b);
  e.release(a);
  CHECK(snapshot{view} == before);
  e.step({{&c, {1, 2, 3}}});
  CHECK(snapshot{view} == before);
}

TEST_CASE("S18: content of another timeline is waited for, in order, before it is read") {
  auto e = two_lines{pool_of(32)};
  auto a = e.admit(ascending(9), 8);
  auto const until = e.cache.fence().issue(t1);
  e.prefill(a, ascending(9), until, t1);
  auto b = e.admit(ascending(9), 8); // attaches what timeline 1 may still be writing
  CHECK(b.seq.cached() == token_count{8});
  auto planned = e.plan({{&b, {9}}}, t0);
  auto const actions = planned.launch();
  REQUIRE(actions.size() == 1);
  CHECK(actions[0] == action::wait_for(t1, until));
  e.forward(planned.view(), 0, {&b, {9}});
  e.commit(std::move(planned), {{&b, {9}}});
  auto moved = e.plan({{&a, {10}}}, t0); // a changes its timeline
  REQUIRE(moved.launch().size() == 1);   // its own work of the other timeline
  e.forward(moved.view(), 0, {&a, {10}});
  e.commit(std::move(moved), {{&a, {10}}});
  complete(e, until, t1);
  auto quiet = e.plan({{&a, {11}}}, t0);
  CHECK(quiet.launch().empty());
}

TEST_CASE("S18: a block that two timelines used waits for both") {
  for (auto const order : {0U, 1U}) {
    auto e = two_lines{pool_of(8)};
    auto r = e.admit(ascending(6), 4);
    auto const zero = e.cache.fence().issue(t0);
    e.prefill(r, ascending(6), zero, t0);
    auto const one = e.cache.fence().issue(t1);
    e.step({{&r, {7}}}, one, t1);
    e.truncate(r, 4); // block 1 was used on both
    CHECK(e.now().waiting == block_count{1});
    if (order == 0) {
      complete(e, zero, t0);
    } else {
      complete(e, one, t1);
    }
    CHECK(e.now().waiting == block_count{1});
    if (order == 0) {
      complete(e, one, t1);
    } else {
      complete(e, zero, t0);
    }
    CHECK(e.now().waiting == block_count{0});
  }
}

TEST_CASE("S18: a block that equals a published one waits for its own step, and its place for the other's") {
  auto options = pool_of(16);
  options.batch_buffers = 4;
  auto e = two_lines{options};
  auto a = e.admit(ascending(6), 8);
  auto b = e.admit(ascending(6), 8); // finds nothing either
  auto const zero = e.cache.fence().issue(t0);
  e.prefill(a, ascending(6), zero, t0);
  auto const one = e.cache.fence().issue(t1);
  e.prefill(b, ascending(6), one, t1);
  CHECK(b.seq.blocks()[0] == a.seq.blocks()[0]);
  CHECK(e.now().waiting == block_count{1});
  CHECK(e.now().free == block_count{12});
  {
    auto planned = e.plan({{&b, {7}}}, t1); // reads from now on what timeline 0 may still be writing
    auto const actions = planned.launch();
    CHECK(actions.size() == 1);
    CHECK((!actions.empty() && actions.front() == action::wait_for(t0, zero)));
  }
  complete(e, one, t1);
  CHECK(e.now().waiting == block_count{0});
  CHECK(e.now().free == block_count{13});
  complete(e, zero, t0);
  auto quiet = e.plan({{&b, {7}}}, t1);
  CHECK(quiet.launch().empty());
}

TEST_CASE("case 41: blocks of a cancelled request in flight go to nobody until they are drained") {
  auto e = one_line{pool_of(4)};
  auto a = e.admit(ascending(10), 2);
  auto const until = e.cache.fence().issue(t0);
  auto planned = e.plan({{&a, ascending(10)}});
  e.execute(planned, {{&a, ascending(10)}});
  e.cache.cancel(std::move(a.seq)); // aborted while its blocks are being filled
  check(e.cache);
  CHECK_FALSE(e.ask(ascending(8, 50)).has_value());
  CHECK(e.cache.commit(std::move(planned), until).error() == errc::stale);
  check(e.cache);
  CHECK_FALSE(e.ask(ascending(8, 50)).has_value());
  complete(e, until);
  CHECK(e.ask(ascending(8, 50)).has_value());
}

TEST_CASE("case 39: a completion that came before the cancel frees at once") {
  auto e = one_line{pool_of(4)};
  auto a = e.admit(ascending(10), 2);
  auto const until = e.cache.fence().issue(t0);
  e.prefill(a, ascending(10), until);
  e.cache.fence().complete(t0, until);
  e.cache.cancel(std::move(a.seq));
  check(e.cache);
  CHECK(e.now().available == block_count{4});
}

TEST_CASE("case 40: completions that are told twice or late change nothing") {
  auto e = one_line{pool_of(8)};
  auto a = e.admit(ascending(6), 8);
  auto const first = e.cache.fence().issue(t0);
  e.prefill(a, ascending(6), first);
  auto const second = e.cache.fence().issue(t0);
  e.step({{&a, {7}}}, second);
  e.release(a);
  complete(e, first);
  CHECK(e.now().free == block_count{6});
  complete(e, first);
  CHECK(e.now().free == block_count{6});
  complete(e, second);
  complete(e, first);
  CHECK(e.now().free == block_count{7});
  CHECK(e.now().evictable == block_count{1});
}
