// SPDX-License-Identifier: Apache-2.0
// Reported failures of caches with windows and mixed stacks, as this one has to behave.
#include <quire/model/retention.hpp>

#include "storage/group_fixture.hpp"
#include "support/catch_compat.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace {
using namespace quire;
using quire_test::ascending;
using quire_test::chunks_of;
using quire_test::group;
using quire_test::group_engine;
using quire_test::group_of;
using quire_test::groups_of;
using quire_test::head;
using quire_test::joined;
using quire_test::text;
using quire_test::tokens;
using quire_test::window_of;

struct eager : default_policies { // pools can be filled to the last block
  using admission = admit_all;
};
using engine = group_engine<eager>;

// Takes as many blocks as \p length needs, and makes none matchable.
void press(engine& e, std::size_t length) {
  auto const p = ascending(length, 90'000);
  auto wanted = e.wanted(p);
  wanted.reuse = reuse_rule::none;
  auto got = e.ask(wanted);
  REQUIRE(got.has_value());
  auto r = engine::request{std::move(*got), {}};
  e.prefill(r, p);
}
} // namespace

TEST_CASE("case 37: what hung on a prefix and belongs to somebody else now is not freed with the prefix") {
  auto e = engine{groups_of(5, {group_of({}), group_of(window_of(100), 9, 2)})};
  e.keep(ascending(9)); // two lead blocks, four window blocks hang on them, two on each
  REQUIRE(e.figures(1) == quire_test::short_figures{5, 4, 0});
  auto const prompt = ascending(11, 500);
  auto wanted = e.wanted(prompt, 4);
  wanted.reuse = reuse_rule::none;
  auto got = e.ask(wanted);
  REQUIRE(got.has_value());
  auto r = engine::request{std::move(*got), {}};
  e.prefill(r, prompt); // six window blocks: five free ones, and the deepest that hangs; three lead blocks are free
  CHECK(e.now().published == block_count{2});
  CHECK(e.figures(1) == quire_test::short_figures{0, 3, 3});
  e.step({{&r, {1}}});
  e.step(
      {{&r, {2}}}); // takes the deeper lead block, on which the one that is in use here hung, and the next window block
  CHECK(e.now().published == block_count{1});
  CHECK(e.figures(1) == quire_test::short_figures{0, 2, 2});
  e.step({{&r, {3}}}); // reads all it may see
  e.step({{&r, {4}}});
}

TEST_CASE("case 54: a hit that is one block shorter is searched anew, it needs another block in front") {
  // w = 4 in blocks of 2; of a prefix of 8 the window has [-, -, A, B]
  auto e = engine{groups_of(64, {group_of({}), group_of(window_of(4), 6, 2)}, 2)};
  auto const prompt = ascending(9);
  e.keep(prompt); // idle: 0, 1, 2, 3 and one block is free again with the private one
  press(e, 7);    // four blocks: two free, and the longest idle, 0 and 1
  REQUIRE(e.now(1).evictable == block_count{2});
  CHECK(e.hit(prompt) == 8);                        // A and B
  CHECK(e.hit(joined(head(prompt, 7), {-1})) == 0); // 6 would need block 1 and A
  CHECK(e.hit(prompt) == 8);
}

TEST_CASE("case 55: sessions in turn keep their windows while there is room, and lose them one by one after that") {
  auto const turn = [](engine& e, std::vector<text>& sessions, std::size_t i) { // the hit of the next turn
    sessions[i] = joined(sessions[i], ascending(6, static_cast<token_id>(1000 * sessions[i].size())));
    auto r = e.admit(sessions[i], 4);
    auto const hit = r.seq.cached().value();
    e.prefill(r, sessions[i]);
    for (token_id t = 0; t < 4; ++t) {
      e.step({{&r, {t}}});
      sessions[i].push_back(t);
    }
    return hit;
  };
  auto sessions = std::vector<text>{};
  for (token_id i = 0; i < 4; ++i) { sessions.push_back(ascending(9, 100 * i)); }
  SECTION("a quarter of the pool is in use: nobody loses anything") {
    auto e = engine{groups_of(256, {group_of({}), group_of(window_of(9), 128)})};
    for (std::size_t round = 0; round < 5; ++round) {
      for (std::size_t i = 0; i < 4; ++i) {
        auto const before = sessions[i].size();
        auto const hit = turn(e, sessions, i);
        if (round > 0) { REQUIRE(hit == before / 4 * 4); }
      }
    }
  }
  SECTION("blocks that nobody can find are taken first, then the front of whoever waits longest") {
    auto e = engine{groups_of(256, {group_of({}), group_of(window_of(9), 16)})};
    for (std::size_t i = 0; i < 4; ++i) { static_cast<void>(turn(e, sessions, i)); }
    CHECK(e.now(1).evictable == block_count{15});                                          // of four times four
    for (std::size_t i = 0; i < 4; ++i) { CHECK(e.hit(joined(sessions[i], {-1})) == 16); } // two blocks serve each
  }
  SECTION("with less room the sessions that wait longest lose their windows, not all of them") {
    auto e = engine{groups_of(256, {group_of({}), group_of(window_of(9), 12)})};
    for (std::size_t i = 0; i < 4; ++i) { static_cast<void>(turn(e, sessions, i)); }
    CHECK(e.hit(joined(sessions[0], {-1})) < 16);
    CHECK(e.hit(joined(sessions[2], {-1})) == 16);
    CHECK(e.hit(joined(sessions[3], {-1})) == 16);
  }
}

