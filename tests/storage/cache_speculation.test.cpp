// SPDX-License-Identifier: Apache-2.0
// Drafts and truncation (B6), tokens that become known later (B17), and turns that follow each other (X).
#include <quire/cache/kv_cache.hpp>
#include <quire/prefix/flat_index.hpp>

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
using quire_test::figures_of;
using quire_test::head;
using quire_test::joined;
using quire_test::numbers;
using quire_test::pool_of;
using quire_test::tail;
using quire_test::text;

struct flat : default_policies {
  template <class E, class D>
  using index = flat_index<E, D>;
};

// A step over `n` positions whose tokens are not known to the cache yet; the engine knows `ids`.
template <class Engine>
void step_unknown(Engine& e, typename Engine::request& r, text const& ids) {
  auto const item = typename Engine::step_item{r.seq, token_count{static_cast<std::uint32_t>(ids.size())}};
  auto planned = e.cache.plan_step({&item, 1});
  check(e.cache);
  REQUIRE(planned.has_value());
  REQUIRE(planned->complete());
  auto const work = std::vector{typename Engine::work{&r, ids}};
  e.execute(*planned, work);
  e.commit(std::move(*planned), work);
}
} // namespace

TEMPLATE_TEST_CASE("B6: k drafts are verified and cut to the accepted ones", "", default_policies, flat) {
  for (auto const unit : {1U, 2U, 3U, 4U, 16U}) {
    for (std::size_t accepted = 0; accepted <= 4; ++accepted) {
      auto e = engine<TestType>{pool_of(64, unit)};
      auto r = e.serve(ascending(6), 30);
      for (token_id round = 0; round < 4; ++round) {
        auto const length = r.tokens.size();
        step_unknown(e, r, {200 + round, 1, 2, 3, 4}); // the sampled token and four drafts
        auto const cached = e.now().published;
        e.truncate(r, length + 1 + accepted);
        CHECK(r.seq.length().value() == length + 1 + accepted);
        REQUIRE(e.cache.resolve(r.seq, tail(r.tokens, r.seq.resolved().value())).has_value());
        check(e.cache);
        CHECK(e.now().published.value() == (length + 1 + accepted) / unit);
        CHECK(e.now().published >= cached);
        e.read(r);
      }
      CHECK(e.cache.statistics().copied_blocks == 0);
    }
  }
}

TEST_CASE("case 79: a block with drafts publishes only when all of its tokens are accepted") {
  auto e = engine<>{pool_of(16)};
  auto r = e.serve(ascending(6), 16); // positions 0 … 5
  step_unknown(e, r, {7, 8, 9, 10});  // drafts at 6 … 9 fill block 1
  CHECK(e.now().published == block_count{1});
  CHECK(e.hit(ascending(13)) == 4);
  e.truncate(r, 7); // all but the first are rejected
  REQUIRE(e.cache.resolve(r.seq, text{7}).has_value());
  check(e.cache);
  CHECK(e.now().published == block_count{1});
  e.step({{&r, {80}}});
  CHECK(e.now().published == block_count{2});
  e.read(r);
  CHECK(e.hit(ascending(13)) == 4);
  CHECK(e.hit(joined(ascending(7), {80, 90})) == 8);
}

TEST_CASE("B6: tree drafts are forks, and the losers leave nothing") {
  auto e = engine<>{pool_of(64)};
  auto r = e.serve(ascending(6), 30);
  auto const before = figures_of(e.cache);
  {
    auto a = e.fork(r, 6);
    auto b = e.fork(r, 6);
    e.step({{&a, {70, 71, 72}}, {&b, {80, 81}}});
    auto c = e.fork(a, 8);
    e.step({{&c, {73}}});
    for (auto* const one : {&a, &b, &c}) {
      e.read(*one);
      e.release(*one);
    }
  }
  auto after = figures_of(e.cache);
  CHECK(after.free + after.evictable == before.free + before.evictable);
  CHECK(after.promised == before.promised);
  e.step({{&r, {7}}});
  e.read(r);
}

