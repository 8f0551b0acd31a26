// SPDX-License-Identifier: Apache-2.0
// Faulty calls are caught where they are made, before anything changes, and the audit names what is broken (B12).
#include <quire/block/ticket_fence.hpp>
#include <quire/cache/kv_cache.hpp>
#include <quire/core/config_error.hpp>
#include <quire/prefix/flat_index.hpp>

#include "storage/storage_fixture.hpp"
#include "support/catch_compat.hpp"
#include "support/throwing_contract.hpp"

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

namespace {
using namespace quire;
using quire_test::ascending;
using quire_test::check;
using quire_test::contract_violation;
using quire_test::engine;
using quire_test::figures_of;
using quire_test::joined;
using quire_test::pool_of;
using quire_test::text;

struct flat : default_policies {
  template <class E, class D>
  using index = flat_index<E, D>;
};

// Handles cannot be copied, and moving them cannot fail.
static_assert(!std::is_copy_constructible_v<engine<>::sequence> && !std::is_copy_assignable_v<engine<>::sequence>);
static_assert(std::is_nothrow_move_constructible_v<engine<>::sequence> &&
              std::is_nothrow_move_assignable_v<engine<>::sequence>);
static_assert(!std::is_copy_constructible_v<engine<>::step_plan> &&
              std::is_nothrow_move_constructible_v<engine<>::step_plan>);
static_assert(std::is_nothrow_destructible_v<engine<>::sequence> &&
              std::is_nothrow_destructible_v<engine<>::step_plan>);

// Behind a fence nobody can forget the ticket, and an item is what it was made from.
struct ticketed : default_policies {
  using fence = ticket_fence<1>;
};
template <class Cache>
concept commits_without_ticket =
    requires(Cache& cache, typename Cache::step_plan plan) { cache.commit(std::move(plan)); };
static_assert(commits_without_ticket<kv_cache<>> && !commits_without_ticket<kv_cache<ticketed>>);

// Backdoor for the tests of the audit: what a caller must never do.
template <class Cache>
auto broken_into(Cache const& cache) -> typename Cache::index_type& {
  return const_cast<typename Cache::index_type&>(cache.index());
}
} // namespace

TEST_CASE("B12: a used-up handle is caught at the faulty call") {
  auto e = engine<>{pool_of(8)};
  auto r = e.serve(ascending(6), 4);
  auto kept = std::move(r.seq);
  CHECK_THROWS_AS(r.seq.length(), contract_violation);
  CHECK_THROWS_AS(e.cache.release(std::move(r.seq)), contract_violation);
  CHECK_THROWS_AS(e.cache.cancel(std::move(r.seq)), contract_violation);
  CHECK_THROWS_AS(e.cache.fork(r.seq, token_count{1}), contract_violation);
  CHECK_THROWS_AS(e.cache.truncate(r.seq, token_count{1}), contract_violation);
  CHECK_THROWS_AS(e.cache.resolve(r.seq, {}), contract_violation);
  CHECK_THROWS_AS(e.cache.preempt(r.seq), contract_violation);
  auto const ids = text{1};
  auto const item = engine<>::step_item{r.seq, ids};
  CHECK_THROWS_AS(e.cache.plan_step({&item, 1}), contract_violation);
  check(e.cache);
  CHECK(kept.length() == token_count{6});
  e.cache.release(std::move(kept));
  CHECK_THROWS_AS(e.cache.release(std::move(kept)), contract_violation);
  CHECK_FALSE(static_cast<bool>(engine<>::sequence{}));
  CHECK_THROWS_AS(engine<>::sequence{}.cached(), contract_violation);
  check(e.cache);
}

TEST_CASE("S24: a handle that is assigned to gives back what it held") {
  auto e = engine<>{pool_of(8)};
  auto first = e.serve(ascending(6), 4);
  auto second = e.serve(ascending(6, 100), 4);
  CHECK(e.now().free == block_count{4});
  first.seq = std::move(second.seq);
  check(e.cache);
  CHECK(e.cache.live_sequences() == sequence_count{1});
  CHECK(e.now().free == block_count{5}); // the partial block of the first one
  CHECK(first.seq.length() == token_count{6});
}

