// SPDX-License-Identifier: Apache-2.0
// Sequences over several layer groups: forks, cuts, drafts, refusals, copies, and blocks that wait for tickets.
#include <quire/block/ticket_fence.hpp>
#include <quire/model/retention.hpp>

#include "storage/group_fixture.hpp"
#include "support/catch_compat.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional> // std::identity
#include <string>
#include <utility>
#include <vector>

namespace {
using namespace quire;
using quire_test::ascending;
using quire_test::blocks_seen;
using quire_test::check;
using quire_test::chunks_of;
using quire_test::figures_of;
using quire_test::group;
using quire_test::group_engine;
using quire_test::group_of;
using quire_test::groups_of;
using quire_test::head;
using quire_test::joined;
using quire_test::sees;
using quire_test::tail;
using quire_test::text;
using quire_test::tokens;
using quire_test::window_of;

struct eager : default_policies {
  using admission = admit_all;
};
struct ticketed : default_policies {
  using fence = ticket_fence<1>;
};

// The first length from \p target on at which \p r could go on with its sinks and with what lies behind its last hole.
// (What shares a block with the sinks is not counted on.)
template <class Engine>
auto first_resumable(Engine const& e, typename Engine::request const& r, std::uint32_t target) -> std::uint32_t {
  auto const length = r.seq.length().value();
  for (; target < length; ++target) {
    auto good = true;
    for (std::uint32_t g = 1; g < e.memory.size(); ++g) {
      auto const held = e.held(r, g);
      auto const unit = e.unit(g);
      for (std::uint32_t t = 0; t < target; ++t) {
        auto const there =
            t < e.keeps(g).sinks.value() ||
            std::all_of(held.begin() + static_cast<std::ptrdiff_t>(t / unit), held.end(), std::identity{});
        good = good && (!sees(e.keeps(g), target, t) || there); // what the query there sees
      }
      good = good && (target % unit == 0 || held[target / unit]); // and where it writes
    }
    if (good) { return target; }
  }
  return length;
}
} // namespace

TEST_CASE("S30: a cut or a fork beyond the window is refused, says from where on it works, and changes nothing") {
  // w = 6 in blocks of 4, 20 positions: block 3 (12 …) is the first that is left; a query at 17 sees 12
  auto e = group_engine<>{groups_of(64, {group_of({}), group_of(window_of(6), 16)})};
  auto r = e.serve(ascending(20), 8);
  CHECK(e.held(r, 1) == std::vector<bool>{false, false, false, true, true});
  CHECK(e.cache.resumable_length(r.seq, tokens(16)).value() == token_count{17});
  CHECK(e.cache.resumable_length(r.seq, tokens(5)).value() == token_count{17});
  CHECK(e.cache.resumable_length(r.seq, tokens(17)).value() == token_count{17});
  CHECK(e.cache.resumable_length(r.seq, tokens(20)).value() == token_count{20});
  CHECK(e.cache.resumable_length(r.seq, tokens(0)).value() == token_count{0}); // from the start, always
  CHECK(e.cache.resumable_length(r.seq, tokens(21)).error() == errc::out_of_range);
  auto const figures = std::pair{figures_of(e.cache), e.all_figures()};
  auto const table = e.held(r, 1);
  auto const refused = e.cache.truncate(r.seq, tokens(16));
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error() == errc::not_resident);
  auto const no_fork = e.cache.fork(r.seq, tokens(16));
  REQUIRE_FALSE(no_fork.has_value());
  CHECK(no_fork.error() == errc::not_resident);
  CHECK(r.seq.length() == token_count{20});
  CHECK(e.held(r, 1) == table);
  CHECK(std::pair{figures_of(e.cache), e.all_figures()} == figures);
  check(e.cache);
  auto child = e.fork(r, 17);
  e.truncate(r, 17);
  e.step({{&r, {60}}, {&child, {61}}});
  e.step({{&r, {62, 63}}, {&child, {64}}});
}