TEST_CASE("B6: a truncation below what was published unpublishes nothing") {
  auto e = engine<>{pool_of(16)};
  auto r = e.serve(ascending(10), 16);
  auto const shared = numbers(r.seq.blocks().first(2));
  e.truncate(r, 6);
  CHECK(e.now().published == block_count{2});
  CHECK(e.hit(ascending(9)) == 8);
  CHECK(numbers(r.seq.blocks()) == shared);
  e.step({{&r, {70}}}); // it reads block 1 and must not write there
  CHECK(r.seq.blocks()[1].value() != shared[1]);
  e.read(r);
  CHECK(e.hit(ascending(9)) == 8);
}

TEST_CASE("B6: a truncation to nothing and a truncation to everything") {
  auto e = engine<>{pool_of(16)};
  auto r = e.serve(ascending(10), 16);
  e.truncate(r, 10);
  CHECK(r.seq.blocks().size() == 3);
  e.truncate(r, 0);
  CHECK(r.seq.length() == token_count{0});
  CHECK(r.seq.blocks().empty());
  CHECK(e.now().free == block_count{14});
  e.prefill(r, ascending(9, 500));
  e.read(r);
}

TEST_CASE("case 117: cutting to n and cutting off n are two calls, zero empties, beyond the length is an error") {
  auto e = engine<>{pool_of(16)};
  auto r = e.serve(ascending(3), 16);
  CHECK(e.cache.drop_last(r.seq, token_count{4}).error() == errc::out_of_range);
  CHECK(e.cache.truncate(r.seq, token_count{4}).error() == errc::out_of_range);
  check(e.cache);
  CHECK(r.seq.length() == token_count{3});
  CHECK(e.cache.drop_last(r.seq, token_count{0}).has_value());
  CHECK(r.seq.length() == token_count{3});
  CHECK(e.cache.drop_last(r.seq, token_count{2}).has_value());
  check(e.cache);
  CHECK(r.seq.length() == token_count{1});
  CHECK(e.cache.truncate(r.seq, token_count{0}).has_value());
  CHECK(r.seq.length() == token_count{0});
  r.tokens.clear();
  auto planned = e.plan({{&r, {9, 9, 9}}});
  planned.launch();
  CHECK(planned.view().length[0] == 3); // the next append begins at 0
  CHECK(planned.view().position[0] == 0);
}

TEST_CASE("case 117: a plan in the way refuses") {
  auto e = engine<>{pool_of(16)};
  auto r = e.serve(ascending(3), 16);
  auto const planned = e.plan({{&r, {4}}});
  CHECK(e.cache.truncate(r.seq, token_count{1}).error() == errc::plan_open);
  CHECK(e.cache.drop_last(r.seq, token_count{1}).error() == errc::plan_open);
  CHECK(e.cache.resolve(r.seq, {}).error() == errc::plan_open);
  check(e.cache);
}

TEST_CASE("case 123: a truncation at an unaligned length gives back only blocks that are fully its own") {
  auto e = engine<>{pool_of(16)};
  auto r = e.serve(ascending(11), 8);
  auto twin = e.fork(r, 11);
  e.truncate(r, 6); // block 1 is published, block 2 is the twin's too
  CHECK(e.now().free == block_count{13});
  e.read(twin);
  e.truncate(twin, 6);
  CHECK(e.now().free == block_count{14}); // block 2 had no one else
  e.release(r);
  e.read(twin);
  e.release(twin);
  CHECK(e.now().free == block_count{14});
  CHECK(e.now().evictable == block_count{2});
}

