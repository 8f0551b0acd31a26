// SPDX-License-Identifier: Apache-2.0
// A prompt that is resident to its last block: exactly the last position is computed again (S22).
#include <quire/cache/kv_cache.hpp>
#include <quire/prefix/flat_index.hpp>

#include "storage/storage_fixture.hpp"
#include "support/catch_compat.hpp"
#include "support/throwing_contract.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace {
using namespace quire;
using quire_test::ascending;
using quire_test::engine;
using quire_test::figures;
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
auto copying(unsigned blocks, unsigned unit = 4) -> cache_options {
  auto out = pool_of(blocks, unit);
  out.skip_writes = false;
  return out;
}
} // namespace

TEMPLATE_TEST_CASE("S22: P = k * p_b fully resident: attached whole, length P - 1, the last write skipped", "",
                   default_policies, flat) {
  for (auto const unit : {1U, 2U, 3U, 4U, 16U, 17U}) {
    auto e = engine<TestType>{pool_of(16, unit)};
    auto const prompt = ascending(std::size_t{3} * unit);
    auto const p = static_cast<std::uint32_t>(prompt.size());
    e.keep(prompt);
    auto r = e.admit(prompt, 2);
    CHECK(r.seq.cached() == token_count{p - 1});
    CHECK(r.seq.length() == token_count{p - 1});
    CHECK(r.seq.blocks().size() == 3);
    CHECK(r.seq.shared_blocks() == block_count{3});
    auto const work = std::vector{typename engine<TestType>::work{&r, {prompt.back()}}};
    auto planned = e.plan(work);
    CHECK(planned.results()[0].skipped == token_count{1}); // computed, not written
    e.execute(planned, work);
    CHECK(planned.view().slot.size() == 1);
    CHECK(planned.view().slot[0] == -1);
    CHECK(planned.view().position[0] == static_cast<std::int32_t>(p - 1));
    CHECK(planned.view().length[0] == static_cast<std::int32_t>(p));
    e.commit(std::move(planned), work);
    CHECK(r.seq.length() == token_count{p}); // not appended twice
    CHECK(r.seq.blocks().size() == 3);
    CHECK(e.now().published == block_count{3});
    e.step({{&r, {777}}});
    CHECK(r.seq.blocks().size() == 4);
    CHECK(e.cache.statistics().copied_blocks == 0);
    e.read(r);
  }
}

TEST_CASE("S22: a backend that cannot skip a write gets one copied block") {
  auto e = engine<>{copying(16)};
  e.keep(ascending(8));
  auto r = e.admit(ascending(8), 2);
  CHECK(r.seq.length() == token_count{7});
  auto const shared = r.seq.blocks()[1];
  auto const work = std::vector{engine<>::work{&r, {8}}};
  auto planned = e.plan(work);
  CHECK(planned.results()[0].skipped == token_count{0});
  auto const actions = planned.launch();
  auto const own = r.seq.blocks()[1];
  CHECK(own != shared);
  CHECK(planned.view().slot[0] == std::int64_t{own.value()} * 4 + 3);
  REQUIRE(actions.size() == 1);
  CHECK(actions[0] == action::copy_block(group_id{0}, shared, own, token_count{3})); // the valid tokens, and no more
  e.perform(actions);
  e.forward(planned.view(), 0, work[0]);
  e.commit(std::move(planned), work);
  CHECK(r.seq.length() == token_count{8});
  CHECK(e.cache.statistics().copied_blocks == 1);
  e.read(r);
  e.release(r);
  CHECK(e.hit(ascending(9)) == 8);
}

TEST_CASE("S22: without skipped writes a block of one token is computed, not copied") {
  auto e = engine<>{copying(16, 1)};
  e.keep(ascending(4));
  auto r = e.admit(ascending(4), 2);
  CHECK(r.seq.cached() == token_count{3});
  e.prefill(r, ascending(4));
  CHECK(e.cache.statistics().copied_blocks == 0);
  e.read(r);
}

TEST_CASE("S22: the copied block is part of the admitted budget") {
  auto e = engine<>{copying(3)};
  e.keep(ascending(8));                        // blocks for 9 positions = 3, two of them stay
  auto const refused = e.ask(ascending(8), 4); // 12 positions = 3 blocks + 1 copy, of a pool of 3
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == errc::never_fits);
  CHECK(refused.error().needed == block_count{4});
  auto one_more = engine<>{copying(4)};
  one_more.keep(ascending(8));
  auto r = one_more.admit(ascending(8), 4);
  CHECK(one_more.now().promised == block_count{2});
  one_more.prefill(r, ascending(8));
  one_more.step({{&r, {9, 10, 11, 12}}});
  one_more.read(r);
}