TEST_CASE("B12: a handle of another cache is caught at the faulty call") {
  auto mine = engine<>{pool_of(8)};
  auto other = engine<>{pool_of(8)};
  auto r = other.serve(ascending(6), 4);
  auto const before = figures_of(mine.cache);
  CHECK_THROWS_AS(mine.cache.release(std::move(r.seq)), contract_violation);
  CHECK_THROWS_AS(mine.cache.fork(r.seq, token_count{1}), contract_violation);
  CHECK_THROWS_AS(mine.cache.truncate(r.seq, token_count{1}), contract_violation);
  auto const ids = text{1};
  auto const item = engine<>::step_item{r.seq, ids};
  CHECK_THROWS_AS(mine.cache.plan_step({&item, 1}), contract_violation);
  check(mine.cache);
  CHECK(figures_of(mine.cache) == before);
  CHECK(r.seq.length() == token_count{6}); // still the other's
  other.step({{&r, {7}}});
  auto w = mine.serve(ascending(3), 4);
  mine.step({{&w, {4}}}); // and no plan is left open here
}

TEST_CASE("B12: a step item of a used-up sequence is caught, and the plan that was begun is undone") {
  auto e = engine<>{pool_of(8)};
  auto r = e.serve(ascending(3), 8);
  auto const before = e.now();
  auto const ids = text{4, 5};
  auto const nobody = engine<>::sequence{};
  auto const items = std::vector<engine<>::step_item>{{r.seq, ids}, {nobody, ids}};
  CHECK_THROWS_AS(e.cache.plan_step(items), contract_violation);
  check(e.cache);
  CHECK(e.now() == before);
  CHECK(r.seq.blocks().size() == 1);
  e.step({{&r, {4, 5}}});
}

TEST_CASE("B12: a plan of another cache, a plan that was used, and the wrong order are caught") {
  auto mine = engine<>{pool_of(8)};
  auto other = engine<>{pool_of(8)};
  auto r = other.serve(ascending(3), 8);
  auto planned = other.plan({{&r, {4}}});
  CHECK_THROWS_AS(other.cache.commit(std::move(planned)), contract_violation); // not launched
  CHECK_THROWS_AS(planned.view(), contract_violation);
  CHECK_THROWS_AS(planned.view(group_id{0}), contract_violation);
  planned.launch();
  CHECK_THROWS_AS(planned.launch(), contract_violation); // launched already
  CHECK_THROWS_AS(mine.cache.commit(std::move(planned)), contract_violation);
  check(mine.cache);
  check(other.cache);
  CHECK(r.seq.length() == token_count{3});
  CHECK(other.cache.commit(std::move(planned)).has_value());
  CHECK(r.seq.length() == token_count{4});
  CHECK_THROWS_AS(other.cache.commit(std::move(planned)), contract_violation); // used up
  CHECK_THROWS_AS(planned.launch(), contract_violation);
  CHECK_THROWS_AS(planned.view(), contract_violation);
  CHECK_THROWS_AS(planned.results(), contract_violation);
  CHECK(r.seq.length() == token_count{4});
  check(other.cache);
}

TEST_CASE("B12: a block or a scope that does not exist is caught") {
  auto e = engine<>{pool_of(8)};
  CHECK_THROWS_AS(e.cache.block_state_of(group_id{0}, block_id{8}), contract_violation);
  CHECK_THROWS_AS(e.cache.block_state_of(group_id{1}, block_id{0}), contract_violation);
  CHECK_THROWS_AS(e.cache.figures(group_id{1}), contract_violation);
  auto wanted = admit_request{};
  auto const prompt = ascending(3);
  wanted.scope = scope_number{7};
  wanted.prompt = prompt;
  wanted.max_output = token_count{1};
  CHECK_THROWS_AS(e.cache.admit(wanted), contract_violation);
  check(e.cache);
  auto r = e.serve(ascending(3), 4);
  auto const ids = text{4};
  auto const item = engine<>::step_item{r.seq, ids};
  CHECK_THROWS_AS(e.cache.plan_step({&item, 1}, timeline_id{1}), contract_violation); // this fence has one timeline
  check(e.cache);
}

TEST_CASE("B12: two plans at once are refused, not mixed") {
  auto e = engine<>{pool_of(8)};
  auto a = e.serve(ascending(3, 100), 4);
  auto b = e.serve(ascending(3, 200), 4);
  auto first = e.plan({{&a, {4}}});
  auto const ids = text{4};
  auto const item = engine<>::step_item{b.seq, ids};
  auto const second = e.cache.plan_step({&item, 1});
  REQUIRE_FALSE(second.has_value());
  CHECK(second.error() == errc::plan_open);
  e.execute(first, {{&a, {4}}});
  auto after = e.plan({{&b, {4}}}); // launched: the next one may be planned
  auto const again = engine<>::step_item{a.seq, ids};
  after = {};
  auto const third = e.cache.plan_step({&again, 1});
  REQUIRE(third.has_value());
  CHECK(third->results()[0].status == errc::plan_open); // a's step is not committed
}

