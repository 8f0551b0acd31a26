// SPDX-License-Identifier: Apache-2.0
// Who shares which block, who copies, and who may go on writing (S23).
#include <quire/cache/kv_cache.hpp>
#include <quire/prefix/flat_index.hpp>

#include "storage/storage_fixture.hpp"
#include "support/catch_compat.hpp"

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace {
using namespace quire;
using quire_test::ascending;
using quire_test::check;
using quire_test::engine;
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

template <class Engine>
auto distinct_blocks(std::vector<typename Engine::request const*> const& requests) -> std::size_t {
  auto all = std::set<std::uint32_t>{};
  for (auto const* r : requests) {
    for (auto const b : numbers(r->seq.blocks())) { all.insert(b); }
  }
  return all.size();
}
} // namespace

TEMPLATE_TEST_CASE("S23: three requests that share 8 tokens hold 5 blocks, unshared 9", "", default_policies, flat) {
  auto const shared = ascending(8);
  auto const prompt = [&](token_id n) { return joined(shared, {n, n + 1, n + 2}); };
  auto e = engine<TestType>{pool_of(16)};
  auto a = e.serve(prompt(100));
  auto b = e.serve(prompt(200));
  auto c = e.serve(prompt(300));
  CHECK(distinct_blocks<engine<TestType>>({&a, &b, &c}) == 5);
  CHECK(16 - e.now().free.value() == 5);
  auto unique_tokens = std::set<std::uint64_t>{}; // what their slots hold: one word per token behind its prefix
  for (auto const* r : {&a, &b, &c}) {
    for (std::size_t p = 0; p < r->tokens.size(); ++p) {
      unique_tokens.insert(e.device[r->seq.blocks()[p / 4].value() * 4 + p % 4]);
    }
  }
  CHECK(unique_tokens.size() == 17); // in 5 * 4 = 20 slots
  for (auto const* r : {&a, &b, &c}) {
    CHECK(r->seq.blocks().size() == 3);
    CHECK(r->seq.shared_blocks() == block_count{2});
    e.read(*r);
  }
  auto alone = engine<TestType>{pool_of(16)};
  alone.scope = alone.open("a");
  auto x = alone.serve(prompt(100));
  alone.scope = alone.open("b");
  auto y = alone.serve(prompt(200));
  alone.scope = alone.open("c");
  auto z = alone.serve(prompt(300));
  CHECK(distinct_blocks<engine<TestType>>({&x, &y, &z}) == 9);
}

TEMPLATE_TEST_CASE("S23: a full shared block is never copied and never written", "", default_policies, flat) {
  auto e = engine<TestType>{pool_of(32)};
  auto a = e.serve(ascending(8), 8);
  auto b = e.fork(a, 8);
  auto c = e.serve(ascending(9), 8);
  for (token_id t = 0; t < 6; ++t) { e.step({{&a, {100 + t}}, {&b, {200 + t}}, {&c, {300 + t}}}); }
  CHECK(e.cache.statistics().copied_blocks == 0);
  CHECK(numbers(a.seq.blocks().first(2)) == numbers(b.seq.blocks().first(2)));
  CHECK(numbers(a.seq.blocks().first(2)) == numbers(c.seq.blocks().first(2)));
  for (auto const* r : {&a, &b, &c}) { e.read(*r); }
}

TEST_CASE("S23: a reader of a partial block that appends copies the valid prefix first") {
  for (std::size_t at = 5; at <= 7; ++at) {
    auto e = engine<>{pool_of(32)};
    auto a = e.serve(ascending(7), 8);
    auto reader = e.fork(a, at);
    auto const shared = a.seq.blocks()[1];
    CHECK(reader.seq.blocks()[1] == shared);
    e.step({{&a, {100}}}); // the writer goes on in place
    CHECK(a.seq.blocks()[1] == shared);
    e.step({{&reader, {200}}});
    CHECK(reader.seq.blocks()[1] != shared);
    CHECK(e.cache.statistics().copied_blocks == 1);
    e.read(a);
    e.read(reader);
    e.step({{&reader, {201}}}); // alone now: no second copy
    CHECK(e.cache.statistics().copied_blocks == 1);
    e.read(reader);
  }
}