TEST_CASE("S30: the earliest resumable length is the first at which every group finds what it needs") {
  auto const keeps = std::vector{window_of(1), window_of(5), window_of(9, 2), chunks_of(4), chunks_of(6)};
  for (std::size_t a = 0; a < keeps.size(); ++a) {
    for (std::size_t b = a; b < keeps.size(); ++b) {
      for (auto const& units : {std::pair{1U, 4U}, std::pair{2U, 3U}, std::pair{5U, 2U}}) {
        for (auto const length : {9U, 16U, 23U}) {
          auto e = group_engine<>{
              groups_of(64, {group_of({}), group_of(keeps[a], 64, units.first), group_of(keeps[b], 64, units.second)})};
          auto r = e.admit(ascending(length), 4);
          e.prefill(r, ascending(length), 2); // so that windows have moved on
          for (std::uint32_t target = 0; target <= length; ++target) {
            CAPTURE(a, b, units.first, units.second, length, target);
            auto const expected = first_resumable(e, r, target);
            REQUIRE(e.cache.resumable_length(r.seq, tokens(target)).value() == tokens(expected));
            auto const child = e.cache.fork(r.seq, tokens(target));
            REQUIRE((child.has_value() || child.error() == errc::not_resident));
            REQUIRE(child.has_value() == (expected == target));
          }
        }
      }
    }
  }
}

TEST_CASE("B6: a sequence with a draft keeps what taking the draft back needs, and no more") {
  for (auto const& keeps : {window_of(1), window_of(3), window_of(6), window_of(4, 2), chunks_of(5)}) {
    for (auto const unit : {1U, 2U, 4U}) {
      constexpr auto draft = 4U;
      auto e = group_engine<>{groups_of(64, {group_of({}), group_of(keeps, 64, unit)})};
      auto r = e.admit(ascending(9), 30, draft);
      e.prefill(r, ascending(9));
      CAPTURE(keeps.extent.value(), keeps.sinks.value(), unit);
      for (token_id t = 0; r.seq.length().value() < 36; ++t) {
        e.step({{&r, ascending(draft + 1, 100 * t)}}); // one token and four guesses
        auto const length = r.seq.length().value();
        REQUIRE(e.held(r, 1) == blocks_seen(keeps, length - draft, length, unit));
        e.truncate(r, length - static_cast<std::size_t>(t) % (draft + 1)); // 0 … 4 of them wrong
      }
    }
  }
}

TEST_CASE("S17: a request that can never fit a window's pool is refused with the group and its figures") {
  auto options = groups_of(64, {group_of({}), group_of(window_of(5), 16), group_of(window_of(9), 3)});
  options.max_append = token_count{4};
  auto e = group_engine<>{options};
  auto const before = e.all_figures();
  auto const refused = e.ask(e.wanted(ascending(20)));
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == errc::never_fits);
  CHECK(refused.error().group == group(2));
  CHECK(refused.error().needed == block_count{5}); // (9 − 1 + 4 − 1) / 4 + 1, rounded up, and one to copy into
  CHECK(refused.error().capacity == block_count{3});
  CHECK(refused.error().available == block_count{3});
  CHECK(refused.error().message().find("layer group 2") != std::string::npos);
  CHECK(e.all_figures() == before);
  auto const short_one = e.ask(e.wanted(ascending(7))); // its two blocks and one fit
  CHECK(short_one.has_value());
}

TEST_CASE("S17: a request that a window's pool has no room for now is refused with the group and its figures") {
  auto options = groups_of(64, {group_of({}), group_of(window_of(5), 16), group_of(window_of(9), 7)});
  options.max_append = token_count{4};
  auto e = group_engine<>{options};
  auto first = e.serve(ascending(4), 16);
  auto const before = std::pair{figures_of(e.cache), e.all_figures()};
  auto const refused = e.ask(e.wanted(ascending(4, 500), 16));
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == errc::no_blocks);
  CHECK(refused.error().group == group(2));
  CHECK(refused.error().needed == block_count{5});
  CHECK(refused.error().promised == block_count{4}); // of its five blocks the first holds one
  CHECK(refused.error().available == block_count{6});
  CHECK(std::pair{figures_of(e.cache), e.all_figures()} == before);
  auto const lead = e.ask(e.wanted(ascending(4, 500), 400));
  REQUIRE_FALSE(lead.has_value());
  CHECK(lead.error().group == group(0)); // the table of the full groups is asked first
  e.release(first);
  CHECK(e.ask(e.wanted(ascending(4, 500), 16)).has_value());
}

