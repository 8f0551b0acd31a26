// SPDX-License-Identifier: Apache-2.0
// One layer group by itself: content comes to units and leaves them, blocks come to tables and leave them, and everything is
// counted anew after each step. Work in flight: block_group_fences.test.cpp.
#include <quire/cache/detail/block_group.hpp>
#include <quire/core/types.hpp>
#include <quire/model/retention.hpp>
#include <quire/prefix/fifo_eviction.hpp>
#include <quire/prefix/no_eviction.hpp>
#include <quire/sequence/prefix_path.hpp>

#include "storage/cache/block_workshop.hpp"
#include "support/catch_compat.hpp"
#include "support/throwing_contract.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace {
using namespace quire;
using quire_test::block_workshop;
using quire_test::entries;
using quire_test::units_of;
using list = std::vector<int>;
using workshop = block_workshop<>;
using holder = workshop::holder;
using state = block_state;

auto window(std::uint32_t w) -> retention { return retention::sliding_window(token_count{w}); }
auto sinks(std::uint32_t s, std::uint32_t w) -> retention {
  return retention::sink_window({.sinks = token_count{s}, .window = token_count{w}});
}
} // namespace

// --- kept by path ------------------------------------------------------------------------------------------------------
TEST_CASE("S26: a step takes what its positions need, writes it and owns it") {
  for (auto const& keeps : {retention::full(), window(8)}) {
    auto w = workshop{keeps};
    auto h = holder{};
    w.begin(h);
    CHECK(w.group.by_path() == keeps.keeps_all());
    CHECK(w.group.needs(h.t, w.request(h, 9)) == 3);
    CHECK(w.take(h, 9) == 3);
    CHECK(entries(h.t) == list{0, 1, 2});
    CHECK(w.group.pool().state(block_id{2}) == state::writing);
    CHECK(w.group.ledger().held() == 3);
    w.check({&h});
    w.commit(h, w.request(h, 9));
    CHECK(w.group.pool().state(block_id{2}) == state::private_);
    CHECK(w.group.needs(h.t, w.request(h, 3)) == 0);
    CHECK(w.group.needs(h.t, w.request(h, 4)) == 1);
    w.append(h, 4);
    CHECK(h.t.size() == 4);
    w.check({&h});
    w.drop(h);
    CHECK(w.group.free() == 16);
    w.check({&h});
  }
}

TEST_CASE("S26: a step that is undone gives its blocks back, and its copy") {
  for (auto const& keeps : {retention::full(), window(8)}) {
    auto w = workshop{keeps};
    auto h = holder{};
    auto reader = holder{};
    w.begin(h);
    w.append(h, 6);
    w.fork(h, reader, 6);
    auto const before = entries(reader.t);
    auto const a = w.request(reader, 4);
    CHECK(w.group.copies(reader.t, a) == 1);
    CHECK(w.group.needs(reader.t, a) == 2);
    CHECK(w.take(reader, 4) == 2);
    CHECK(reader.sources == std::vector{block_id{1}});
    CHECK(reader.t.version == 0);
    w.check({&h, &reader});
    w.group.give_back(reader.t, 2, {});
    w.group.undo_copy(reader.t, 1, reader.sources.back(), {});
    reader.sources.clear();
    CHECK(entries(reader.t) == before);
    CHECK(w.group.free() == 14);
    w.check({&h, &reader});
    w.take(h, 10); // what was taken last returns first, so that it is taken in the same order again
    auto const taken = entries(h.t);
    w.group.give_back(h.t, 2, {});
    w.take(h, 10);
    CHECK(entries(h.t) == taken);
    w.group.give_back(h.t, 2, {});
    w.check({&h, &reader});
    w.append(reader, 1); // and done after all
    CHECK(reader.t.blocks[1] != h.t.blocks[1]);
    CHECK(w.group.pool().holders(h.t.blocks[1]) == 1);
    w.check({&h, &reader});
    w.drop(h);
    w.drop(reader);
    CHECK(w.group.free() == 16);
  }
}