TEST_CASE("S23: a copy that is filled is found by its whole text, what was copied included") {
  auto e = engine<>{pool_of(32)};
  auto a = e.serve(ascending(7), 8);
  auto reader = e.fork(a, 6);
  e.step({{&reader, {70, 80}}});
  auto const whole = joined(ascending(6), {70, 80});
  CHECK(e.hit(joined(whole, {9})) == 8);
  CHECK(e.hit(joined(joined(ascending(4), {0, 0}), {70, 80, 9})) == 4); // not by what the new block had before
  e.serve(joined(whole, {9}));                                          // reads every byte of it
}

TEST_CASE("S23: after the writer leaves a sole reader takes its block over") {
  auto e = engine<>{pool_of(32)};
  auto a = e.serve(ascending(6), 8);
  auto reader = e.fork(a, 6);
  auto const block = reader.seq.blocks()[1];
  e.release(a);
  e.step({{&reader, {70}}});
  CHECK(reader.seq.blocks()[1] == block);
  CHECK(e.cache.statistics().copied_blocks == 0);
  e.read(reader);
}

TEST_CASE("S23: of two readers without a writer the first to append copies, the second takes over") {
  auto e = engine<>{pool_of(32)};
  auto a = e.serve(ascending(6), 8);
  auto b = e.fork(a, 6);
  auto c = e.fork(a, 5);
  auto const block = b.seq.blocks()[1];
  e.release(a);
  e.step({{&c, {90}}});
  CHECK(c.seq.blocks()[1] != block);
  e.step({{&b, {80}}});
  CHECK(b.seq.blocks()[1] == block);
  CHECK(e.cache.statistics().copied_blocks == 1);
  e.read(b);
  e.read(c);
}

TEMPLATE_TEST_CASE("S23: publishing turns the holds of readers into pins", "", default_policies, flat) {
  auto e = engine<TestType>{pool_of(32)};
  auto a = e.serve(ascending(6), 8);
  auto reader = e.fork(a, 6);
  e.step({{&a, {7, 8, 9}}}); // the shared block is full and published
  e.release(a);
  CHECK(e.now().evictable == block_count{0}); // the reader still needs it
  e.read(reader);
  e.step({{&reader, {70}}}); // copies from the published block
  e.read(reader);
  CHECK(e.cache.statistics().copied_blocks == 1);
  CHECK(e.hit(ascending(9)) == 8);
  e.release(reader);
  CHECK(e.now().free.value() + e.now().evictable.value() == 32);
}

TEMPLATE_TEST_CASE("S23: every reader of a block that is published keeps its own hold on it", "", default_policies,
                   flat) {
  auto e = engine<TestType>{pool_of(32)};
  auto a = e.serve(ascending(6), 8);
  auto first = e.fork(a, 6);
  auto second = e.fork(a, 5);
  e.step({{&a, {7, 8, 9}}});
  e.release(a);
  e.release(first);
  CHECK(e.now().evictable == block_count{0}); // the second reader still needs it
  e.read(second);
  e.release(second);
  CHECK(e.now().evictable == block_count{2});
}

TEMPLATE_TEST_CASE(
    "S26: the same tokens twice: the second reads the first's block from its commit on, and its own comes back", "",
    default_policies, flat) {
  auto e = engine<TestType>{pool_of(32)};
  auto a = e.admit(ascending(6), 8);
  auto b = e.admit(ascending(6), 8);
  auto const work = std::vector<typename engine<TestType>::work>{{&a, ascending(6)}, {&b, ascending(6)}};
  auto planned = e.plan(work); // neither sees the other
  e.execute(planned, work);
  auto const own = b.seq.blocks()[0];
  CHECK(a.seq.blocks()[0] != own);
  CHECK(e.now().free == block_count{28});
  e.commit(std::move(planned), work);
  CHECK(e.now().published == block_count{1});
  CHECK(a.seq.shared_blocks() == block_count{1});
  CHECK(b.seq.shared_blocks() == block_count{1});
  CHECK(a.seq.blocks()[0] == b.seq.blocks()[0]);
  CHECK(e.cache.block_state_of(group_id{0}, own) == block_state::free);
  CHECK(e.now().free == block_count{29});
  CHECK(a.seq.blocks()[1] != b.seq.blocks()[1]); // what is not full stays its own
  CHECK(e.cache.statistics().duplicate_blocks == 1);
  e.read(b);
  e.step({{&b, {70, 80}}});
  CHECK(e.now().published == block_count{2});
  e.release(a); // the first block is still under b's path
  CHECK(e.now().evictable == block_count{0});
  CHECK(e.hit(joined(ascending(6), {70, 80, 90})) == 8);
  e.read(b);
  auto const free = e.now().free.value();
  e.release(b);
  CHECK(e.now().free.value() == free);
  CHECK(e.now().evictable == block_count{2});
  CHECK(e.hit(joined(ascending(6), {70, 80, 90})) == 8);
}

