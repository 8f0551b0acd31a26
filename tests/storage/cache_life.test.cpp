// SPDX-License-Identifier: Apache-2.0
// From admission to release: what becomes visible when, what is given back how often, and what is counted.
#include <quire/block/ticket_fence.hpp>
#include <quire/cache/kv_cache.hpp>
#include <quire/observe/counting_observer.hpp>
#include <quire/prefix/fifo_eviction.hpp>
#include <quire/prefix/flat_index.hpp>

#include "storage/storage_fixture.hpp"
#include "support/catch_compat.hpp"
#include "support/throwing_contract.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
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
using quire_test::numbers;
using quire_test::pool_of;
using quire_test::text;

struct flat_fifo : default_policies {
  using eviction = fifo_eviction;
  template <class E, class D>
  using index = flat_index<E, D>;
};
struct ticketed : default_policies {
  using fence = ticket_fence<1>;
};
struct observed : default_policies {
  using observer = counting_observer;
};
} // namespace

TEMPLATE_TEST_CASE("case 29: of two equal prompts in one step each computes its own blocks, and one set is kept", "",
                   default_policies, flat_fifo) {
  auto e = engine<TestType>{pool_of(16, 16)};
  auto const prompt = ascending(32);
  auto a = e.admit(prompt, 2);
  auto b = e.admit(prompt, 2);
  CHECK(b.seq.cached() == token_count{0}); // nothing is visible before its commit
  auto const work = std::vector<typename engine<TestType>::work>{{&a, prompt}, {&b, prompt}};
  auto planned = e.plan(work);
  e.execute(planned, work);
  auto const in_a = numbers(a.seq.blocks());
  for (auto const block : numbers(b.seq.blocks())) { CHECK(std::count(in_a.begin(), in_a.end(), block) == 0); }
  CHECK(e.ask(joined(prompt, {7}))->cached() == token_count{0}); // computed, but not committed
  e.commit(std::move(planned), work);
  CHECK(e.now().published == block_count{2}); // once, not twice
  CHECK(numbers(b.seq.blocks()) == numbers(a.seq.blocks()));
  CHECK(e.now().free == block_count{14});
  e.read(a);
  e.read(b);
  CHECK(e.hit(joined(prompt, {7})) == 32);
}

TEMPLATE_TEST_CASE("case 29: an equal block that nobody uses any more gives its place to the later one", "",
                   default_policies, flat_fifo) {
  auto e = engine<TestType>{pool_of(16)};
  auto a = e.admit(ascending(9));
  auto b = e.admit(ascending(9));
  e.prefill(a, ascending(9));
  auto const in_a = numbers(a.seq.blocks().first(2));
  e.release(a);
  e.prefill(b, ascending(9));
  for (auto const block : numbers(b.seq.blocks())) { CHECK(std::count(in_a.begin(), in_a.end(), block) == 0); }
  CHECK(e.now().published == block_count{2});
  CHECK(e.now().evictable == block_count{0});
  CHECK(e.now().free == block_count{13}); // the older two are free again
  e.read(b);
}

TEMPLATE_TEST_CASE("case 30: taking a block for writing removes its identity in the same operation", "",
                   default_policies, flat_fifo) {
  auto e = engine<TestType>{pool_of(4)};
  e.keep(ascending(13)); // three idle blocks
  auto r = e.admit(ascending(9, 500), 4);
  auto planned = e.plan({{&r, ascending(9, 500)}});
  CHECK(e.now().published == block_count{3});
  e.execute(planned, {{&r, ascending(9, 500)}});
  CHECK(e.now().published == block_count{1}); // two victims are unmatchable from the launch on
  for (auto const block : r.seq.blocks()) { CHECK(e.cache.block_state_of(group_id{0}, block) == block_state::writing); }
  e.commit(std::move(planned), {{&r, ascending(9, 500)}});
  e.release(r);
  auto old = e.admit(ascending(9), 1);
  CHECK(old.seq.cached() == token_count{4}); // what is left of the old text, and only that
  e.prefill(old, ascending(9));
  e.read(old);
}

TEMPLATE_TEST_CASE("case 31: what a look-up found stays until it is used, because finding pins", "", default_policies,
                   flat_fifo) {
  auto e = engine<TestType>{pool_of(6)};
  e.keep(ascending(9));
  auto waiting = e.admit(ascending(9), 3); // enqueued; its step comes later
  CHECK(waiting.seq.cached() == token_count{8});
  for (token_id i = 0; i < 6; ++i) { e.keep(ascending(7, 100 * (i + 1))); } // pressure
  CHECK(e.cache.statistics().evicted_blocks > 0);
  e.prefill(waiting, ascending(9));
  e.read(waiting);
}