TEST_CASE("S23: where the unit is copied, all its blocks that were written are") {
  auto w = workshop{retention::full(), {.blocks = 16, .block_tokens = 4, .per_unit = 2, .units = 4}};
  for (auto const& [length, blocks] : {std::pair{9U, 1U}, {12U, 1U}, {13U, 2U}}) { // the second unit begins at 8
    auto h = holder{};
    auto reader = holder{};
    w.begin(h);
    w.append(h, length);
    w.fork(h, reader, length);
    auto const a = w.request(reader, 1);
    CAPTURE(length);
    CHECK(a.copies_unit);
    CHECK(w.group.copies(reader.t, a) == blocks);
    CHECK(w.group.needs(reader.t, a) == blocks + (length == 12 ? 1U : 0U));
    w.append(reader, 1);
    CHECK(reader.t.blocks[0] == h.t.blocks[0]);
    CHECK(reader.t.blocks[1] == h.t.blocks[1]);
    CHECK(reader.t.blocks[2] != h.t.blocks[2]);
    w.check({&h, &reader});
    w.drop(h);
    w.drop(reader);
    CHECK(w.group.free() == 16);
  }
}

TEST_CASE("S21: kept by path, the pin on a unit keeps its blocks, and release touches none of them") {
  for (auto const per_unit : {1U, 2U}) {
    auto w = workshop{retention::full(), {.blocks = 16, .block_tokens = 4, .per_unit = per_unit, .units = 8}};
    auto h = holder{};
    auto twin = holder{};
    w.begin(h);
    w.append(h, 8 * per_unit + 2);
    w.arrive(h, 0, 5);
    w.arrive(h, 1, 3);
    CHECK(w.group.published() == 2 * per_unit);
    CHECK(w.group.ledger().held() == 1);
    CHECK(w.group.pool().holders(h.t.blocks[0]) == 0); // the hold has become the pin
    CHECK(w.group.pool().state(h.t.blocks[0]) == state::published);
    w.check({&h});
    auto const table = entries(h.t);
    CHECK(w.find(twin, {5, 3}, 8 * per_unit + 2, 8 * per_unit) == 0); // idle is the index's business here
    for (std::uint32_t j = 0; j < 2 * per_unit; ++j) { CHECK(entries(twin.t)[j] == table[j]); }
    CHECK(twin.t.skips(0) == 8 * per_unit);
    CHECK(w.group.ledger().held() == 1);
    w.check({&h, &twin});
    w.drop(twin);
    w.drop(h);
    CHECK(w.group.free() == 16 - 2 * per_unit);
    CHECK(w.group.idle() == 0);
    w.check({&h, &twin});
    CHECK(w.depart(3) == per_unit);
    CHECK(w.group.free() == 16 - per_unit);
    CHECK(w.depart(3) == 0);
    CHECK(w.depart(5) == per_unit);
    CHECK(w.group.published() == 0);
    w.check({});
  }
}

TEST_CASE("case 29: kept by path, the own blocks take the place of an idle twin's, and give way to a busy one's") {
  for (auto const per_unit : {1U, 2U}) {
    for (auto const origin : {unit_origin::idle_twin, unit_origin::busy_twin}) {
      auto w = workshop{retention::full(), {.blocks = 16, .block_tokens = 4, .per_unit = per_unit, .units = 8}};
      auto first = holder{};
      auto second = holder{};
      w.begin(first);
      w.begin(second);
      w.append(first, 4 * per_unit);
      w.append(second, 4 * per_unit + 1);
      w.arrive(first, 0, 2);
      auto const theirs = entries(first.t);
      auto own = entries(second.t);
      if (origin == unit_origin::idle_twin) { w.drop(first); }
      w.arrive(second, 0, 2, origin);
      auto now = entries(second.t);
      CHECK(now.back() == own.back()); // not full
      now.pop_back();
      own.pop_back();
      CHECK(now == (origin == unit_origin::idle_twin ? own : theirs));
      CHECK((second.t.version == 0));
      CHECK(w.group.published() == per_unit);
      CHECK(w.group.free() == 16 - per_unit - 1); // no room is taken twice
      w.check({&first, &second});
      w.drop(first);
      w.drop(second);
      CHECK(w.depart(2) == per_unit);
      CHECK(w.group.free() == 16);
    }
  }
}

