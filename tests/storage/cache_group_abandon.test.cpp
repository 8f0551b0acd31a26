// SPDX-License-Identifier: Apache-2.0
// A lost timeline in a cache whose groups give blocks up: what it never finished is lost, in every group, and nothing else.
#include <quire/block/ticket_fence.hpp>
#include <quire/cache/kv_cache.hpp>

#include "storage/group_fixture.hpp"
#include "support/catch_compat.hpp"

#include <cstdint>
#include <vector>

namespace {
using namespace quire;
using quire_test::ascending;
using quire_test::group;
using quire_test::group_of;
using quire_test::groups_of;

using quire_test::text;
using quire_test::window_of;

struct two_timelines : default_policies {
  using fence = ticket_fence<2>;
};
using engine = quire_test::group_engine<two_timelines>;

constexpr auto t0 = timeline_id{0};
constexpr auto t1 = timeline_id{1};

// What keeps everything, and a window; blocks of 4.
auto full_and_window(unsigned window = 5) -> engine {
  auto options = groups_of(16, {group_of({}), group_of(window_of(window), 16)});
  options.batch_buffers = 4;
  return engine{options};
}

// Computes ids in a step that finishes.
void finish(engine& e, engine::request& r, text const& ids, timeline_id t = t0) {
  auto const until = e.cache.fence().issue(t);
  e.step({{&r, ids}}, until, t);
  e.cache.fence().complete(t, until);
}
// Computes ids in a step that does not.
void begin(engine& e, engine::request& r, text const& ids, timeline_id t = t0) {
  e.step({{&r, ids}}, e.cache.fence().issue(t), t);
}
auto lost(engine& e) -> std::vector<std::uint32_t> { return {e.now(0).lost.value(), e.now(1).lost.value()}; }
using counts = std::vector<std::uint32_t>;
} // namespace

TEST_CASE("S18: windows lose what a lost timeline never finished, and go on where they are whole") {
  auto e = full_and_window();
  auto r = e.admit(ascending(8), 12);
  finish(e, r, ascending(8));
  begin(e, r, {9, 10}); // the next query sees 6 to 10: the window still has block 1
  CHECK(*e.cache.abandon(t0) == block_count{2});
  quire_test::check(e.cache);
  CHECK(lost(e) == counts{1, 1}); // block 2 of each
  CHECK(r.seq.length() == token_count{8});
  CHECK(e.held(r, 1) == std::vector<bool>{false, true});
  r.tokens.resize(8);
  finish(e, r, {9, 10, 11, 12, 13}); // every query reads what it may see
  CHECK(lost(e) == counts{1, 1});
}

TEST_CASE("S18: a sequence whose window moved on under a lost timeline begins anew, from what others can find") {
  auto e = full_and_window();
  auto r = e.admit(ascending(8), 12);
  finish(e, r, ascending(8));
  begin(e, r, {9, 10, 11, 12}); // the next query sees 8 to 12: block 1, which was finished, waits for the step
  CHECK(*e.cache.abandon(t0) == block_count{2});
  quire_test::check(e.cache);
  CHECK(lost(e) == counts{1, 1});
  CHECK(r.seq.length() == token_count{0});
  CHECK(e.hit(ascending(9)) == 8); // block 1 of the window was not lost with it
  r.tokens.clear();
  finish(e, r, ascending(12));
}

TEST_CASE("S18: what others read of a window stays theirs when somebody who had left it is lost") {
  auto e = full_and_window();
  e.keep(ascending(8));
  auto stays = e.admit(ascending(9), 4);
  REQUIRE(stays.seq.cached() == token_count{8});
  finish(e, stays, {9}, t1);
  auto moves = e.admit(ascending(9), 8);
  REQUIRE(moves.seq.cached() == token_count{8});
  begin(e, moves, {9, 10, 11, 12, 13}); // leaves block 1 of the window
  CHECK(*e.cache.abandon(t0) == block_count{4});
  quire_test::check(e.cache);
  CHECK(lost(e) == counts{2, 2}); // blocks 2 and 3 of each
  CHECK(moves.seq.length() == token_count{0});
  CHECK(stays.seq.length() == token_count{9});
  finish(e, stays, {10, 11}, t1);
}

TEST_CASE("S18: whoever attached window blocks that a lost timeline never finished is cut back too") {
  auto e = full_and_window();
  auto writer = e.admit(ascending(9), 4);
  begin(e, writer, ascending(9));
  auto reader = e.admit(ascending(9), 4);
  REQUIRE(reader.seq.cached() == token_count{8});
  REQUIRE(e.cache.abandon(t0).has_value());
  quire_test::check(e.cache);
  CHECK(writer.seq.length() == token_count{0});
  CHECK(reader.seq.length() == token_count{0});
  CHECK(e.now().published == block_count{0});
  CHECK(e.now(1).evictable == block_count{0});
  reader.tokens.clear();
  finish(e, reader, ascending(9), t1);
}

TEST_CASE("S18: what ended or was given up on a lost timeline is never used again, in any group") {
  auto e = full_and_window();
  auto ended = e.admit(ascending(6), 4);
  begin(e, ended, ascending(6));
  e.release(ended);
  auto left = e.admit(ascending(8, 50), 12);
  begin(e, left, ascending(8, 50)); // in flight when the next step lets block 0 go
  begin(e, left, {7, 7, 7, 7});
  CHECK(e.held(left, 1) == std::vector<bool>{false, false, true});
  REQUIRE(e.cache.abandon(t0).has_value());
  quire_test::check(e.cache);
  CHECK(lost(e) == counts{5, 5}); // two and three of each
  CHECK(e.now(1).free == block_count{11});
  CHECK(e.now().waiting == block_count{0});
  e.keep(ascending(8)); // life goes on
}