TEST_CASE("case 33: a block that several hold comes back once, with the last of them") {
  auto e = engine<>{pool_of(8)};
  auto r = e.serve(ascending(6), 2);
  auto twin = e.fork(r, 6);
  auto third = e.fork(twin, 5);
  auto const free = e.now().free.value();
  e.release(r);
  CHECK(e.now().free.value() == free);
  e.release(third);
  CHECK(e.now().free.value() == free);
  e.release(twin);
  CHECK(e.now().free.value() == free + 1);
  CHECK_THROWS_AS(e.cache.release(std::move(twin.seq)), quire_test::contract_violation);
  CHECK(e.now().free.value() == free + 1);
}

TEMPLATE_TEST_CASE("case 34: after 2000 requests and a drain everything is back", "", default_policies, flat_fifo,
                   ticketed) {
  auto e = kv_cache<TestType>{pool_of(32)};
  auto const scope = e.open_scope(compute_identity{quire_test::some_fields()}, quire_test::domain_of("tenant"));
  auto random = std::mt19937{20260101};
  for (auto i = 0; i < 2000; ++i) {
    auto prompt = ascending(1 + random() % 40, static_cast<token_id>(random() % 4) * 1000);
    auto wanted = admit_request{};
    wanted.scope = scope;
    wanted.prompt = prompt;
    wanted.max_output = token_count{4};
    auto got = e.admit(wanted);
    REQUIRE(got.has_value());
    auto const from = got->length().value();
    auto const ids = quire_test::tail(prompt, from);
    auto const item = typename kv_cache<TestType>::step_item{*got, ids};
    auto planned = e.plan_step({&item, 1});
    REQUIRE(planned.has_value());
    if (random() % 8 == 0) { continue; } // dropped, handle and plan
    planned->launch();
    auto const until = e.fence().issue(timeline_id{0});
    if (random() % 8 == 0) { e.cancel(std::move(*got)); }
    static_cast<void>(e.commit(std::move(*planned), until));
    if constexpr (std::is_same_v<TestType, ticketed>) { e.fence().complete(timeline_id{0}, until); }
    if (i % 100 == 0) { check(e); }
  }
  e.reclaim();
  check(e);
  CHECK(e.live_sequences() == sequence_count{0});
  CHECK(e.figures(group_id{0}).promised == block_count{0});
  CHECK(e.figures(group_id{0}).free + e.figures(group_id{0}).published == block_count{32});
  CHECK(e.figures(group_id{0}).evictable == e.figures(group_id{0}).published);
}

TEST_CASE("case 35: an end that is seen while the next step is reserved gives everything back once") {
  auto e = engine<>{pool_of(8)};
  auto r = e.serve(ascending(8), 8);
  auto planned = e.plan({{&r, {9}}}); // overlap: a slot in a new block
  e.execute(planned, {{&r, {9}}});
  CHECK(r.seq.length() == token_count{8});
  CHECK(r.seq.blocks().size() == 3);
  e.release(r);                          // end of sequence was sampled meanwhile
  CHECK(e.now().free == block_count{5}); // held until the step is over
  auto const done = e.cache.commit(std::move(planned));
  REQUIRE_FALSE(done.has_value());
  CHECK(done.error() == errc::stale);
  check(e.cache);
  CHECK(figures_of(e.cache) == figures{6, 2, 2, 0, 0});
}

TEST_CASE("case 35: the others of a step with an ended request are committed") {
  auto e = engine<>{pool_of(16)};
  auto a = e.serve(ascending(7, 100), 8);
  auto b = e.serve(ascending(7, 200), 8);
  auto const work = std::vector<engine<>::work>{{&a, {8, 9}}, {&b, {8, 9}}};
  auto planned = e.plan(work);
  e.execute(planned, work);
  e.cache.cancel(std::move(a.seq));
  CHECK(e.cache.commit(std::move(planned)).error() == errc::stale);
  check(e.cache);
  b.tokens = joined(b.tokens, {8, 9});
  CHECK(b.seq.length() == token_count{9});
  e.read(b);
  CHECK(e.hit(joined(ascending(7, 100), {8, 9})) == 4); // nothing of the ended one was published by this step
  CHECK(e.hit(joined(ascending(7, 200), {8, 9})) == 8);
}