TEST_CASE("S23: kept by path, what another holder has published is adopted") {
  auto w = workshop{retention::full()};
  auto h = holder{};
  auto reader = holder{};
  w.begin(h);
  w.append(h, 4);
  w.fork(h, reader, 4);
  CHECK(w.group.pool().holders(block_id{0}) == 2);
  w.arrive(h, 0, 1);
  CHECK(w.group.pool().holders(block_id{0}) == 1);
  w.check({&h, &reader});
  w.arrive(reader, 0, 1, unit_origin::adopted);
  CHECK(w.group.pool().holders(block_id{0}) == 0);
  CHECK(w.group.ledger().held() == 0);
  w.check({&h, &reader});
}

TEST_CASE("S17: kept by path, a sequence is promised what it has not taken, less what the plan at hand has reserved") {
  auto w = workshop{retention::full()};
  auto h = holder{};
  w.begin(h);
  w.group.ledger().owe(h.t, w.group.owes(h.t, 14, w.request(h, 0)));
  CHECK(w.group.ledger().promised() == 4);
  w.group.ledger().reserve(3);
  CHECK(w.group.ledger().promised() == 1);
  CHECK(w.group.ledger().reserved() == 3);
  w.group.ledger().end_reserved(2); // two of these for a sequence that has ended
  CHECK(w.group.ledger().reserved_by_live() == 1);
  CHECK(w.group.ledger().promised() == 3);
  w.group.ledger().unreserve();
  CHECK(w.group.ledger().promised() == 4);
  w.append(h, 5);
  CHECK(w.group.ledger().promised() == 2);
  CHECK(w.group.owes(h.t, 14, w.request(h, 0)) == 2);
  w.group.ledger().owe(h.t, 7); // it was cut, or may become longer
  CHECK(w.group.ledger().promised() == 7);
  CHECK(w.group.budget(14, 4, 0) == 4);
  w.drop(h);
  CHECK(w.group.ledger().promised() == 0);
}

// --- kept by block -----------------------------------------------------------------------------------------------------
TEST_CASE("S27: kept by block, what no query sees goes, stays found while it hangs, and is evicted in its own order") {
  for (auto const per_unit : {1U, 2U}) {
    auto w = workshop{window(5), {.blocks = 16, .block_tokens = 4, .per_unit = per_unit, .units = 8}};
    auto h = holder{};
    w.begin(h);
    w.append(h, 17);
    for (std::uint32_t u = 0; u < 16 / (4 * per_unit); ++u) { w.arrive(h, u, 7 - u); }
    CHECK(w.group.published() == 4);
    CHECK(w.group.pool().holders(h.t.blocks[0]) == 1); // a hold of its own
    w.check({&h});
    w.group.trim(h.t, 17, h.last); // from 13 on
    CHECK(entries(h.t) == list{-1, -1, -1, 3, 4});
    CHECK(h.t.released_end == 3);
    CHECK(w.group.idle() == 3);
    CHECK(w.group.published() == 4);
    CHECK(w.group.free() == 11);
    w.check({&h});
    w.group.trim(h.t, 17, h.last); // nothing more
    CHECK(w.group.evict(2) == 2);
    CHECK(w.group.published() == 2);
    CHECK(w.group.pool().state(block_id{0}) == state::free); // left first, so it is evicted first
    CHECK(w.group.pool().state(block_id{1}) == state::free);
    CHECK(w.group.pool().state(block_id{2}) == state::published);
    w.check({&h});
    CHECK(w.group.evict(9) == 1); // what is held never
    CHECK(w.group.evict(1) == 0);
    CHECK(w.group.free() == 14);
    w.drop(h);
    CHECK(w.group.idle() == 1);
    CHECK(w.group.evict(9) == 1);
    w.check({});
  }
}