TEST_CASE("S18: what a sequence computes again behind a cut is not finished, although it had found those positions") {
  auto e = full_and_window(9);
  e.keep(ascending(8));
  auto r = e.admit(ascending(9), 8);
  REQUIRE(r.seq.cached() == token_count{8});
  finish(e, r, {9});
  e.truncate(r, 6);
  begin(e, r, {70, 80}); // into copies of block 1
  CHECK(*e.cache.abandon(t0) == block_count{2});
  quire_test::check(e.cache);
  CHECK(lost(e) == counts{1, 1});
  CHECK(r.seq.length() == token_count{4});
  CHECK(e.hit(ascending(9)) == 8); // the blocks that were copied are as they were
  r.tokens.resize(4);
  finish(e, r, {70, 80, 90});
}

TEST_CASE("S18: a copy that a step made and left at once is not finished") {
  auto e = full_and_window(9);
  e.keep(ascending(8));
  auto r = e.admit(ascending(9), 12);
  REQUIRE(r.seq.cached() == token_count{8});
  finish(e, r, {9});
  e.truncate(r, 6);
  begin(e, r, ascending(11, 70)); // copies block 1, and the window has left the copy when the step ends at 17
  REQUIRE(e.held(r, 1) == std::vector<bool>{false, false, true, true, true});
  CHECK(*e.cache.abandon(t0) == block_count{8});
  quire_test::check(e.cache);
  CHECK(lost(e) == counts{4, 4}); // the copy and three behind it, in both groups
  CHECK(e.hit(ascending(9)) == 8);
}

TEST_CASE("S18: a prompt that was found whole is not lost with a timeline that works for others") {
  auto e = full_and_window();
  e.keep(ascending(8));
  auto other = e.admit(ascending(4, 50), 4);
  begin(e, other, ascending(4, 50));
  auto r = e.admit(ascending(8), 4); // what it found might be anybody's work in flight
  REQUIRE(r.seq.cached() == token_count{7});
  CHECK(*e.cache.abandon(t0) == block_count{2}); // the other one's
  quire_test::check(e.cache);
  CHECK(r.seq.length() == token_count{7});
  CHECK(other.seq.length() == token_count{0});
}

TEST_CASE("S18: a window block that was copied from stays with those who had finished it") {
  auto options = groups_of(32, {group_of({}), group_of(window_of(5), 16, 4)}, 2);
  options.batch_buffers = 4;
  auto e = engine{options};
  auto parent = e.admit(ascending(6), 6);
  finish(e, parent, ascending(6));
  auto child = e.fork(parent, 6);
  begin(e, child,
        {9}); // a copy of the unit, and one more block, where everything is kept; a copy of block 1 for the window
  CHECK(*e.cache.abandon(t0) == block_count{3});
  quire_test::check(e.cache);
  CHECK(lost(e) == counts{2, 1});
  CHECK(parent.seq.length() == token_count{6});
  finish(e, parent, {7, 8}, t1);
}

TEST_CASE("S18: what is lost is lost at once, although another timeline still reads it") {
  auto e = full_and_window();
  auto r = e.admit(ascending(8), 12);
  begin(e, r, ascending(8)); // blocks 0 and 1 of both groups
  auto const reads = e.cache.fence().issue(t1);
  e.step({{&r, {9}}}, reads, t1); // reads them, and writes block 2
  CHECK(*e.cache.abandon(t0) == block_count{4});
  quire_test::check(e.cache);
  CHECK(lost(e) == counts{2, 2});
  CHECK(e.now(0).waiting == block_count{1}); // block 2 comes back
  CHECK(e.now(1).waiting == block_count{1});
  e.cache.fence().complete(t1, reads);
  e.cache.reclaim();
  quire_test::check(e.cache);
  CHECK(lost(e) == counts{2, 2});
  CHECK(e.now(0).waiting == block_count{0});
  CHECK(e.now(0).free == block_count{14});
}

TEST_CASE("S18: what another timeline still reads waits for it, although its sequence was cut off there") {
  auto e = full_and_window();
  e.keep(ascending(8));
  auto r = e.admit(ascending(9), 12);
  REQUIRE(r.seq.cached() == token_count{8});
  auto const reads = e.cache.fence().issue(t1);
  e.step({{&r, {9}}}, reads, t1); // reads blocks 0 and 1
  begin(e, r, {10, 11, 12, 13});  // leaves block 1 of the window
  REQUIRE(e.cache.abandon(t0).has_value());
  quire_test::check(e.cache);
  CHECK(r.seq.length() == token_count{0});
  CHECK(e.now().evictable == block_count{0});  // the reader is still at it
  CHECK(e.now(1).evictable == block_count{1}); // block 0, which it does not see
  e.cache.fence().complete(t1, reads);
  e.cache.reclaim();
  quire_test::check(e.cache);
  CHECK(e.now().evictable == block_count{2});
  CHECK(e.now(1).evictable == block_count{2});
}
