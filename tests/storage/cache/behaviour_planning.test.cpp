// SPDX-License-Identifier: Apache-2.0
// Plans that grow item by item, limits that somebody can rely on, and stacks of groups that were special cases once.
#include <quire/block/ticket_fence.hpp>
#include <quire/cache/kv_cache.hpp>
#include <quire/core/config_error.hpp>
#include <quire/core/errc.hpp>
#include <quire/core/types.hpp>
#include <quire/memory/group_allocation.hpp>
#include <quire/memory/partitioned_memory.hpp>
#include <quire/memory/two_level_memory.hpp>
#include <quire/model/retention.hpp>

#include "storage/group_fixture.hpp"
#include "storage/storage_fixture.hpp"
#include "support/catch_compat.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace {
using namespace quire;
using quire_test::ascending;
using quire_test::check;
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

struct eager : default_policies {
  using admission = admit_all;
};

// An index that counts its look-ups.
template <class E, class D>
struct counting_index : run_tree<E, D> {
  using run_tree<E, D>::run_tree;
  static inline std::uint32_t matches = 0;
  [[nodiscard]] auto match(node_id root, std::span<token_id const> ids, std::span<unit_id> out) const noexcept
      -> prefix_match {
    ++matches;
    return run_tree<E, D>::match(root, ids, out);
  }
};
template <class Memory>
struct one_memory : default_policies {
  using allocation = group_allocation<Memory>;
  using admission = admit_all;
  template <class E, class D>
  using index = counting_index<E, D>;
};
// A full group whose blocks have 64 bytes and a window's of \p bytes, in one memory.
auto shared_options(std::uint64_t pages, std::uint32_t window, std::uint64_t bytes = 64) -> cache_options {
  auto out = groups_of(0, {group_of({}), group_of(window_of(window))});
  out.groups[0].block_bytes = byte_count{64};
  out.groups[1].block_bytes = byte_count{bytes};
  out.bytes = byte_count{pages * 64};
  return out;
}

// What can be seen of a plan.
template <class Plan>
auto seen_of(Plan& plan, std::uint32_t groups) {
  using answer = std::tuple<errc, std::uint32_t, std::uint32_t, std::uint64_t>; // status, row, skipped, user
  struct seen {
    std::vector<answer> results;
    std::vector<action> actions;
    std::vector<std::int64_t> slots;
    std::vector<std::int32_t> cells;
  };
  auto out = seen{};
  for (auto const& r : plan.results()) { out.results.emplace_back(r.status, r.row.value(), r.skipped.value(), r.user); }
  auto const actions = plan.launch();
  out.actions.assign(actions.begin(), actions.end());
  for (std::uint32_t g = 0; g < groups; ++g) {
    auto const& v = plan.view(group(g));
    out.slots.insert(out.slots.end(), v.slot.begin(), v.slot.end());
    for (std::int32_t r = 0; r < v.rows; ++r) {
      auto const length = static_cast<std::uint32_t>(v.row_length(r));
      for (auto t = static_cast<std::uint32_t>(v.first_position[static_cast<std::size_t>(r)]); t < length; ++t) {
        out.cells.push_back(static_cast<std::int32_t>(v.locate(r, token_pos{t}).block.value()));
      }
    }
  }
  return out;
}
} // namespace

// --- item by item ---------------------------------------------------------------------------------------------------