TEST_CASE("S27: sinks stay, and are given back at the end") {
  auto w = workshop{sinks(5, 4)};
  auto h = holder{};
  w.begin(h);
  CHECK(w.group.has_sinks());
  w.append(h, 20);
  w.group.trim(h.t, 20, h.last);
  CHECK(entries(h.t) == list{0, 1, -1, -1, 4});
  CHECK(h.t.released_end == 4);
  CHECK(h.t.view_begin == 0); // views show the sinks
  CHECK(w.group.free() == 13);
  w.check({&h});
  w.drop(h);
  CHECK(w.group.free() == 16);
}

TEST_CASE("S27: views move on once half of what they show is released, and not at every block") {
  auto w = workshop{window(4), {.blocks = 32, .block_tokens = 4, .per_unit = 1, .units = 1}};
  auto h = holder{};
  w.begin(h, 200);
  auto moved = 0;
  for (auto step = 0; step < 40; ++step) {
    auto const before = h.t.view_begin;
    h.t.version = 7;
    w.append(h, 4);
    w.group.trim(h.t, h.committed, h.last);
    CHECK((h.t.version == 0) == (h.t.view_begin != before));
    CHECK(h.t.view_begin <= h.t.released_end);
    CHECK(h.t.size() - h.t.view_begin <= w.group.columns(200, h.t.budget));
    moved += h.t.view_begin != before ? 1 : 0;
  }
  CHECK(moved == 4); // by 8 blocks and more
  w.check({&h});
}

TEST_CASE("S29: a hit ends where the last block that its next query needs hangs") {
  auto w = workshop{window(9), {.blocks = 16, .block_tokens = 4, .per_unit = 1, .units = 8}};
  auto h = holder{};
  w.begin(h);
  w.append(h, 20);
  for (auto const u : {0U, 2U, 3U}) { w.arrive(h, u, u); } // units 1 and 4 have no block here
  auto const units = units_of({0, 1, 2, 3, 4});
  CHECK(w.group.longest_hit(units, 21, 20) == 16);
  CHECK(w.group.longest_hit(units, 21, 16) == 16);
  CHECK(w.group.longest_hit(units, 21, 15) == 4); // block 2 would need block 1 before it
  CHECK(w.group.longest_hit(units, 16, 16) == 4); // its next query is the last position, and sees block 1
  CHECK(w.group.longest_hit(units, 21, 12) == 4);
  CHECK(w.group.longest_hit(units, 21, 4) == 4);
  CHECK(w.group.longest_hit(units, 21, 3) == 0);
  w.drop(h);
  w.check({});
  auto full = workshop{retention::full()};
  CHECK(full.group.longest_hit(units, 21, 20) == 20); // every unit has its block there
  auto ring = workshop{retention::ring({.capacity = token_count{8}, .window = token_count{4}, .sinks = {}})};
  CHECK(ring.group.longest_hit(units, 21, 20) == 0); // never shared
}