TEMPLATE_TEST_CASE("B17: a step commits a count, its tokens are resolved later, and only then it publishes", "",
                   default_policies, flat) {
  auto e = engine<TestType>{pool_of(16)};
  auto r = e.serve(ascending(3), 16);
  step_unknown(e, r, {4, 5, 6, 7, 8});
  CHECK(r.seq.length() == token_count{8});
  CHECK(r.seq.resolved() == token_count{3});
  CHECK(e.now().published == block_count{0});
  CHECK(e.hit(ascending(9)) == 0);
  REQUIRE(e.cache.resolve(r.seq, text{4}).has_value()); // one by one, or several at once
  check(e.cache);
  CHECK(r.seq.resolved() == token_count{4});
  CHECK(e.now().published == block_count{1});
  REQUIRE(e.cache.resolve(r.seq, text{5, 6, 7}).has_value());
  CHECK(e.now().published == block_count{1});
  REQUIRE(e.cache.resolve(r.seq, text{8}).has_value());
  check(e.cache);
  CHECK(e.now().published == block_count{2});
  CHECK(e.hit(ascending(9)) == 8);
  e.read(r);
}

TEST_CASE("B17: the next step may start before the tokens of the last are known, but not with known ones") {
  auto e = engine<>{pool_of(16)};
  auto r = e.serve(ascending(3), 16);
  step_unknown(e, r, {4});
  step_unknown(e, r, {5});
  auto const ids = text{6};
  auto const item = engine<>::step_item{r.seq, ids};
  {
    auto const planned = e.cache.plan_step({&item, 1});
    REQUIRE(planned.has_value());
    CHECK(planned->results()[0].status == errc::unresolved);
  }
  check(e.cache);
  CHECK(e.cache.resolve(r.seq, text{4, 5, 6}).error() == errc::out_of_range);
  REQUIRE(e.cache.resolve(r.seq, text{4, 5}).has_value());
  e.step({{&r, {6}}});
  CHECK(r.seq.resolved() == token_count{6});
  e.read(r);
}

TEST_CASE("B17: what was never resolved is forgotten at the end") {
  auto e = engine<>{pool_of(16)};
  auto r = e.serve(ascending(3), 16);
  step_unknown(e, r, {4, 5, 6, 7, 8});
  e.release(r);
  CHECK(e.now().published == block_count{0});
  CHECK(e.now().free == block_count{16});
}

TEST_CASE("B17: a loaded prefix takes the same path as a computed one") {
  auto e = engine<>{pool_of(16)};
  auto r = e.admit(ascending(9), 4);
  auto const ids = ascending(9);
  auto const item = engine<>::step_item{r.seq, ids, step_source::load};
  auto planned = e.cache.plan_step({&item, 1});
  REQUIRE(planned.has_value());
  auto const work = std::vector{engine<>::work{&r, ids}};
  e.execute(*planned, work);
  CHECK(e.now().published == block_count{0}); // a partial load is never visible
  e.commit(std::move(*planned), work);
  CHECK(e.now().published == block_count{2});
  e.read(r);
}

TEST_CASE("case 85: the next turn hits prompt and fed outputs, never the last sampled token") {
  auto e = engine<>{pool_of(128)};
  auto r = e.serve(ascending(100), 50);
  for (token_id t = 101; t <= 149; ++t) { e.step({{&r, {t}}}); } // the 50th output was sampled, and never fed
  CHECK(r.seq.length() == token_count{149});
  e.release(r);
  auto const next_turn = ascending(200);
  auto follow = e.admit(next_turn, 1);
  CHECK(follow.seq.cached() == token_count{148}); // 149 positions exist; 37 blocks of 4 are full
  e.prefill(follow, next_turn);
  e.read(follow);
}

TEST_CASE("case 86: the committed length counts positions whose KV exists, whatever was sampled") {
  auto e = engine<>{pool_of(32)};
  auto r = e.serve(ascending(5), 3); // y0 was sampled at position 4
  CHECK(r.seq.length() == token_count{5});
  e.step({{&r, {50}}});                            // y0 is fed, y1 sampled
  e.step({{&r, {51}}});                            // y1 is fed, y2 sampled: the limit
  CHECK(r.seq.length() == token_count{5 + 3 - 1}); // P + G - 1
  e.step({{&r, {52}}});                            // kept for a follow-up: P + G
  CHECK(r.seq.length() == token_count{8});
  e.release(r);
  CHECK(e.hit(joined(ascending(5), {50, 51, 52, 60})) == 8);
}