TEMPLATE_TEST_CASE("S26: equal blocks that are filled token by token, cut and filled again meet as well", "",
                   default_policies, flat) {
  auto e = engine<TestType>{pool_of(32)};
  auto a = e.serve(ascending(2), 12);
  auto b = e.serve(ascending(2), 12);
  for (token_id t = 3; t <= 9; ++t) { e.step({{&a, {t}}, {&b, {t}}}); }
  CHECK(numbers(a.seq.blocks().first(2)) == numbers(b.seq.blocks().first(2)));
  CHECK(e.now().published == block_count{2});
  CHECK(e.now().free == block_count{32 - 4});
  e.truncate(b, 6);
  e.step({{&b, {7, 8}}}); // writes into a copy of the block that it shares, which is that block again when it is full
  CHECK(numbers(a.seq.blocks().first(2)) == numbers(b.seq.blocks().first(2)));
  CHECK(e.cache.statistics().copied_blocks == 1);
  CHECK(e.cache.statistics().duplicate_blocks == 3);
  e.read(a);
  e.read(b);
}

TEST_CASE("B6: what is decoded behind a cut lies behind the cut, in blocks, rows and tokens") {
  for (auto const cut : {10U, 9U, 6U}) { // inside the block at hand, and inside one that is published
    CAPTURE(cut);
    auto e = engine<>{pool_of(32)};
    auto r = e.serve(ascending(7), 20);
    auto const between = e.serve(ascending(3, 500), 4);         // so that the blocks of the first do not lie in a row
    for (token_id t = 8; t <= 11; ++t) { e.step({{&r, {t}}}); } // the last ones inside a block: the short way
    auto const blocks = r.seq.blocks();
    REQUIRE(blocks[2].value() != blocks[1].value() + 1);
    e.truncate(r, cut);
    auto const kept = (cut + 3) / 4;
    auto const copied = cut == 6 ? 1U : 0U; // of 27 positions, and one of 7
    CHECK(e.now().promised == block_count{7 - kept + copied + 1});
    for (token_id t = 90; t <= 94; ++t) { e.step({{&r, {t}}}); }
    e.read(r);
    auto const whole = r.tokens;
    e.release(r);
    CHECK(e.hit(joined(whole, {1})) == whole.size() / 4 * 4);
    CHECK(e.hit(ascending(9)) == 8); // what was there stays as it was
  }
}

TEST_CASE("B7: a fork has found what it shares, and no more") {
  auto e = engine<>{pool_of(32)};
  e.keep(ascending(8));
  auto r = e.serve(ascending(12), 8);
  REQUIRE(r.seq.cached() == token_count{8});
  for (auto const length : {0U, 4U, 6U, 11U, 12U}) {
    auto const fork = e.cache.fork(r.seq, token_count{length}).value();
    CHECK(fork.cached() == token_count{std::min(length, 11U)});
    CHECK(fork.found() == token_count{length});
    CHECK(fork.rebuilt() == token_count{0});
  }
}

TEST_CASE("case 25: of two that share a partial block each gets its own, the full ones stay shared") {
  auto e = engine<>{pool_of(16, 2)};
  auto two = e.serve({1, 2, 3, 4, 5}, 4);
  auto three = e.fork(two, 5);
  e.step({{&two, {6}}, {&three, {9}}});
  CHECK(numbers(two.seq.blocks().first(2)) == numbers(three.seq.blocks().first(2)));
  CHECK(two.seq.blocks()[2] != three.seq.blocks()[2]);
  e.read(two);
  e.read(three);
}

TEST_CASE("case 26: what is published once is not published again, however often the text grows or is cut") {
  auto e = engine<>{pool_of(16)};
  auto r = e.serve(ascending(6), 10);
  for (auto i = 0; i < 3; ++i) {
    e.step({{&r, {7, 8, 9}}});
    CHECK(e.now().published == block_count{2});
    e.truncate(r, 6);
    CHECK(e.now().published == block_count{2}); // nothing unpublishes, no shorter boundary appears
  }
  CHECK(e.cache.statistics().published_blocks == 2);
}