TEST_CASE("S29: a hit maps what its next query sees, and holding it takes it out of the idle ones") {
  for (auto const per_unit : {1U, 2U}) {
    auto w = workshop{window(5), {.blocks = 16, .block_tokens = 4, .per_unit = per_unit, .units = 8}};
    auto h = holder{};
    auto reader = holder{};
    w.begin(h);
    w.append(h, 16);
    for (std::uint32_t u = 0; u < 4 / per_unit; ++u) { w.arrive(h, u, u); }
    auto const units = per_unit == 1 ? std::vector{0U, 1U, 2U, 3U} : std::vector{0U, 1U};
    CHECK(w.find(reader, units, 17, 16) == 0); // held by the other
    CHECK(entries(reader.t) == list{-1, -1, -1, 3});
    CHECK(reader.t.released_end == 3);
    CHECK(reader.t.skips(15) == 1);
    CHECK(w.group.pool().holders(block_id{3}) == 2);
    w.check({&h, &reader});
    w.drop(h);
    CHECK(w.group.idle() == 3);
    auto late = holder{};
    CHECK(w.find(late, units, 16, 16) == 1); // its first query is the last position, which sees one block more
    CHECK(entries(late.t) == list{-1, -1, 2, 3});
    CHECK(w.group.idle() == 2);
    w.check({&reader, &late});
    w.drop(reader);
    w.drop(late);
    CHECK(w.group.idle() == 4);
    CHECK(w.group.free() == 12);
    w.check({});
  }
}

TEST_CASE("case 29: kept by block, the own block replaces an idle twin, and gives way to one that is held") {
  for (auto const busy : {false, true}) {
    auto w = workshop{window(8)};
    auto first = holder{};
    auto second = holder{};
    w.begin(first);
    w.begin(second);
    w.append(first, 4);
    w.append(second, 4);
    w.arrive(first, 0, 6);
    if (!busy) { w.drop(first); }
    // whatever the path says of the unit, the block decides: another group may have the unit's only user
    w.arrive(second, 0, 6, busy ? unit_origin::idle_twin : unit_origin::busy_twin);
    CHECK(entries(second.t) == (busy ? list{0} : list{1}));
    CHECK(w.group.pool().holders(second.t.blocks[0]) == (busy ? 2 : 1));
    CHECK(w.group.published() == 1);
    CHECK(w.group.free() == 15);
    CHECK(w.group.idle() == 0);
    w.check({&first, &second});
    w.drop(first);
    w.drop(second);
    CHECK(w.group.idle() == 1);
    CHECK(w.depart(6) == 1);
    CHECK(w.group.free() == 16);
  }
}

TEST_CASE("S21: a block that hangs already does not hang twice, and a table lacks what has slid away") {
  auto w = workshop{window(4)};
  auto h = holder{};
  w.begin(h);
  w.append(h, 9);
  w.arrive(h, 0, 0);
  w.arrive(h, 0, 0); // told again
  CHECK(w.group.published() == 1);
  w.group.trim(h.t, 9, h.last);
  w.arrive(h, 1, 1);
  CHECK(w.group.published() == 2);
  w.check({&h});
  auto reader = holder{};
  w.find(reader, {0, 1}, 9, 8);
  w.arrive(reader, 0, 0, unit_origin::adopted); // has nothing there
  CHECK(w.group.published() == 2);
  w.check({&h, &reader});
  w.drop(h);
  w.drop(reader);
}

TEST_CASE("S21: a unit that leaves under a holder leaves it the block, which is private again") {
  auto w = workshop{window(8)};
  auto h = holder{};
  w.begin(h);
  w.append(h, 4);
  w.arrive(h, 0, 2);
  CHECK(w.depart(2) == 0);
  CHECK(w.group.pool().state(block_id{0}) == state::private_);
  CHECK(w.group.published() == 0);
  w.check({&h});
  w.arrive(h, 0, 4); // and may hang elsewhere
  CHECK(w.group.published() == 1);
  w.check({&h});
  w.drop(h);
}