TEST_CASE("case 56: what is kept for a draft and what a hit with a draft needs come from one function") {
  for (auto const& keeps : {window_of(1), window_of(5), window_of(8), chunks_of(6)}) {
    for (auto const draft : {0U, 1U, 3U}) {
      CAPTURE(keeps.extent.value(), draft);
      auto e = engine{groups_of(64, {group_of({}), group_of(keeps, 64)})};
      auto const prompt = ascending(21);
      auto r = e.admit(prompt, 8, draft);
      e.prefill(r, prompt);
      e.step({{&r, ascending(draft + 1, 50)}});
      e.truncate(r, 22); // every guess was wrong
      e.release(r);
      CHECK(e.hit(prompt, draft) == 20);
      CHECK(e.hit(prompt, 0) == 20);
      auto again = e.admit(prompt, 8, draft);
      e.prefill(again, prompt);
      e.step({{&again, ascending(draft + 1, 50)}});
      e.truncate(again, 22);
    }
  }
}

TEST_CASE("case 58: every group counts in blocks of its own size") {
  // a prompt of 100096 tokens in blocks of 128 and of 2176
  auto options = groups_of(800, {group_of({}, 800, 128), group_of(window_of(4096), 50, 2176)}, 128);
  options.max_append = token_count{}; // all of it in one step
  auto e = kv_cache<>{options};
  auto const scope = e.open_scope(compute_identity{quire_test::some_fields()}, quire_test::domain_of("tenant"));
  auto const prompt = ascending(100'096);
  auto wanted = admit_request{};
  wanted.scope = scope;
  wanted.prompt = prompt;
  wanted.max_output = token_count{8};
  auto r = e.admit(wanted).value();
  auto const items = std::vector{kv_cache<>::step_item{r, prompt}};
  auto plan = e.plan_step(items).value();
  static_cast<void>(plan.launch());
  CHECK(plan.view(group(0)).block_tokens == 128);
  CHECK(plan.view(group(1)).block_tokens == 2176);
  CHECK(plan.view(group(0)).blocks_of_row(0).size() == 782);
  CHECK(plan.view(group(1)).blocks_of_row(0).size() == 46);
  auto const last = plan.view(group(1)).locate(0, token_pos{100'095});
  CHECK(last.block == r.blocks(group(1))[45]); // (100096 − 1) / 2176
  CHECK(last.offset == token_count{100'095 - 45 * 2176});
  CHECK(plan.view(group(1)).slot[100'095] == std::int64_t{last.block.value()} * 2176 + last.offset.value());
  REQUIRE(e.commit(std::move(plan)).has_value());
  CHECK(r.blocks(group(1))[44] != block_id::none()); // the next window of 4096 begins at 96001, in block 44
  CHECK(r.blocks(group(1))[43] == block_id::none());
}

TEST_CASE("case 59: the smallest prefix that can be found again is a figure that one can ask for") {
  auto const small =
      engine{groups_of(8192, {group_of({}), group_of(window_of(64), 4096, 32), group_of(window_of(8), 4096, 2)}, 128)};
  CHECK(small.cache.reuse_alignment() == token_count{128});
  auto e = engine{groups_of(64, {group_of({}), group_of(window_of(20), 64, 6), group_of(window_of(9), 64, 10)})};
  CHECK(e.cache.reuse_alignment() == token_count{60});
  auto const prompt = ascending(59);
  e.keep(prompt);
  CHECK(e.hit(prompt) == 0); // off, and not silently
  e.keep(ascending(61));
  CHECK(e.hit(ascending(61)) == 60);
  CHECK(engine{groups_of(64, {group_of({})})}.cache.reuse_alignment() == token_count{4});
  CHECK(engine{groups_of(64, {group_of(window_of(4), 8, 6)})}.cache.reuse_alignment() == token_count{6});
}

TEST_CASE("case 60: an append that begins at the border of a block has all its blocks when it runs, and none after "
          "it is cut") {
  for (auto const unit : {1U, 2U, 4U, 8U}) {
    auto e = engine{groups_of(64, {group_of({}), group_of(window_of(5), 64, unit), group_of(chunks_of(8), 64, unit)})};
    auto r = e.admit(ascending(8), 20, 2);
    e.prefill(r, ascending(8)); // ends at a border
    for (token_id t = 0; t < 12; ++t) {
      auto const items = std::vector<engine::work>{{&r, {t, -1, -2}}}; // one token and a look-ahead of two
      auto planned = e.plan(items);
      e.execute(planned, items);
      auto const end = r.seq.length().value() + 3;
      for (std::uint32_t g = 0; g < 3; ++g) {
        auto const& view = planned.view(group(g));
        CAPTURE(unit, t, g);
        REQUIRE(r.seq.blocks(group(g)).size() == (end + e.unit(g) - 1) / e.unit(g)); // up to the end, and not beyond
        for (std::size_t k = 0; k < 3; ++k) {
          auto const place = view.locate(0, token_pos{end - 3 + static_cast<std::uint32_t>(k)});
          REQUIRE(static_cast<bool>(place.block));
          REQUIRE(view.slot[k] == std::int64_t{place.block.value()} * e.unit(g) + place.offset.value());
        }
      }
      e.commit(std::move(planned), items);
      e.truncate(r, end - 2);
      for (std::uint32_t g = 0; g < 3; ++g) {
        REQUIRE(r.seq.blocks(group(g)).size() == (end - 2 + e.unit(g) - 1) / e.unit(g));
      }
    }
  }
}

TEST_CASE("case 63: a ring grows by what it has room for, however far its positions have gone") {
  auto const ring = retention::ring({.capacity = token_count{8}, .window = token_count{8}});
  auto options = groups_of(64, {group_of({}), group_of(ring, 8, 2)});
  options.max_append = token_count{1};
  auto e = engine{options};
  auto r = e.admit(ascending(1), 60);
  e.prefill(r, ascending(1));
  for (token_id t = 0; r.seq.length().value() < 60; ++t) {
    e.step({{&r, {t}}}); // reads what it may see
    REQUIRE(e.count_held(r, 1) <= 5);
  }
}

TEST_CASE("case 66: prefill and decode keep the same positions of a window, and use the same") {
  // w = 128 in blocks of 1: between steps the last 127 stay, in a step 128 are read
  for (auto const q : {1U, 7U, 300U}) {
    auto options = groups_of(400, {group_of({}), group_of(window_of(128), 400, 1)}, 1);
    auto e = engine{options};
    auto r = e.admit(ascending(300), 20);
    e.prefill(r, ascending(300), q);
    CAPTURE(q);
    REQUIRE(e.count_held(r, 1) == 127);
    REQUIRE_FALSE(e.held(r, 1)[300 - 128]);
    REQUIRE(e.held(r, 1)[300 - 127]);
    for (token_id t = 0; t < 10; ++t) {
      auto const items = std::vector<engine::work>{{&r, {t}}};
      auto planned = e.plan(items);
      e.execute(planned, items);
      auto const cells = planned.view(group(1)).blocks_of_row(0);
      REQUIRE(std::count_if(cells.begin(), cells.end(), [](std::int32_t c) { return c != -1; }) == 128);
      e.commit(std::move(planned), items);
      REQUIRE(e.count_held(r, 1) == 127);
    }
  }
}

TEST_CASE("case 67: what a window keeps is read at the position that it was written for, the new one too") {
  // two sinks and a window of 4: every cell holds the position its key was rotated for
  auto e = engine{groups_of(64, {group_of({}), group_of(window_of(4, 2), 64, 2)})};
  auto r = e.admit(ascending(1), 40);
  auto written = std::vector<std::int32_t>(std::size_t{64} * 2, -1);
  for (token_id t = 0; r.seq.length().value() < 30; ++t) {
    auto const items = std::vector<engine::work>{{&r, {t}}};
    auto planned = e.plan(items);
    e.execute(planned, items);
    auto const& view = planned.view(group(1));
    auto const query = view.position[0];
    REQUIRE(query == static_cast<std::int32_t>(r.tokens.size()));
    written[static_cast<std::size_t>(view.slot[0])] = query; // rotated for its logical position, not for its rank
    for (std::int32_t p = 0; p <= query; ++p) {
      if (p >= 2 && p < query - 3) { continue; }
      auto const place = view.locate(0, token_pos{static_cast<std::uint32_t>(p)});
      REQUIRE(written[place.block.value() * 2U + place.offset.value()] == p);
    }
    e.commit(std::move(planned), items);
  }
}