TEST_CASE("S17: window blocks that a hit attaches are not available to it besides") {
  // Five blocks: one is held and one promised to somebody, two hang. A hit of 8 attaches one of these and wants three more.
  auto options = groups_of(64, {group_of({}), group_of(window_of(5), 5)});
  options.max_append = token_count{4};
  auto e = group_engine<>{options};
  auto const prompt = ascending(9);
  {
    auto first = e.admit(prompt);
    e.prefill(first, prompt, 4);
  }
  REQUIRE(e.figures(1) == quire_test::short_figures{3, 2, 0});
  auto other = e.serve({500});
  REQUIRE(e.figures(1) == quire_test::short_figures{2, 2, 1});
  auto const refused = e.ask(e.wanted(prompt));
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == errc::no_blocks);
  CHECK(refused.error().available == block_count{3}); // beside the one that the hit would hold
  e.release(other);
  CHECK(e.hit(prompt) == 8);
}

TEST_CASE("S17: a fork is promised all that a window may hold: what it shares now it moves away from later") {
  {
    auto tight = group_engine<>{groups_of(64, {group_of({}), group_of(window_of(100), 7)})};
    auto parent = tight.serve(ascending(8), 4); // two blocks of four, of a budget of three and one to copy into
    REQUIRE(tight.figures(1) == quire_test::short_figures{5, 0, 2});
    auto const refused = tight.cache.fork(parent.seq, tokens(8));
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error() == errc::no_blocks);
    check(tight.cache);
    CHECK(tight.figures(1) == quire_test::short_figures{5, 0, 2});
  }
  auto e = group_engine<>{groups_of(64, {group_of({}), group_of(window_of(100), 8)})};
  auto parent = e.serve(ascending(8), 4);
  auto child = e.fork(parent, 8); // the same two blocks
  REQUIRE(e.figures(1) == quire_test::short_figures{6, 0, 6});
  e.truncate(parent, 4); // its second block stays with the child
  CHECK(e.figures(1) == quire_test::short_figures{6, 0, 6});
  e.step({{&parent, {50, 51, 52, 53, 54}}, {&child, {60}}});
  e.step({{&parent, {55, 56, 57}}, {&child, {61, 62, 63}}});
}

TEST_CASE("S17: whoever is let in finishes, whatever else runs, in every group") {
  auto options = groups_of(64, {group_of({}), group_of(window_of(5), 13), group_of(chunks_of(6), 13, 3)});
  options.max_append = token_count{3};
  auto e = group_engine<>{options};
  auto running = std::vector<group_engine<>::request>{};
  for (token_id i = 0; running.size() < 4; ++i) {
    auto got = e.ask(e.wanted(ascending(5, 100 * i), 30));
    if (!got) { break; }
    running.push_back({std::move(*got), {}});
  }
  REQUIRE(running.size() == 3);
  for (token_id i = 0; i < 3; ++i) { e.prefill(running[static_cast<std::size_t>(i)], ascending(5, 100 * i), 3); }
  for (token_id t = 0; t < 29; ++t) { e.step({{&running[0], {t}}, {&running[1], {t}}, {&running[2], {t}}}); }
  CHECK(e.now(1).free + e.now(1).evictable >= block_count{13 - 6});
}

TEST_CASE("S17: a step for which a window's pool has no block is refused alone, and works later") {
  auto e = group_engine<eager>{groups_of(64, {group_of({}), group_of(window_of(9), 5)})};
  auto a = e.serve(ascending(8), 8);
  auto b = e.serve(ascending(8, 100), 8);
  e.step({{&a, {50}}}); // the fifth block
  auto const before = e.all_figures();
  auto const ids = text{60};
  auto const items = std::vector{group_engine<eager>::step_item{b.seq, ids}};
  {
    auto plan = e.cache.plan_step(items);
    REQUIRE(plan.has_value());
    CHECK(plan->results()[0].status == errc::no_blocks);
    CHECK(plan->launch().empty());
    CHECK(plan->view(group(1)).rows == 0);
  }
  check(e.cache);
  CHECK(e.all_figures() == before);
  e.release(a);
  e.step({{&b, ids}});
}