TEST_CASE("case 29: a unit that takes the place of another in the index takes over what hangs there") {
  for (auto const per_unit : {1U, 2U}) {
    for (auto const& keeps : {retention::full(), window(8)}) {
      auto w = workshop{keeps, {.blocks = 16, .block_tokens = 4, .per_unit = per_unit, .units = 8}};
      auto h = holder{};
      w.begin(h);
      w.append(h, 4 * per_unit);
      w.arrive(h, 0, 2);
      w.drop(h);
      w.group.move(unit_id{2}, unit_id{5});
      w.in_index[2] = 0;
      w.in_index[5] = 1;
      CHECK(w.group.published() == per_unit);
      w.check({});
      auto reader = holder{};
      w.find(reader, {5}, 4 * per_unit + 1, 4 * per_unit);
      CHECK(reader.t.blocks.back() == block_id{per_unit - 1});
      w.check({&reader});
      w.drop(reader);
      CHECK(w.depart(2) == 0);
      CHECK(w.depart(5) == per_unit);
      CHECK(w.group.free() == 16);
      w.check({});
    }
  }
}

TEST_CASE("S17: kept by block, a block that several use is counted once, and their ends give the budgets back") {
  auto w = workshop{window(8)};
  auto h = holder{};
  w.begin(h);
  auto const budget = h.t.budget;
  CHECK(budget == w.group.budget(64, 4, 0));
  CHECK(w.group.ledger().promised() == budget);
  w.append(h, 8);
  CHECK(w.group.ledger().promised() == budget - 2);
  auto child = holder{};
  w.fork(h, child, 8);
  CHECK(w.group.ledger().promised() == 2 * budget - 2);
  w.append(child, 4);
  CHECK(w.group.ledger().promised() == 2 * budget - 3);
  w.check({&h, &child});
  w.group.set_budget(h.t, 0);                                         // it ends, and its plan is open yet
  CHECK(w.group.ledger().promised() == budget + budget - 3 - budget); // what the child holds, and it may hold more
  w.check({&h, &child});
  w.drop(h);
  CHECK(w.group.ledger().promised() == budget - 3);
  w.drop(child);
  CHECK(w.group.ledger().promised() == 0);
  w.check({&h, &child});
}

TEST_CASE("S28: a sequence that rebuilds its windows begins as if nothing came before") {
  auto w = workshop{window(8)};
  auto h = holder{};
  w.begin(h);
  w.group.begin_at(h.t, 12);
  h.committed = 12;
  CHECK(entries(h.t) == list{-1, -1, -1});
  CHECK(h.t.released_end == 3);
  CHECK(h.t.view_begin == 3);
  w.append(h, 2);
  CHECK(entries(h.t) == list{-1, -1, -1, 0});
  w.check({&h});
  CHECK(w.group.resumable(h.t, 0, 14) == std::optional{0U});
  CHECK(w.group.resumable(h.t, 12, 14) == std::nullopt); // its window is not complete before 19
  w.drop(h);
}

// --- both --------------------------------------------------------------------------------------------------------------
TEST_CASE("B7: a fork shares what its next query needs") {
  auto full = workshop{retention::full()};
  auto slide = workshop{window(5)};
  auto sink = workshop{sinks(4, 5)};
  for (std::uint32_t length = 0; length <= 10; ++length) {
    CAPTURE(length);
    for (auto* const w : {&full, &slide, &sink}) {
      auto h = holder{};
      auto child = holder{};
      w->begin(h);
      w->append(h, 10);
      if (w == &full) { w->arrive(h, 0, 0); }
      REQUIRE(w->group.can_resume_at(h.t, length, 10));
      w->fork(h, child, length);
      CHECK(child.t.size() == w->group.geometry().blocks(length));
      for (std::uint32_t p = 0; p < length; ++p) {
        auto const seen = w == &full || p + 5 > length || (w == &sink && p < 4);
        if (seen) { CHECK(child.t.blocks[p / 4] == h.t.blocks[p / 4]); }
      }
      w->check({&h, &child});
      auto const shared = length % 4 != 0 && w != &full;
      CHECK(w->group.shared_end(child.t, length) == shared);
      w->drop(h);
      w->check({&child});
      w->append(child, 3);
      w->check({&child});
      w->drop(child);
      w->depart(0);
      CHECK(w->group.free() == 16);
    }
  }
}