TEST_CASE("case 27: a copy is an action with source, target and length, and nothing is readable before its commit") {
  auto e = engine<>{pool_of(16)};
  auto a = e.serve(ascending(6), 8);
  auto b = e.fork(a, 6);
  auto planned = e.plan({{&b, {70, 80}}});
  auto const actions = planned.launch();
  REQUIRE(actions.size() == 1);
  CHECK(actions[0].kind == action_kind::copy);
  CHECK(actions[0].tokens == token_count{2});
  CHECK(e.now().published == block_count{1}); // the full copy publishes with the commit, not before
  CHECK(e.cache.block_state_of(group_id{0}, actions[0].target.block) == block_state::writing);
  e.perform(actions);
  e.forward(planned.view(), 0, {&b, {70, 80}});
  e.commit(std::move(planned), {{&b, {70, 80}}});
  CHECK(e.now().published == block_count{2});
  e.read(b);
}

TEST_CASE("case 83: a fork is a copy of the parent's table, once, and both go their own ways") {
  auto e = engine<>{pool_of(32)};
  auto parent = e.serve(ascending(10), 16);
  auto child = e.fork(parent, 10);
  CHECK(numbers(child.seq.blocks()) == numbers(parent.seq.blocks()));
  for (token_id t = 0; t < 10; ++t) { e.step({{&parent, {100 + t}}, {&child, {200 + t}}}); }
  CHECK(numbers(child.seq.blocks().first(2)) == numbers(parent.seq.blocks().first(2)));
  for (std::size_t j = 2; j < child.seq.blocks().size(); ++j) {
    CHECK(child.seq.blocks()[j] != parent.seq.blocks()[j]);
  }
  e.read(parent);
  e.read(child);
}

TEST_CASE("case 84: two beams share exactly their common positions") {
  auto e = engine<>{pool_of(32, 1)};
  auto first = e.serve({'a', 'b', 'c'}, 8);
  auto second = e.fork(first, 3);
  e.step({{&first, {'d'}}, {&second, {'f'}}});
  e.step({{&first, {'e'}}, {&second, {'g'}}});
  CHECK(numbers(first.seq.blocks().first(3)) == numbers(second.seq.blocks().first(3)));
  CHECK(first.seq.blocks()[3] != second.seq.blocks()[3]);
  CHECK(first.seq.blocks()[4] != second.seq.blocks()[4]);
  e.read(first);
  e.read(second);
}

TEMPLATE_TEST_CASE("B7: a fork at any position copies at most one partial block", "", default_policies, flat) {
  for (auto const unit : {1U, 2U, 3U, 4U, 5U, 16U}) {
    for (std::size_t at = 0; at <= 11; ++at) {
      auto e = engine<TestType>{pool_of(64, unit)};
      auto parent = e.serve(ascending(11), 8);
      auto child = e.fork(parent, at);
      CHECK(child.seq.length().value() == at);
      auto const before = e.cache.statistics().copied_blocks;
      for (token_id t = 0; t < 5; ++t) { e.step({{&child, {200 + t}}}); }
      CHECK(e.cache.statistics().copied_blocks - before <= 1);
      CHECK((e.cache.statistics().copied_blocks - before == 0 || at % unit != 0));
      e.step({{&parent, {300}}});
      e.read(parent);
      e.read(child);
      e.release(parent);
      e.read(child);
    }
  }
}

TEST_CASE("B7: impossible forks are refused and change nothing") {
  auto e = engine<>{pool_of(8)};
  auto r = e.serve(ascending(6), 8);
  auto const too_long = e.cache.fork(r.seq, token_count{7});
  REQUIRE_FALSE(too_long.has_value());
  CHECK(too_long.error() == errc::out_of_range);
  auto planned = e.plan({{&r, {7}}});
  auto const busy = e.cache.fork(r.seq);
  REQUIRE_FALSE(busy.has_value());
  CHECK(busy.error() == errc::plan_open);
  planned = {};
  check(e.cache);
  auto a = e.fork(r, 6); // 14 positions = 4 blocks: 3 more than it shares, with the copy
  CHECK(e.now().promised == block_count{2 + 3});
  auto const full = e.cache.fork(r.seq);
  REQUIRE_FALSE(full.has_value());
  CHECK(full.error() == errc::no_blocks);
  check(e.cache);
  CHECK(e.cache.live_sequences() == sequence_count{2});
}