TEST_CASE("S23: a write into a shared partial block copies it in every group, each from its own, and full ones never") {
  auto e = group_engine<>{groups_of(64, {group_of({}), group_of(window_of(5), 16, 4), group_of(window_of(30, 1), 32, 3),
                                         group_of(chunks_of(7), 32, 7)})};
  auto parent = e.serve(ascending(14), 8); // 14 = 3·4 + 2 = 4·3 + 2 = 2·7
  auto child = e.fork(parent, 14);
  auto const items = std::vector<group_engine<>::work>{{&child, {70}}, {&parent, {80}}};
  auto planned = e.plan(items);
  auto const actions = [&] {
    auto const span = planned.launch();
    return std::vector<action>(span.begin(), span.end());
  }();
  // Groups 1 and 2 have a partial block, 3 begins a new one. A group that keeps everything copies what it has of the unit,
  // which is where blocks of all groups end together: all four blocks here.
  REQUIRE(actions.size() == 6);
  for (std::uint32_t j = 0; j < 3; ++j) {
    CHECK(actions[j] ==
          action::copy_block(group(0), parent.seq.blocks(group(0))[j], child.seq.blocks(group(0))[j], token_count{4}));
  }
  for (std::uint32_t g = 0; g < 3; ++g) {
    auto const& a = actions[g + 3];
    auto const at = 14 / e.unit(g);
    CAPTURE(g);
    CHECK(a.kind == action_kind::copy);
    CHECK(a.group == group(g));
    CHECK(a.tokens == token_count{2});
    CHECK(a.source == parent.seq.blocks(group(g))[at]);
    CHECK(a.target == child.seq.blocks(group(g))[at]);
    for (std::uint32_t j = 0; g > 0 && j < at; ++j) { // what is full stays shared
      CHECK(child.seq.blocks(group(g))[j] == (e.held(child, g)[j] ? parent.seq.blocks(group(g))[j] : block_id::none()));
    }
  }
  CHECK(child.seq.blocks(group(3))[2] != parent.seq.blocks(group(3))[2]);
  REQUIRE(e.cache.commit(std::move(planned)).has_value());
  check(e.cache);
  e.release(child);
  e.release(parent);
  for (std::uint32_t g = 1; g < 4; ++g) { CHECK(e.now(g).free + e.now(g).evictable == e.now(g).capacity); }
}

TEST_CASE("S18: a window block that a running query may read is not free before its ticket (case 44)") {
  // w = 128 in blocks of 32: position 31 is seen by the query at 158 and by no later one
  auto options = groups_of(64, {group_of({}), group_of(window_of(128), 64)}, 32);
  options.max_append = token_count{64};
  auto e = group_engine<ticketed>{options};
  auto const prompt = ascending(158);
  auto r = e.admit(prompt, 8);
  while (r.seq.length().value() < 158) {
    auto const left = tail(prompt, r.seq.length().value());
    auto const q = head(left, std::min<std::size_t>(64, left.size()));
    auto const until = e.cache.fence().issue(timeline_id{0});
    e.step({{&r, q}}, until);
    e.cache.fence().complete(timeline_id{0}, until);
  }
  e.cache.reclaim();
  CHECK(e.count_held(r, 1) == 5);
  auto const at_158 = e.cache.fence().issue(timeline_id{0});
  e.step({{&r, {1}}}, at_158);
  auto const before = e.figures(1);
  CHECK(e.count_held(r, 1) == 5);
  auto const at_159 = e.cache.fence().issue(timeline_id{0});
  e.step({{&r, {2}}}, at_159); // the border of blocks: the lane ends, block 0 is given up
  CHECK(e.held(r, 1) == std::vector<bool>{false, true, true, true, true});
  check(e.cache);
  CHECK(std::get<0>(e.figures(1)) + std::get<1>(e.figures(1)) == std::get<0>(before) + std::get<1>(before));
  e.cache.fence().complete(timeline_id{0}, at_158);
  e.cache.reclaim();
  CHECK(std::get<0>(e.figures(1)) + std::get<1>(e.figures(1)) == std::get<0>(before) + std::get<1>(before));
  e.cache.fence().complete(timeline_id{0}, at_159);
  e.cache.reclaim();
  CHECK(std::get<0>(e.figures(1)) + std::get<1>(e.figures(1)) == std::get<0>(before) + std::get<1>(before) + 1);
}