TEST_CASE("B6: would_free foretells what a cut frees, and a window is cut only to where it can go on") {
  for (auto const per_unit : {1U, 2U}) {
    for (auto const& keeps : {retention::full(), window(6)}) {
      for (std::uint32_t length = 0; length <= 22; ++length) {
        for (auto const forked : {0U, 17U, 22U}) {
          auto w = workshop{keeps, {.blocks = 16, .block_tokens = 4, .per_unit = per_unit, .units = 8}};
          auto h = holder{};
          auto child = holder{};
          w.begin(h);
          w.append(h, 22);
          for (std::uint32_t u = 0; u < 2; ++u) { w.arrive(h, u, u); }
          w.fork(h, child, forked);
          w.group.trim(h.t, 22, h.last);
          CAPTURE(per_unit, length, forked, keeps.keeps_all());
          auto const there = w.group.resumable(h.t, length, 22);
          REQUIRE(there.has_value());
          CHECK((*there == length) == w.group.can_resume_at(h.t, length, 22));
          if (keeps.keeps_all()) { CHECK(*there == length); }
          if (*there != length) { // the next query would miss what slid away
            CHECK(length < 22);
            CHECK(length > 0);
            continue;
          }
          auto const told = w.group.would_free(h.t, length, h.pinned);
          auto const before = w.group.free() + w.group.idle();
          auto const pinned = h.pinned;
          w.truncate(h, length);
          CHECK(w.group.free() + w.group.idle() == before + told);
          CHECK(h.t.size() == (length + 3) / 4);
          CHECK(h.t.version == 0);
          CHECK(h.pinned == std::min(pinned, w.unit.blocks(length)));
          w.check({&h, &child});
          w.drop(h);
          w.drop(child);
          w.check({});
        }
      }
    }
  }
}

TEST_CASE("S26: the append cursor is told the room of the block at hand, and where it lies") {
  for (auto const& keeps : {retention::full(), window(8)}) {
    auto w = workshop{keeps};
    auto h = holder{};
    w.begin(h);
    CHECK(w.group.room(h.t, 0) == 0); // no block
    CHECK(w.group.needs_next(h.t, 0) == std::optional{1U});
    w.append(h, 5);
    CHECK(w.group.room(h.t, 5) == 3);
    CHECK(5 + h.t.slot_shift == h.t.slot(w.group.geometry(), token_pos{5}));
    CHECK(w.group.needs_next(h.t, 5) == std::optional{0U});
    CHECK(w.group.needs_next(h.t, 8) == std::optional{1U});
    auto const free = w.group.free();
    CHECK(w.group.take_next(h.t, 8) == 4);
    CHECK(w.group.free() == free - 1);
    CHECK(8 + h.t.slot_shift == h.t.slot(w.group.geometry(), token_pos{8}));
    CHECK(w.group.take_next(h.t, 9) == 3);
    CHECK(w.group.free() == free - 1);
    h.committed = 10;
    w.check({&h});
    w.arrive(h, 0, 0);
    CHECK(w.group.room(h.t, 2) == 0); // published: nobody writes there
    CHECK(w.group.needs_next(h.t, 2) == std::nullopt);
    w.drop(h);
  }
}