TEST_CASE("B23: the same items give the same plan one by one and at once, refusals and user words included") {
  auto const stacks = std::vector<std::vector<cache_group>>{{group_of({})},
                                                            {group_of({}), group_of(window_of(5), 14)},
                                                            {group_of(window_of(6), 14, 2)},
                                                            {group_of({}), group_of({}, 40, 2)}};
  auto refused = 0U;
  for (auto const& groups : stacks) {
    for (auto seed = 0U; seed < 30; ++seed) {
      auto options = groups_of(20, groups);
      options.max_rows = row_count{5};
      options.max_append = token_count{6};
      auto one = group_engine<eager>{options};
      auto two = group_engine<eager>{options};
      auto ones = std::vector<group_engine<eager>::sequence>{};
      auto twos = std::vector<group_engine<eager>::sequence>{};
      auto random = std::mt19937{seed};
      auto const below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
      for (auto i = 0; i < 6; ++i) {
        auto const prompt = ascending(6 + below(7), static_cast<token_id>(1 + 100 * below(3)));
        ones.push_back(std::move(one.ask(one.wanted(prompt, 28)).value()));
        twos.push_back(std::move(two.ask(two.wanted(prompt, 28)).value()));
      }
      for (auto step = 0; step < 16; ++step) {
        auto texts = std::vector<text>(7);
        auto which = std::vector<std::size_t>(7);
        auto items = std::vector<group_engine<eager>::step_item>{};
        for (std::size_t i = 0; i < 7; ++i) {
          which[i] = i < 6 && below(5) != 0 ? i : below(6); // some twice
          texts[i] =
              ascending(below(3) == 0 ? below(6) : 1U, static_cast<token_id>(ones[which[i]].length().value() + 1));
          items.emplace_back(ones[which[i]], texts[i], step_source::compute, 1000 + i);
        }
        auto at_once = one.cache.plan_step(items).value();
        check(one.cache);
        auto grown = two.cache.begin_step().value();
        for (std::size_t i = 0; i < 7; ++i) {
          auto const told = grown.try_add({twos[which[i]], texts[i], step_source::compute, 1000 + i});
          check(two.cache);
          CHECK(told.user == 1000 + i);
          CHECK(told.status == at_once.results()[i].status);
          refused += told.status == errc::no_blocks ? 1U : 0U;
        }
        CHECK(at_once.complete() == grown.complete());
        CHECK(one.all_figures() == two.all_figures());
        auto const n = static_cast<std::uint32_t>(groups.size());
        auto const a = seen_of(at_once, n);
        auto const b = seen_of(grown, n);
        check(two.cache);
        CHECK(a.results == b.results);
        CHECK(a.actions == b.actions);
        CHECK(a.slots == b.slots);
        CHECK(a.cells == b.cells);
        REQUIRE(one.cache.commit(std::move(at_once)).has_value());
        REQUIRE(two.cache.commit(std::move(grown)).has_value());
        check(two.cache);
        CHECK(one.cache.statistics().refusals == two.cache.statistics().refusals);
      }
    }
  }
  CHECK(refused > 20);
}

TEST_CASE("B23: an item that does not fit fits after one request is preempted in the middle of the plan") {
  auto e = engine<eager>{pool_of(6)};
  auto a = e.serve(ascending(8), 8);
  auto b = e.serve(ascending(8, 100), 8);
  auto c = e.serve(ascending(7, 200), 8);
  auto plan = e.cache.begin_step().value();
  auto const more = text{9};
  auto const two = text{7, 8};
  CHECK(plan.try_add({c.seq, more, step_source::compute, 3}).status == errc::ok);
  auto const refused = plan.try_add({a.seq, two, step_source::compute, 7});
  check(e.cache);
  CHECK(refused.status == errc::no_blocks);
  CHECK(refused.user == 7);
  CHECK(e.now().reserved == block_count{0});
  REQUIRE(e.cache.preempt(b.seq).has_value());
  check(e.cache);
  auto const again = plan.try_add({a.seq, two, step_source::compute, 7});
  check(e.cache);
  CHECK(again.status == errc::ok);
  CHECK(again.user == 7);
  CHECK(again.row == row_id{1});
  CHECK(plan.results().size() == 3);
  CHECK_FALSE(plan.complete()); // one answer says no
  e.perform(plan.launch());
  e.forward(plan.view(), 0, {&c, more});
  e.forward(plan.view(), 1, {&a, two});
  REQUIRE(e.cache.commit(std::move(plan)).has_value());
  check(e.cache);
  a.tokens = joined(a.tokens, two);
  c.tokens = joined(c.tokens, more);
  e.read(a);
  e.read(c);
}