TEST_CASE("S22: a prompt that ends inside a block finds its full blocks and computes the rest") {
  auto e = engine<>{pool_of(16)};
  e.keep(ascending(12));
  for (std::size_t p = 1; p <= 13; ++p) {
    auto r = e.admit(ascending(p));
    CHECK(r.seq.cached().value() == std::min(p - 1, p / 4 * 4)); // never the whole prompt
    e.prefill(r, ascending(p));
    CHECK(r.seq.length().value() == p);
    e.release(r);
  }
}

TEST_CASE("S22: a plan over the last position that is dropped skips the write again") {
  auto e = engine<>{pool_of(16)};
  e.keep(ascending(8));
  auto r = e.admit(ascending(8), 2);
  auto const before = figures_of(e.cache);
  for (auto i = 0; i < 4; ++i) {
    auto planned = e.plan({{&r, {8}}});
    CHECK(planned.results()[0].skipped == token_count{1});
    if (i % 2 == 0) { continue; }
    CHECK(planned.launch().empty());
    CHECK(planned.view().slot[0] == -1);
  }
  quire_test::check(e.cache);
  CHECK(figures_of(e.cache) == before);
  e.prefill(r, ascending(8));
  e.read(r);
}

TEST_CASE("S22: after a truncation the position is written, into a copy") {
  for (auto const next : {token_id{70}, token_id{7}}) { // 7 is what the shared block has there; 80 is not
    auto e = engine<>{pool_of(16)};
    e.keep(ascending(8));
    auto r = e.admit(ascending(8), 2);
    e.truncate(r, 6); // positions 6 and 7 are open again, and may get other tokens
    auto const shared = r.seq.blocks()[1];
    e.step({{&r, {next, 80}}});
    CHECK(r.seq.blocks()[1] != shared);
    e.read(r);
    CHECK(e.hit(ascending(9)) == 8); // what was shared is untouched
  }
}

TEST_CASE("S22: another token than the prompt's at P - 1 is refused, whatever there is room for") {
  for (auto const spare : {0U, 1U, 10U}) {
    CAPTURE(spare);
    auto e = engine<>{pool_of(6 + spare)};
    e.keep(ascending(8));
    auto r = e.admit(ascending(8), 4);                 // 2 of its 3 blocks are there
    auto const others = e.admit(ascending(8, 100), 4); // 3, which leaves \p spare
    auto const before = e.now();
    CHECK(before.promised == block_count{1 + 3});
    for (auto const& ids : {text{99}, text{99, 8}}) {
      auto const planned = e.cache.plan_step({{r.seq, ids}});
      REQUIRE(planned.has_value());
      CHECK(planned->results()[0].status == errc::other_tokens);
    }
    quire_test::check(e.cache);
    CHECK(e.now() == before);
    e.prefill(r, ascending(8)); // its own token needs no block
    CHECK(e.now().promised == before.promised);
    e.read(r);
  }
}

TEST_CASE("S22: who wants another token at P - 1 cuts the position before it off, and writes into a copy") {
  auto e = engine<>{pool_of(16)};
  e.keep(ascending(8));
  auto r = e.admit(ascending(8), 2);
  e.truncate(r, 6);
  auto const shared = r.seq.blocks()[1];
  e.step({{&r, {7, 99}}});
  CHECK(r.seq.blocks()[1] != shared);
  e.read(r);
  CHECK(e.hit(ascending(9)) == 8);
  CHECK(e.hit(joined(ascending(7), {99, 1})) == 8);
}

TEST_CASE("B17: a position in a shared block is resolved by the token it was computed for") {
  auto e = engine<>{pool_of(16)};
  e.keep(ascending(8));
  auto r = e.admit(ascending(8), 2);
  auto const item = engine<>::step_item{r.seq, token_count{1}};
  auto planned = e.cache.plan_step({&item, 1});
  REQUIRE(planned.has_value());
  planned->launch();
  REQUIRE(e.cache.commit(std::move(*planned)).has_value());
  CHECK(e.cache.resolve(r.seq, text{99}).error() == errc::other_tokens);
  quire_test::check(e.cache);
  CHECK(r.seq.resolved() == token_count{7});
  REQUIRE(e.cache.resolve(r.seq, text{8}).has_value());
  quire_test::check(e.cache);
}

