// SPDX-License-Identifier: Apache-2.0

/// \file
/// The parts of a block group, each by itself: its account, its content, its idle blocks, its waiting blocks.

#include <quire/block/immediate_fence.hpp>
#include <quire/block/ticket_fence.hpp>
#include <quire/cache/detail/block_ledger.hpp>
#include <quire/cache/detail/fence_clock.hpp>
#include <quire/cache/detail/idle_blocks.hpp>
#include <quire/cache/detail/unit_blocks.hpp>
#include <quire/cache/detail/waiting_blocks.hpp>
#include <quire/core/types.hpp>
#include <quire/prefix/lfu_eviction.hpp>
#include <quire/prefix/lru_eviction.hpp>
#include <quire/prefix/no_eviction.hpp>
#include <quire/sequence/block_table.hpp>

#include "support/catch_compat.hpp"

#include <cstdint>
#include <vector>

namespace {

using namespace quire;
using namespace quire::detail;

auto never(block_id) -> bool { return false; }
auto numbers(std::vector<block_id> const& blocks) -> std::vector<std::uint32_t> {
  auto out = std::vector<std::uint32_t>{};
  for (auto const block : blocks) { out.push_back(block.value()); }
  return out;
}
using list = std::vector<std::uint32_t>;

TEST_CASE("S17: an account by path counts down what each was promised", "[storage]") {
  auto ledger = block_ledger{true, 8};
  auto a = block_table{};
  auto b = block_table{};
  ledger.owe(a, 5);
  ledger.owe(b, 2);
  CHECK(ledger.promised() == 7);
  ledger.took(a, 3);
  CHECK(ledger.promised() == 4);
  ledger.took(b, 3); // one more than it was promised
  CHECK(ledger.promised() == 2);
  a.held = 3;
  ledger.account(a);
  CHECK(ledger.held() == 3);
  a.held = 1;
  ledger.account(a);
  CHECK(ledger.held() == 1);
}

TEST_CASE("S17: an account by block counts a block once, however many use it", "[storage]") {
  auto ledger = block_ledger{false, 8};
  auto a = block_table{};
  auto b = block_table{};
  ledger.set_budget(a, 4);
  ledger.set_budget(b, 3);
  CHECK(ledger.promised() == 7);
  ledger.use(a, block_id{6});
  ledger.use(b, block_id{6});
  CHECK(ledger.promised() == 6);
  CHECK(ledger.users(block_id{6}) == 2);
  ledger.leave_use(a, block_id{6});
  CHECK(ledger.promised() == 6);
  ledger.swap(block_id{6}, block_id{1});
  CHECK(ledger.users(block_id{1}) == 1);
  ledger.leave_use(b, block_id{1});
  CHECK(ledger.in_use() == 0);
  ledger.set_budget(b, 0);
  ledger.use(b, block_id{2}); // it has ended: nobody's use
  CHECK(ledger.in_use() == 0);
  CHECK(ledger.promised() == 4);
}

TEST_CASE("S17: what is reserved for live sequences is promised no more", "[storage]") {
  auto ledger = block_ledger{true, 8};
  auto t = block_table{};
  ledger.owe(t, 5);
  ledger.reserve(3);
  CHECK(ledger.promised() == 2);
  ledger.end_reserved(2);
  CHECK(ledger.promised() == 4);
  CHECK(ledger.reserved() == 3);
  ledger.unreserve();
  CHECK(ledger.promised() == 5);
  CHECK(ledger.reserved() == 0);
}

TEST_CASE("S35: blocks hang on units, move with them, and know an older epoch", "[storage]") {
  auto content = unit_blocks{unit_count{3}, 2, 6};
  CHECK(content.place(unit_id{2}, 1) == 5);
  auto const path = std::vector<unit_id>{unit_id{2}, unit_id{0}};
  CHECK(content.place(path, 1) == 5);
  CHECK(content.place(path, 2) == 0);
  content.hang(block_id{4}, 5);
  CHECK(content.size() == 1);
  CHECK(content[5] == block_id{4});
  CHECK(content.of(block_id{4}) == 5);
  CHECK_FALSE(content.unreachable(block_id{4}));
  content.close_epoch();
  CHECK(content.unreachable(block_id{4}));
  content.move(unit_id{2}, unit_id{1});
  CHECK_FALSE(content[5]);
  CHECK(content[3] == block_id{4});
  CHECK(content.of(block_id{4}) == 3);
  auto to = std::vector<block_id>(6);
  to[4] = block_id{0};
  content.relocate(to);
  CHECK(content[3] == block_id{0});
  CHECK(content.of(block_id{0}) == 3);
  CHECK(content.of(block_id{4}) == unit_blocks::nowhere);
  CHECK(content.unreachable(block_id{0}));
  content.take_off(block_id{0}, 3);
  CHECK(content.size() == 0);
  CHECK_FALSE(content.unreachable(block_id{0})); // it hangs nowhere
}

TEST_CASE("B4: idle blocks leave in the policy's order, unreachable ones before", "[storage]") {
  auto lru = idle_blocks<lru_eviction>{4};
  for (auto const b : {2U, 0U, 3U}) {
    lru.create(block_id{b});
    lru.enter(block_id{b}, false);
  }
  CHECK(lru.victim(never) == block_id{2});
  lru.leave(block_id{2});
  lru.enter(block_id{2}, false);
  CHECK(lru.victim(never) == block_id{0});
  lru.create(block_id{1});
  lru.enter(block_id{1}, true);
  CHECK(lru.victim(never) == block_id{1});
  CHECK(lru.evictable() == 4);
  auto all = std::vector<block_id>{};
  lru.take_all(all);
  CHECK(numbers(all) == list{1, 0, 3, 2});
  CHECK(lru.size() == 0);

  auto lfu = idle_blocks<lfu_eviction>{2};
  for (auto const b : {0U, 1U}) {
    lfu.create(block_id{b});
    lfu.enter(block_id{b}, false);
  }
  lfu.leave(block_id{0});
  lfu.use(block_id{0});
  lfu.enter(block_id{0}, false);
  CHECK(lfu.victim(never) == block_id{1});
  lfu.sweep_again();
  CHECK(lfu.victim([](block_id b) { return b == block_id{0}; }) == block_id{0}); // found by the walk

  auto none = idle_blocks<no_eviction>{2};
  none.create(block_id{0});
  none.enter(block_id{0}, false);
  CHECK(none.size() == 1);
  CHECK(none.evictable() == 0);
  CHECK_FALSE(none.victim(never));
}

TEST_CASE("S18: a block waits for one timeline after the other, in the order it was left", "[storage]") {
  auto clock = fence_clock<ticket_fence<2>>{};
  auto waiting = waiting_blocks<fence_clock<ticket_fence<2>>>{clock, 4};
  auto& fence = clock.fence();
  auto const first = clock.issue(timeline_id{0});
  auto const second = clock.issue(timeline_id{1});
  waiting.note_use(block_id{3}, {first, second});
  waiting.note_use(block_id{1}, {first, ticket{}});
  CHECK(waiting.enter(block_id{3}));
  CHECK(waiting.enter(block_id{1}));
  CHECK_FALSE(waiting.enter(block_id{0})); // nobody used it
  CHECK(waiting.size() == 2);
  auto over = std::vector<block_id>{};
  auto const turn = [&](block_id b) {
    if (!waiting.enter(b)) { over.push_back(b); }
  };
  waiting.reclaim(never, turn);
  CHECK(over.empty());
  fence.complete(timeline_id{0}, first);
  waiting.reclaim(never, turn);
  CHECK(numbers(over) == list{1});
  CHECK(waiting.queued(block_id{3}));
  fence.complete(timeline_id{1}, second);
  waiting.reclaim(never, turn);
  CHECK(numbers(over) == list{1, 3});
  CHECK(waiting.size() == 0);
}

TEST_CASE("S18: a block that is held again keeps its place in the queue and is passed over", "[storage]") {
  auto clock = fence_clock<ticket_fence<1>>{};
  auto waiting = waiting_blocks<fence_clock<ticket_fence<1>>>{clock, 2};
  auto const until = clock.issue(timeline_id{0});
  waiting.note_use(block_id{0}, {until});
  REQUIRE(waiting.enter(block_id{0}));
  waiting.hold_again();
  CHECK(waiting.size() == 0);
  CHECK(waiting.queued(block_id{0}));
  CHECK(waiting.enter(block_id{0})); // left again: it stands there still
  CHECK(waiting.size() == 1);
  waiting.hold_again();
  clock.fence().complete(timeline_id{0}, until);
  auto turns = 0;
  waiting.reclaim([](block_id) { return true; }, [&](block_id) { ++turns; });
  CHECK(turns == 0);
  CHECK_FALSE(waiting.queued(block_id{0}));
}

TEST_CASE("S18: what a lost timeline may still write is doomed, and nothing else", "[storage]") {
  auto clock = fence_clock<ticket_fence<2>>{};
  auto waiting = waiting_blocks<fence_clock<ticket_fence<2>>>{clock, 4};
  auto const done = clock.issue(timeline_id{0});
  waiting.note_write(block_id{0}, 0, done);
  clock.fence().complete(timeline_id{0}, done);
  auto const open = clock.issue(timeline_id{0});
  waiting.note_write(block_id{1}, 0, open);
  waiting.note_writes(block_id{2}, {open, ticket{}});
  waiting.note_write(block_id{3}, 1, clock.issue(timeline_id{1}));
  waiting.doom(0, never);
  CHECK_FALSE(waiting.doomed(block_id{0}));
  CHECK(waiting.doomed(block_id{1}));
  CHECK(waiting.doomed(block_id{2}));
  CHECK_FALSE(waiting.doomed(block_id{3})); // of the other timeline
  waiting.lose();
  CHECK(waiting.lost() == 1);
}

TEST_CASE("S18: a doomed block waits for nobody, and one that waits is lost at once", "[storage]") {
  auto clock = fence_clock<ticket_fence<2>>{};
  auto waiting = waiting_blocks<fence_clock<ticket_fence<2>>>{clock, 4};
  auto const writes = clock.issue(timeline_id{0});
  auto const reads = clock.issue(timeline_id{1});
  for (auto const b : {0U, 1U, 2U}) {
    waiting.note_write(block_id{b}, 0, writes);
    waiting.note_use(block_id{b}, {ticket{}, reads});
  }
  waiting.note_use(block_id{3}, {ticket{}, reads});
  for (auto const b : {0U, 1U, 3U}) { REQUIRE(waiting.enter(block_id{b})); }
  waiting.hold_again(); // block 1
  waiting.doom(0, [](block_id b) { return b == block_id{1} || b == block_id{2}; });
  CHECK(waiting.size() == 1);                                                // block 3
  CHECK(waiting.lost() == 1);                                                // block 0
  for (auto const b : {1U, 2U}) { CHECK_FALSE(waiting.enter(block_id{b})); } // their holders leave
  auto seen = std::vector<block_id>{};
  waiting.for_each([&](block_id b) { seen.push_back(b); });
  CHECK(numbers(seen) == list{3});
  clock.fence().complete(timeline_id{1}, reads);
  auto over = std::vector<block_id>{};
  waiting.reclaim(never, [&](block_id b) { over.push_back(b); });
  CHECK(numbers(over) == list{3});
  CHECK(waiting.size() == 0);
}

TEST_CASE("S18: behind an immediate fence nothing waits and nothing is lost", "[storage]") {
  auto const now = fence_clock<immediate_fence>{};
  auto nothing = waiting_blocks<fence_clock<immediate_fence>>{now, 4};
  CHECK_FALSE(nothing.enter(block_id{0}));
  CHECK_FALSE(nothing.queued(block_id{0}));
  CHECK_FALSE(nothing.doomed(block_id{0}));
}

} // namespace