TEST_CASE("B23: a plan that was begun and dropped has taken nothing, and a second one cannot be begun beside it") {
  auto e = engine<>{pool_of(8)};
  auto r = e.serve(ascending(8), 8);
  auto const before = e.now();
  {
    auto plan = e.cache.begin_step().value();
    CHECK(e.cache.begin_step().error() == errc::plan_open);
    auto const more = text{9};
    CHECK(plan.try_add({r.seq, more}).status == errc::ok);
    CHECK(plan.try_add({r.seq, more}).status == errc::duplicate_item);
    CHECK(e.now().reserved == block_count{1});
    CHECK(e.now().free == before.free);
  }
  check(e.cache);
  CHECK(e.now() == before);
}

// --- limits ---------------------------------------------------------------------------------------------------------

TEST_CASE("S19: a context longer than views can number is refused when the cache is made") {
  auto options = pool_of(64);
  options.max_context = token_count{4'294'967'295U};
  CHECK_THROWS_AS(kv_cache<>{options}, config_error);
  options.max_context = token_count{2'147'483'648U};
  CHECK_THROWS_AS(kv_cache<>{options}, config_error);
  options.max_context = token_count{2'147'483'647U};
  CHECK_NOTHROW(kv_cache<>{options});
}

TEST_CASE("S19: views are as wide as the pool allows, however long a context is permitted") {
  for (auto const& groups :
       {std::vector{group_of({})}, std::vector{group_of({}), group_of(window_of(8), 40)},
        std::vector{group_of({}), group_of(window_of(8, 2), 40)}, std::vector{group_of(window_of(8, 2), 40)},
        std::vector{group_of({}), group_of({}, 512, 2)}}) {
    auto options = groups_of(256, groups);
    options.max_context = token_count{10'485'760};
    auto e = group_engine<>{options};
    auto r = e.admit(ascending(20), 4);
    auto plan = e.plan({{&r, ascending(20)}});
    e.execute(plan, {{&r, ascending(20)}});
    for (std::uint32_t g = 0; g < groups.size(); ++g) {
      CHECK(plan.view(group(g)).max_blocks <= static_cast<std::int32_t>(1024 / e.unit(g)));
    }
    e.commit(std::move(plan), {{&r, ascending(20)}});
  }
}

TEST_CASE("S17: figures of a cache of windows only are those of its groups") {
  auto e = group_engine<>{groups_of(4000, {group_of(window_of(8), 40)})};
  CHECK(e.now().capacity == block_count{40});
  CHECK(e.now().free == block_count{40});
  e.keep(ascending(20));
  CHECK(e.now().free + e.now().evictable == block_count{40});
  CHECK(e.now().published <= block_count{5});
}

TEST_CASE("S17: a request that can never fit is refused with the group that cannot hold it, or the index") {
  { // the smaller of two full groups
    auto e = group_engine<>{groups_of(64, {group_of({}, 64), group_of({}, 64, 2)})};
    auto const why = e.ask(e.wanted(ascending(129), 1));
    REQUIRE_FALSE(why.has_value());
    CHECK(why.error().code == errc::never_fits);
    CHECK(why.error().group == group_id{1});
    CHECK(why.error().capacity == block_count{64});
    CHECK(why.error().needed == block_count{65});
    CHECK(e.ask(e.wanted(ascending(127), 1)).has_value());
  }
  { // a window
    auto e = group_engine<>{groups_of(64, {group_of({}), group_of(window_of(32), 5)})};
    auto const why = e.ask(e.wanted(ascending(60), 1));
    REQUIRE_FALSE(why.has_value());
    CHECK(why.error().code == errc::never_fits);
    CHECK(why.error().group == group_id{1});
    CHECK(why.error().capacity == block_count{5});
  }
  { // windows hold any length, the index does not
    auto options = groups_of(16, {group_of(window_of(8), 40)});
    options.max_append = token_count{8};
    auto e = group_engine<>{options};
    auto const why = e.ask(e.wanted(ascending(64), 1));
    REQUIRE_FALSE(why.has_value());
    CHECK(why.error().code == errc::never_fits);
    CHECK(why.error().group == group_id::none());
    CHECK(why.error().capacity == block_count{16});
    CHECK(why.error().message().find("prefix index") != std::string::npos);
    auto const held = e.admit(ascending(40), 4);
    auto const now = e.ask(e.wanted(ascending(30, 500), 1));
    REQUIRE_FALSE(now.has_value());
    CHECK(now.error().code == errc::no_blocks);
    CHECK(now.error().group == group_id::none());
    CHECK(now.error().promised == block_count{11});
  }
}

// --- skipped writes and equal units ---------------------------------------------------------------------------------

TEST_CASE("S22: a position whose write is skipped takes the token that is stored there, and no other") {
  for (auto const& groups :
       {std::vector{group_of({})}, std::vector{group_of({}), group_of(window_of(40), 40)},
        std::vector{group_of({}), group_of({}, 80, 2)}, std::vector{group_of(window_of(40), 40)}}) {
    auto e = group_engine<>{groups_of(40, groups)};
    e.keep(ascending(16));
    auto r = e.admit(ascending(16), 8);
    REQUIRE(r.seq.length() == token_count{15});
    auto const other = text{99};
    auto plan = e.cache.plan_step({group_engine<>::step_item{r.seq, other}}).value();
    check(e.cache);
    CHECK(plan.results()[0].status == errc::other_tokens);
    plan = {};
    auto const same = text{16, 17};
    auto right = e.cache.plan_step({group_engine<>::step_item{r.seq, same}}).value();
    CHECK(right.results()[0].status == errc::ok);
    CHECK(right.results()[0].skipped == token_count{1});
  }
}

TEST_CASE("S26: equal content that two requests compute takes its room once from the commit on") {
  for (auto const& groups :
       {std::vector{group_of({})}, std::vector{group_of({}), group_of(window_of(40), 80)},
        std::vector{group_of({}), group_of({}, 160, 2)}, std::vector{group_of(window_of(40), 80)}}) {
    auto e = group_engine<>{groups_of(80, groups)};
    auto const prompt = ascending(18);
    auto a = e.admit(prompt, 8);
    auto b = e.admit(prompt, 8);
    e.step({{&a, prompt}, {&b, prompt}});
    for (std::uint32_t g = 0; g < groups.size(); ++g) {
      auto const full = 16 / e.unit(g);
      for (std::uint32_t j = 0; j < full; ++j) { CHECK(a.seq.blocks(group(g))[j] == b.seq.blocks(group(g))[j]); }
      CHECK(a.seq.blocks(group(g))[full] != b.seq.blocks(group(g))[full]);
      CHECK(e.now(g).published == block_count{full});
      CHECK(e.now(g).free == e.now(g).capacity - block_count{full} -
                                 block_count{2 * (18 / e.unit(g) - full + (18 % e.unit(g) != 0 ? 1U : 0U))});
    }
    CHECK(e.cache.statistics().duplicate_blocks > 0);
    e.step({{&a, {70}}, {&b, {71}}}); // every byte is read
  }
}

// --- stacks that are ordinary now -----------------------------------------------------------------------------------

TEST_CASE("S29: full groups of different block sizes, and a stack without a full group, live like any other") {
  struct stack {
    std::vector<cache_group> groups;
    std::uint32_t unit;
  };
  auto const stacks = std::vector<stack>{{{group_of({}, 60, 4), group_of({}, 120, 2)}, 4},
                                         {{group_of({}, 60, 4), group_of({}, 40, 6)}, 12},
                                         {{group_of(window_of(64), 60, 4)}, 4},
                                         {{group_of(window_of(64), 60, 4), group_of(window_of(70, 2), 120, 2)}, 4}};
  for (auto const& s : stacks) {
    auto e = group_engine<>{groups_of(60, s.groups)};
    INFO("unit " << s.unit << ", groups " << s.groups.size());
    CHECK(e.cache.reuse_alignment() == token_count{s.unit});
    // hits are whole units
    auto const prompt = ascending(30);
    e.keep(prompt);
    auto const whole = 30 / s.unit * s.unit;
    CHECK(e.hit(prompt) == whole);
    CHECK(e.hit(joined(head(prompt, 23), {900})) == 23 / s.unit * s.unit);
    // a copy inside a unit: what lies before it is read through it, and the original stays
    auto a = e.serve(prompt, 16);
    auto b = e.fork(a, 29);
    e.step({{&b, {800}}, {&a, {801}}});
    e.step({{&b, {802, 803, 804, 805, 806, 807, 808}}, {&a, {809}}});
    // cut inside a unit and on its border, inside what is shared
    e.truncate(b, 27);
    e.step({{&b, {810}}});
    e.truncate(b, 24);
    e.step({{&b, {811, 812, 813, 814, 815, 816, 817, 818, 819, 820, 821, 822}}});
    auto const of_b = b.tokens;
    e.truncate(a, 13);
    e.step({{&a, {823}}});
    e.release(a);
    e.release(b);
    CHECK(e.hit(of_b) == std::min<std::size_t>(of_b.size() / s.unit * s.unit, of_b.size() - 1));
    // eviction: many texts pass, and all blocks are there in the end
    for (token_id i = 0; i < 30; ++i) { e.keep(ascending(40, 1000 * (i + 1))); }
    for (std::uint32_t g = 0; g < s.groups.size(); ++g) {
      CHECK(e.now(g).free + e.now(g).evictable == e.now(g).capacity);
      CHECK(e.now(g).promised == block_count{0});
    }
    CHECK(e.hit(ascending(40, 30'000)) == std::min(40U / s.unit * s.unit, 39U));
  }
}

// --- one memory for all groups --------------------------------------------------------------------------------------

namespace {
template <class Policies>
struct strict_in : Policies {
  using admission = reserve_all;
};
} // namespace

TEMPLATE_TEST_CASE("S17: where groups share memory an admission that is short looks its prompt up once", "",
                   one_memory<two_level_memory>, one_memory<partitioned_memory>) {
  using strict = strict_in<TestType>;
  using index = typename kv_cache<strict>::index_type;
  auto e = group_engine<strict>{shared_options(400, 1000)};
  for (token_id i = 0; i < 12; ++i) { e.keep(ascending(60, 1000 * (i + 1))); } // idle blocks in both groups
  REQUIRE(e.now(0).evictable > block_count{64});
  auto const free = e.now(0).free.value();
  index::matches = 0;
  auto const length = 4 * (free + 60); // far more than is free: two groups' worth of evictions
  auto const asked = e.ask(e.wanted(ascending(std::min(length, 700U)), 1));
  INFO((asked ? std::string{} : asked.error().message()));
  CHECK(asked.has_value());
  CHECK(index::matches == 1);
}

TEST_CASE("S17: where groups share memory a step takes idle blocks of another group before it is refused") {
  auto e = group_engine<one_memory<two_level_memory>>{shared_options(48, 8)};
  for (token_id i = 0; i < 6; ++i) { e.keep(ascending(24, 1000 * (i + 1))); } // the window's idle blocks hold pages
  auto const before = e.now(1).evictable;
  REQUIRE(before > block_count{0});
  auto r = e.admit(ascending(8), 152);
  e.prefill(r, ascending(8), 8);
  for (auto at = 8; at < 160; ++at) { e.step({{&r, {at + 1}}}); } // every step is served
  CHECK(r.seq.length() == token_count{160});
  CHECK(e.now(1).evictable < before);
}

TEST_CASE("S15: caches whose groups share memory compact like others") {
  auto e = group_engine<one_memory<two_level_memory>>{shared_options(64, 8)};
  auto a = e.serve(ascending(20), 8);
  auto b = e.serve(ascending(20, 100), 8);
  e.release(a);
  auto const moves = e.cache.compact();
  check(e.cache);
  REQUIRE(moves.has_value());
  e.perform(*moves);
  e.step({{&b, {7}}}); // reads what has moved
}
