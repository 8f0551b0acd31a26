// SPDX-License-Identifier: Apache-2.0
// The append algorithm step by step (S26), and what a dropped plan leaves behind.
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
using quire_test::head;
using quire_test::joined;
using quire_test::pool_of;
} // namespace

TEST_CASE("S26: 1 - the longest prefix is found, verified and pinned at admission") {
  auto e = engine<>{pool_of(8)};
  e.keep(ascending(8));
  CHECK(figures_of(e.cache) == figures{6, 2, 2, 0, 0});
  auto r = e.admit(joined(ascending(7), {99, 9})); // blocks (1 2 3 4) (5 6 7 99): the second differs in its last token
  CHECK(r.seq.cached() == token_count{4});
  CHECK(r.seq.length() == token_count{4});
  CHECK(r.seq.blocks().size() == 1);
  CHECK(r.seq.shared_blocks() == block_count{1});
  CHECK(figures_of(e.cache) == figures{6, 1, 2, 2, 0}); // 10 positions = 3 blocks, one of them attached
  e.prefill(r, joined(ascending(7), {99, 9}));
  e.read(r);
}

TEST_CASE("S26: 2 - only committed content is published") {
  auto e = engine<>{pool_of(8)};
  auto r = e.admit(ascending(9));
  auto planned = e.plan({{&r, ascending(9)}});
  CHECK(e.now().published == block_count{0});
  CHECK(e.admit(ascending(9)).seq.cached() == token_count{0});
  e.execute(planned, {{&r, ascending(9)}});
  CHECK(r.seq.length() == token_count{0}); // reserved is not committed
  CHECK(r.seq.blocks().size() == 3);
  CHECK(e.now().published == block_count{0});
  e.commit(std::move(planned), {{&r, ascending(9)}});
  CHECK(r.seq.length() == token_count{9});
  CHECK(e.now().published == block_count{2}); // the partial third block is not published
  CHECK(r.seq.shared_blocks() == block_count{2});
  CHECK(e.cache.block_state_of(group_id{0}, r.seq.blocks()[1]) == block_state::published);
  CHECK(e.cache.block_state_of(group_id{0}, r.seq.blocks()[2]) == block_state::private_);
}

TEST_CASE("S26: 2 - a block that decode steps fill token by token is found after its last one") {
  auto e = engine<>{pool_of(8)};
  auto r = e.serve(ascending(5), 8);
  e.step({{&r, {6}}});
  e.step({{&r, {7}}});
  CHECK(e.now().published == block_count{1});
  e.step({{&r, {8}}});
  CHECK(e.now().published == block_count{2});
  CHECK(e.hit(ascending(9)) == 8);
}

TEST_CASE("S26: 3 - an append fills the tail, takes a block when it is full, and copies a shared tail first") {
  auto e = engine<>{pool_of(8)};
  auto r = e.serve(ascending(3), 8);
  auto const first = r.seq.blocks()[0];
  e.step({{&r, {4}}});
  CHECK(r.seq.blocks().size() == 1); // room in the tail
  CHECK(r.seq.blocks()[0] == first);
  e.step({{&r, {5}}});
  CHECK(r.seq.blocks().size() == 2); // full: one more
  auto twin = e.fork(r, 5);
  CHECK(twin.seq.blocks()[1] == r.seq.blocks()[1]);
  auto planned = e.plan({{&twin, {6}}});
  auto const actions = planned.launch();
  REQUIRE(actions.size() == 1);
  CHECK(actions[0] == action::copy_block(group_id{0}, r.seq.blocks()[1], twin.seq.blocks()[1], token_count{1}));
}

TEST_CASE("S26: 4 - a dropped plan leaves everything as it was, and nothing is published") {
  auto e = engine<>{pool_of(4)};
  e.keep(ascending(8));
  e.keep(ascending(4, 50));
  auto r = e.admit(ascending(9, 100)); // three blocks: one free, two victims
  auto const before = figures_of(e.cache);
  {
    auto const planned = e.plan({{&r, ascending(9, 100)}});
    CHECK(e.now().free == block_count{1});
    CHECK(e.now().evictable == block_count{3});
    CHECK(e.now().reserved == block_count{3});
    CHECK(e.now().available == block_count{1});
    CHECK(r.seq.blocks().empty());
    CHECK_FALSE(e.ask(ascending(9)).has_value()); // its two blocks are there, but the plan may need them
  }
  check(e.cache);
  CHECK(figures_of(e.cache) == before);
  CHECK(r.seq.length() == token_count{0});
  CHECK(r.seq.blocks().empty());
  CHECK(e.cache.statistics().evicted_blocks == 0);
  e.release(r);
  CHECK(e.admit(ascending(9)).seq.cached() == token_count{8}); // nothing was evicted
}

TEST_CASE("S26: 4 - a launched plan that is dropped retires its blocks and keeps its evictions") {
  auto e = engine<>{pool_of(4)};
  e.keep(ascending(8));
  e.keep(ascending(4, 50));
  auto r = e.admit(ascending(9, 100));
  {
    auto planned = e.plan({{&r, ascending(9, 100)}});
    e.execute(planned, {{&r, ascending(9, 100)}});
  }
  check(e.cache);
  CHECK(r.seq.length() == token_count{0});
  CHECK(r.seq.blocks().empty());
  CHECK(e.cache.statistics().evicted_blocks == 2);
  CHECK(e.now().free == block_count{3});
  CHECK(e.now().published == block_count{1});
  CHECK(e.now().promised == block_count{3}); // it may still compute
  e.prefill(r, ascending(9, 100));
  CHECK(r.seq.length() == token_count{9});
}

TEST_CASE("S26: 5 - the end releases exactly once, and what was published stays") {
  auto e = engine<>{pool_of(8)};
  auto r = e.serve(ascending(10), 3);
  CHECK(figures_of(e.cache) == figures{5, 0, 2, 1, 0}); // 13 positions = 4 blocks
  e.release(r);
  CHECK(figures_of(e.cache) == figures{6, 2, 2, 0, 0});
  CHECK(e.cache.live_sequences() == sequence_count{0});
  CHECK_FALSE(static_cast<bool>(r.seq));
}

TEST_CASE("S26: chunks of any size lead to the same blocks as one step") {
  auto const prompt = ascending(23);
  for (auto const unit : {1U, 2U, 3U, 5U, 16U, 17U}) {
    for (auto const chunk : {1U, 2U, 3U, 4U, 5U, 7U, 23U}) {
      auto e = engine<>{pool_of(64, unit)};
      auto r = e.admit(prompt, 2);
      for (std::size_t at = 0; at < prompt.size(); at += chunk) {
        e.step({{&r, head(quire_test::tail(prompt, at), std::min<std::size_t>(chunk, prompt.size() - at))}});
      }
      CHECK(r.seq.blocks().size() == (23 + unit - 1) / unit);
      CHECK(e.now().published.value() == 23 / unit);
      e.read(r);
    }
  }
}