TEST_CASE("S22: a fork of a request at P - 1 writes its own next position") {
  auto e = engine<>{pool_of(16)};
  e.keep(ascending(8));
  auto r = e.admit(ascending(8), 2);
  auto twin = e.fork(r, 7);
  CHECK(e.now().promised == block_count{1 + 2}); // the twin's copy beside the block behind, for each
  e.step({{&r, {8}}, {&twin, {99}}});            // the twin's token is not the stored one
  e.read(r);
  e.read(twin);
}

TEST_CASE("case 21: with every block resident one position is computed, never zero") {
  for (auto const p : {16U, 32U}) {
    auto e = engine<>{pool_of(8, 16)};
    e.keep(ascending(p));
    auto r = e.admit(ascending(p));
    CHECK(r.seq.cached().value() == p - 1);
    auto const ids = text{};
    auto const nothing = engine<>::step_item{r.seq, ids};
    {
      auto const planned = e.cache.plan_step({&nothing, 1});
      REQUIRE(planned.has_value());
      CHECK(planned->results()[0].status == errc::zero_tokens); // a step of zero positions is refused, not launched
    }
    e.prefill(r, ascending(p));
    CHECK(r.seq.length().value() == p);
  }
}

TEST_CASE("case 23: after a full hit both blocks are cached and the chain goes on") {
  auto e = engine<>{pool_of(8)};
  e.keep(ascending(8));
  auto r = e.admit(ascending(8), 5);
  e.prefill(r, ascending(8));
  e.step({{&r, {9, 10, 11, 12}}});
  CHECK(e.now().published == block_count{3});
  e.release(r);
  CHECK(e.hit(ascending(13)) == 12);
}

TEST_CASE("case 24: hit and computed add up to the prompt, the recomputed position counted once") {
  auto e = engine<>{pool_of(8)};
  e.keep(ascending(8));
  auto const before = e.cache.statistics();
  auto r = e.serve(ascending(8));
  auto const done = e.cache.statistics() - before;
  CHECK(done.prompt_tokens == 8);
  CHECK(done.hit_tokens == 7);
  CHECK(done.computed_tokens == 1);
  CHECK(done.loaded_tokens == 0);
  CHECK(done.requests == 1);
}

TEST_CASE("case 129: a request that needs every position computes every position and may publish") {
  auto e = engine<>{pool_of(16)};
  e.keep(ascending(8));
  auto const prompt = ascending(12);
  auto wanted = admit_request{};
  wanted.scope = e.scope;
  wanted.prompt = prompt;
  wanted.max_output = token_count{1};
  wanted.reuse = reuse_rule::write_only;
  auto r = e.admit(wanted);
  CHECK(r.seq.cached() == token_count{0});
  e.prefill(r, prompt);
  e.read(r);
  e.release(r);
  CHECK(e.hit(ascending(13)) == 12);
  wanted.reuse = reuse_rule::none;
  auto const secret = ascending(12, 500);
  wanted.prompt = secret;
  auto alone = e.admit(wanted);
  e.prefill(alone, secret);
  e.release(alone);
  CHECK(e.hit(secret) == 0);
}

TEST_CASE("case 130: whoever needs every output gets every position, at any length, and counts no hit") {
  auto e = engine<>{pool_of(64)};
  e.keep(ascending(60));
  for (auto const length : {55U, 56U, 57U}) {
    auto const prompt = ascending(length);
    auto wanted = admit_request{};
    wanted.scope = e.scope;
    wanted.prompt = prompt;
    wanted.max_output = token_count{1};
    wanted.reuse = reuse_rule::write_only;
    auto const before = e.cache.statistics();
    auto r = e.admit(wanted);
    auto const items = std::vector<engine<>::work>{{&r, prompt}};
    auto planned = e.plan(items);
    e.execute(planned, items);
    CHECK(planned.view().row_queries(0) == static_cast<std::int32_t>(length)); // an output for each
    e.commit(std::move(planned), items);
    auto const done = e.cache.statistics() - before;
    CHECK(done.hit_tokens == 0);
    CHECK(done.computed_tokens == length);
    CHECK(done.prompt_tokens == length);
    CHECK(done.published_blocks == 0); // it is there already
    e.release(r);
  }
}