TEST_CASE("S15: compaction renames blocks where they hang, where they wait for a victim and in tables") {
  for (auto const& keeps : {retention::full(), window(4)}) {
    auto w = workshop{keeps, {.blocks = 8, .block_tokens = 4, .per_unit = 1, .units = 8}};
    auto gone = holder{};
    auto h = holder{};
    w.begin(gone);
    w.append(gone, 8); // 0 and 1
    w.begin(h);
    w.append(h, 12); // 2, 3 and 4
    w.arrive(h, 0, 5);
    w.arrive(h, 1, 6);
    w.drop(gone);
    w.group.trim(h.t, 12, h.last);
    auto to = std::vector<block_id>(8);
    to[4] = block_id{0};
    to[3] = block_id{1};
    auto scratch = std::vector<quire::block_id>(w.group.capacity());
    w.group.relocate(to, false, scratch);
    w.group.relocate(h.t, to);
    CHECK(entries(h.t) == (keeps.keeps_all() ? list{2, 1, 0} : list{-1, -1, 0}));
    CHECK(h.t.version == 0);
    w.check({&h});
    auto reader = holder{};
    w.find(reader, {5, 6}, 9, 8);
    CHECK(reader.t.blocks[1] == block_id{1});
    w.check({&h, &reader});
    w.drop(reader);
    if (!keeps.keeps_all()) {
      CHECK(w.group.evict(1) == 1);
      CHECK(w.group.pool().state(block_id{2}) == state::free); // still the one that left first
      CHECK(w.group.evict(1) == 1);
      CHECK(w.group.pool().state(block_id{1}) == state::free);
    }
    w.drop(h);
    w.check({});
  }
}

TEST_CASE("S30: a ring keeps windows, shares nothing and publishes nothing") {
  auto w = workshop{retention::ring({.capacity = token_count{12}, .window = token_count{5}, .sinks = token_count{1}})};
  auto h = holder{};
  w.begin(h);
  CHECK_FALSE(w.group.by_path());
  CHECK(w.group.has_sinks());
  w.append(h, 20);
  w.arrive(h, 0, 0);
  CHECK(w.group.published() == 0);
  w.group.trim(h.t, 20, h.last);
  CHECK(entries(h.t) == list{0, -1, -1, -1, 4});
  w.check({&h});
  w.drop(h);
  CHECK(w.group.free() == 16);
}

TEST_CASE("S24: the order of idle blocks is an eviction policy too, and no_eviction gives none of them up") {
  auto fifo = block_workshop<immediate_fence, fifo_eviction>{window(4)};
  auto never = block_workshop<immediate_fence, no_eviction>{window(4)};
  auto const fill = [](auto& w) {
    using holder_type = typename std::remove_reference_t<decltype(w)>::holder;
    auto h = holder_type{};
    w.begin(h);
    w.append(h, 12);
    for (std::uint32_t u = 0; u < 3; ++u) { w.arrive(h, u, u); }
    w.drop(h); // deepest first
    auto again = holder_type{};
    w.find(again, {0}, 5, 4);
    w.drop(again);
    w.check({});
  };
  fill(fifo);
  CHECK(fifo.group.idle() == 3);
  CHECK(fifo.group.evict(1) == 1);
  CHECK(fifo.group.pool().state(block_id{0}) == state::free); // hung first, whenever it was used
  fill(never);
  CHECK(never.group.idle() == 0);
  CHECK(never.group.published() == 3);
  CHECK(never.group.evict(3) == 0);
  CHECK(never.group.published() == 3);
  CHECK(never.group.free() == 13);
}

TEST_CASE("S24: taking more than is free is a broken contract") {
  auto w = workshop{retention::full(), {.blocks = 1, .block_tokens = 4, .per_unit = 1, .units = 1}};
  auto h = holder{};
  w.begin(h);
  CHECK_THROWS_AS(w.take(h, 5), quire_test::contract_violation);
}

TEST_CASE("S16: columns suffice for what a view shows at most") {
  auto const full = workshop{retention::full()};
  CHECK(full.group.columns(40, 10) == 10);
  CHECK(full.group.columns(400, 100) == 16); // a sequence never holds a block twice
  auto const slide = workshop{window(8)};
  CHECK(slide.group.columns(8, 3) == 2);
  CHECK(slide.group.columns(400, 4) == 16);
  auto const sink = workshop{sinks(4, 8)};
  CHECK(sink.group.columns(400, 4) == 100);
}