TEST_CASE(
    "S18: while a step is in flight nobody gets the window blocks it reads, not even the last ones (cases 41, 43)") {
  auto e = group_engine<ticketed>{groups_of(64, {group_of({}), group_of(window_of(3), 6, 2)})};
  auto const prompt = ascending(6);
  auto r = e.admit(prompt, 4);
  auto const first = e.cache.fence().issue(timeline_id{0});
  e.step({{&r, prompt}}, first); // three blocks, of which two go: 6 sees 4 … 6
  CHECK(e.count_held(r, 1) == 1);
  CHECK(e.figures(1) == quire_test::short_figures{3, 0, 5}); // nothing is idle yet
  auto const other = ascending(8, 500);
  auto const refused = e.ask(e.wanted(other));
  CHECK_FALSE(refused.has_value());
  e.release(r); // cancelled in flight: what it holds waits too
  CHECK(e.figures(1) == quire_test::short_figures{3, 0, 0});
  CHECK_FALSE(e.ask(e.wanted(other)).has_value());
  e.cache.fence().complete(timeline_id{0}, first);
  e.cache.reclaim();
  CHECK(e.figures(1) == quire_test::short_figures{4, 2, 0}); // the third one hangs on no full lead block
  check(e.cache);
  CHECK(e.ask(e.wanted(other)).has_value());
}

TEST_CASE("S18: blocks that two steps in flight left one after the other come back in their order") {
  auto options = groups_of(64, {group_of({}), group_of(window_of(1), 12, 1)});
  options.max_append = token_count{2};
  auto e = group_engine<ticketed>{options};
  auto const prompt = ascending(6);
  auto r = e.admit(prompt, 4);
  auto tickets = std::vector<ticket>{};
  for (auto i = 0; i < 3; ++i) {
    tickets.push_back(e.cache.fence().issue(timeline_id{0}));
    auto const ids = head(tail(prompt, r.seq.length().value()), 2);
    auto const items = std::vector<group_engine<ticketed>::work>{{&r, ids}};
    if (i == 2) { // both buffers are in flight
      e.cache.fence().complete(timeline_id{0}, tickets[0]);
      e.cache.reclaim();
      CHECK(e.now(1).evictable == block_count{0}); // hangs on a lead block that is not full
      CHECK(e.now(1).free == block_count{12 - 2});
    }
    e.step(items, tickets.back());
  }
  CHECK(e.count_held(r, 1) == 0);
  CHECK(e.now(1).free == block_count{12 - 4});
  e.cache.fence().complete(timeline_id{0}, tickets[1]);
  e.cache.reclaim();
  CHECK(e.now(1).free + e.now(1).evictable == block_count{12 - 2});
  e.cache.fence().complete(timeline_id{0}, tickets[2]);
  e.cache.reclaim();
  CHECK(e.now(1).free + e.now(1).evictable == block_count{12});
}

TEST_CASE("S24: a preempted sequence gives its windows back and resumes on what is left of them") {
  auto e = group_engine<>{groups_of(64, {group_of({}), group_of(window_of(5), 16)})};
  auto r = e.serve(ascending(17), 8);
  e.step({{&r, {50}}});
  auto const all = joined(ascending(17), {50});
  REQUIRE(e.cache.preempt(r.seq).has_value());
  check(e.cache);
  CHECK(e.figures(1) == quire_test::short_figures{12, 4, 0});
  auto wanted = e.wanted(all, 7);
  wanted.resumed = true;
  auto got = e.ask(wanted);
  REQUIRE(got.has_value());
  CHECK(got->cached() == token_count{16});
  auto again = group_engine<>::request{std::move(*got), head(all, 16)};
  e.prefill(again, all);
  auto const stats = e.cache.statistics();
  CHECK(stats.hit_tokens == 0); // its own work is no hit
  CHECK(stats.self_hit_tokens == 16);
}

TEST_CASE("S15: compaction moves the blocks of every group, and every read gives the same") {
  auto e = group_engine<>{groups_of(64, {group_of({}), group_of(window_of(9), 64), group_of(window_of(4, 3), 64, 2)})};
  auto first = e.serve(ascending(19));
  auto r = e.serve(ascending(19, 100), 8);
  auto child = e.fork(r, 19);
  e.release(first);
  e.keep(ascending(9, 300));
  auto const idle = e.hit(ascending(10, 300));
  auto const moves = e.cache.compact();
  REQUIRE(moves.has_value());
  check(e.cache);
  e.perform(*moves);
  e.step({{&r, {50}}, {&child, {51}}});
  e.step({{&r, {52}}, {&child, {53}}});
  CHECK(e.hit(ascending(10, 300)) == idle);
  auto follower = e.serve(ascending(10, 300), 3);
  e.step({{&follower, {9}}});
}