TEMPLATE_TEST_CASE("B12: the audit names an overwritten published token", "", default_policies, flat) {
  auto e = engine<TestType>{pool_of(8)};
  auto r = e.serve(ascending(6), 4);
  auto& index = broken_into(e.cache);
  auto found = std::vector<unit_id>(1);
  static_cast<void>(index.match(node_id{0x8000'0000U}, ascending(6), found)); // below the first scope's empty prefix
  auto& token = index.tokens(found[0])[2];
  auto const right = std::exchange(token, 99);
  auto const broken = e.cache.audit();
  REQUIRE_FALSE(broken.has_value());
  CHECK_THAT(broken.error(), quire_test::ContainsSubstring("changed after it was published"));
  token = right;
  check(e.cache);
}

TEMPLATE_TEST_CASE("B12: the audit names a pin that is missing and one that nobody has", "", default_policies, flat) {
  auto e = engine<TestType>{pool_of(8)};
  auto r = e.serve(ascending(6), 4);
  auto& index = broken_into(e.cache);
  auto const root = e.cache.index().match(node_id{0x8000'0000U}, {}, {}); // the first scope's empty prefix
  auto out = std::vector<unit_id>(2);
  auto stolen = index.pin(index.match(root.node, ascending(6), out));
  CHECK_THAT(e.cache.audit().error(), quire_test::ContainsSubstring("busy count differs"));
  index.release(std::move(stolen));
  check(e.cache);
}

TEMPLATE_TEST_CASE("B12: the audit names a block that is cached behind the pool's back", "", default_policies, flat) {
  auto e = engine<TestType>{pool_of(8)};
  auto r = e.serve(ascending(3), 4);
  auto& index = broken_into(e.cache);
  auto const root = node_id{0x8000'0000U};
  auto pin = index.pin(prefix_match{unit_count{0}, root, 0, root});
  auto const foreign = std::vector{index.take_unit()}; // no group has a block for it
  static_cast<void>(index.publish(pin, foreign));
  index.release(std::move(pin));
  CHECK_THAT(e.cache.audit().error(), quire_test::ContainsSubstring("lacks a block"));
}

TEST_CASE("kv_cache: impossible options are refused with what would work") {
  auto const broken = [](auto change) {
    auto options = pool_of(8);
    change(options);
    return options;
  };
  CHECK_THROWS_AS(kv_cache<>{broken([](auto& o) { o.blocks = block_count{0}; })}, config_error);
  CHECK_THROWS_AS(kv_cache<>{broken([](auto& o) { o.block_tokens = token_count{0}; })}, config_error);
  CHECK_THROWS_AS(kv_cache<>{broken([](auto& o) { o.max_sequences = sequence_count{0}; })}, config_error);
  CHECK_THROWS_AS(kv_cache<>{broken([](auto& o) { o.max_rows = row_count{0}; })}, config_error);
  CHECK_THROWS_AS(kv_cache<>{broken([](auto& o) { o.batch_buffers = 0; })}, config_error);
}

TEST_CASE("kv_cache: too many sequences and too many rows are refused") {
  auto options = pool_of(64);
  options.max_sequences = sequence_count{2};
  options.max_rows = row_count{1};
  auto e = engine<>{options};
  auto a = e.serve(ascending(3, 100), 4);
  auto b = e.serve(ascending(3, 200), 4);
  CHECK(e.ask(ascending(3, 300)).error().code == errc::too_many_sequences);
  CHECK(e.cache.fork(a.seq).error() == errc::too_many_sequences);
  auto const ids = text{4};
  auto const items = std::vector<engine<>::step_item>{{a.seq, ids}, {b.seq, ids}};
  {
    auto plan = e.cache.plan_step(items);
    REQUIRE(plan.has_value());
    CHECK(plan->results()[0].status == errc::ok);
    CHECK(plan->results()[1].status == errc::too_many_rows);
    CHECK_FALSE(plan->complete());
  }
  check(e.cache);
  e.release(a);
  CHECK(e.ask(ascending(3, 300)).has_value());
}