TEST_CASE("case 35: a request that ends while its plan is not launched leaves with the plan") {
  auto e = engine<>{pool_of(4)};
  e.keep(ascending(13));
  auto r = e.admit(ascending(9, 500), 4);
  auto const before = figures_of(e.cache);
  {
    auto const planned = e.plan({{&r, ascending(9, 500)}});
    e.release(r);
  }
  check(e.cache);
  CHECK(figures_of(e.cache) == figures{before.free, before.evictable, before.cached, 0, 0});
  CHECK(e.hit(ascending(13)) == 12); // nothing was evicted
}

TEST_CASE("case 137: what is shared is read from tables, whoever holds or fences what") {
  auto e = engine<ticketed>{pool_of(128)};
  auto const prefix = ascending(16);
  auto with = std::vector<engine<ticketed>::request>{};
  auto without = std::vector<engine<ticketed>::request>{};
  for (token_id i = 0; i < 8; ++i) { with.push_back(e.admit(joined(prefix, {100 + i}), 4)); }
  for (auto& r : with) { e.prefill(r, joined(prefix, {static_cast<token_id>(100 + (&r - with.data()))})); }
  for (token_id i = 0; i < 7; ++i) { without.push_back(e.serve(ascending(17, 1000 * (i + 1)), 4)); }
  for (std::size_t i = 0; i < 6; ++i) { e.step({{&with[i], {7}}}); }
  e.step({{&with[6], {7}}}, e.cache.fence().issue(timeline_id{0}));
  for (std::size_t i = 0; i < 7; ++i) { e.release(with[i]); } // some are held by the fence
  auto work = std::vector<engine<ticketed>::work>{{&with[7], {7}}};
  for (auto& r : without) { work.push_back({&r, {7}}); }
  auto planned = e.plan(work); // eight rows, as many as once shared the prefix
  e.execute(planned, work);
  auto const first = planned.view().table_row(0);
  for (std::int32_t row = 1; row < 8; ++row) {
    CHECK(planned.view().table_row(row)[0] != first[0]); // no common block, and every row has its own table
  }
  e.commit(std::move(planned), work);
}

TEST_CASE("case 138: holders of other kinds do not count as sequences that share") {
  auto e = engine<ticketed>{pool_of(32)};
  auto r = e.admit(ascending(6), 8);
  e.prefill(r, ascending(6), e.cache.fence().issue(timeline_id{0}));
  auto drained = e.fork(r, 6);
  e.release(drained);                             // waits for the fence and holds the partial block meanwhile
  CHECK(r.seq.shared_blocks() == block_count{1}); // by path
  auto const block = r.seq.blocks()[1];
  e.step({{&r, {7}}}); // still its writer
  CHECK(r.seq.blocks()[1] == block);
  CHECK(e.cache.statistics().copied_blocks == 0);
  e.read(r);
}

TEST_CASE("S16: unshared requests hold their rounded-up blocks and waste less than one block each") {
  auto const lengths = std::vector<unsigned>{1, 3, 4, 5, 8, 11, 16, 23};
  for (auto const unit : {1U, 2U, 3U, 5U, 16U, 17U}) {
    auto e = engine<>{pool_of(128, unit)};
    auto held = std::vector<engine<>::request>{};
    auto blocks = 0U;
    auto tokens = 0U;
    for (auto const length : lengths) {
      held.push_back(e.serve(ascending(length, static_cast<token_id>(1000 * held.size()))));
      blocks += (length + unit - 1) / unit;
      tokens += length;
    }
    CHECK(128 - e.now().free.value() == blocks);
    CHECK(blocks * unit - tokens < lengths.size() * unit);
  }
}

TEST_CASE("S37: an observer is told what the statistics say") {
  auto e = engine<observed>{pool_of(6)};
  e.keep(ascending(9));
  auto r = e.serve(ascending(10), 4);
  e.step({{&r, {11, 12}}});
  e.truncate(r, 10);
  e.step({{&r, {13}}});
  CHECK_FALSE(e.ask(ascending(30)).has_value());
  e.release(r);
  e.keep(ascending(15, 500));
  auto const told = e.cache.observing().statistics();
  auto const counted = e.cache.statistics();
  CHECK(told == counted);
  CHECK(counted.refusals == 1);
  CHECK(counted.evicted_blocks > 0);
  CHECK(counted.hit_tokens == 8);
}
