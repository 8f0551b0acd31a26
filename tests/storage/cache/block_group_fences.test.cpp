// SPDX-License-Identifier: Apache-2.0
// A layer group and work in flight: a block that nobody holds waits until the last use of everybody who left it is over, on
// every timeline; what a lost device may still write is never used again.
#include <quire/block/ticket_fence.hpp>
#include <quire/cache/detail/block_group.hpp>
#include <quire/core/types.hpp>
#include <quire/model/retention.hpp>

#include "storage/cache/block_workshop.hpp"
#include "support/catch_compat.hpp"
#include "support/counting_allocator.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace {
using namespace quire;
using quire_test::block_workshop;
using quire_test::entries;
using list = std::vector<int>;
using workshop = block_workshop<ticket_fence<2>>;
using holder = workshop::holder;
using state = block_state;
constexpr auto t0 = timeline_id{0};
constexpr auto t1 = timeline_id{1};

auto window(std::uint32_t w) -> retention { return retention::sliding_window(token_count{w}); }
auto issue(workshop& w, timeline_id t) -> ticket { return w.clock.issue(t); }
void complete(workshop& w, timeline_id t, ticket until) {
  w.clock.fence().complete(t, until);
  w.group.reclaim();
}
} // namespace

TEST_CASE("S18: a block waits until its ticket is reached, and the oldest ticket frees first") {
  for (auto const& keeps : {retention::full(), window(8)}) {
    auto w = workshop{keeps};
    auto a = holder{};
    auto b = holder{};
    w.begin(a);
    w.begin(b);
    auto const first = issue(w, t0);
    w.append(a, 8, 0, first);
    auto const second = issue(w, t0);
    w.append(b, 4, 0, second);
    w.drop(a);
    w.drop(b);
    CHECK(w.group.waiting() == 3);
    CHECK(w.group.free() == 13);
    CHECK(w.group.pool().state(block_id{0}) == state::retiring);
    w.check({});
    w.group.reclaim();
    CHECK(w.group.waiting() == 3);
    complete(w, t0, first);
    CHECK(w.group.waiting() == 1);
    CHECK(w.group.free() == 15);
    CHECK(w.group.pool().state(block_id{2}) == state::retiring);
    w.check({});
    complete(w, t0, second);
    CHECK(w.group.waiting() == 0);
    CHECK(w.group.free() == 16);
    w.check({});
  }
}

TEST_CASE("S18: a block that two timelines use waits for both, in whatever order they come") {
  for (auto const order : {0, 1}) {
    auto w = workshop{retention::full()};
    auto h = holder{};
    w.begin(h);
    w.append(h, 2, 0, issue(w, t0));
    w.append(h, 2, 1, issue(w, t1));
    w.drop(h);
    CHECK(w.group.waiting() == 1);
    complete(w, order == 0 ? t0 : t1, ticket{1});
    CHECK(w.group.waiting() == 1);
    w.check({});
    complete(w, order == 0 ? t1 : t0, ticket{1});
    CHECK(w.group.waiting() == 0);
    CHECK(w.group.free() == 16);
    w.check({});
  }
}

TEST_CASE("S18: who leaves later may have to be waited for longer, or not at all") {
  auto w = workshop{retention::full()};
  auto h = holder{};
  auto reader = holder{};
  w.begin(h);
  w.append(h, 2);
  w.fork(h, reader, 2);
  reader.last[1] = issue(w, t1); // it has read the block in a step of its own
  w.drop(reader);
  w.drop(h); // whose work is over
  CHECK(w.group.waiting() == 1);
  w.check({});
  complete(w, t1, ticket{1});
  CHECK(w.group.free() == 16);
}

TEST_CASE("S18: kept by block, what is found while it waits is held again, and waits again for its next user") {
  auto w = workshop{window(8)};
  auto h = holder{};
  w.begin(h);
  w.append(h, 4, 0, issue(w, t0));
  w.arrive(h, 0, 0);
  w.drop(h);
  CHECK(w.group.waiting() == 1);
  CHECK(w.group.idle() == 0);
  CHECK(w.group.evict(1) == 0); // in use by work in flight
  w.check({});
  auto reader = holder{};
  CHECK(w.find(reader, {0}, 5, 4) == 0); // not out of the idle ones
  CHECK(w.group.waiting() == 0);
  w.check({&reader});
  complete(w, t0, ticket{1}); // its turn in the queue comes while it is held
  CHECK(w.group.idle() == 0);
  w.check({&reader});
  reader.last[1] = issue(w, t1);
  w.drop(reader);
  CHECK(w.group.waiting() == 1);
  complete(w, t1, ticket{1});
  CHECK(w.group.idle() == 1);
  CHECK(w.group.evict(1) == 1);
  w.check({});
}

TEST_CASE("S18: kept by block, a block may be found and left while it stands in its queue yet") {
  auto w = workshop{window(8)};
  auto h = holder{};
  w.begin(h);
  w.append(h, 4, 0, issue(w, t0));
  w.arrive(h, 0, 0);
  w.drop(h);
  auto reader = holder{};
  w.find(reader, {0}, 5, 4);
  reader.last[1] = issue(w, t1);
  w.drop(reader);
  CHECK(w.group.waiting() == 1);
  w.check({});
  complete(w, t0, ticket{1}); // moves on to the queue of the other timeline
  CHECK(w.group.waiting() == 1);
  CHECK(w.group.idle() == 0);
  w.check({});
  complete(w, t1, ticket{1});
  CHECK(w.group.waiting() == 0);
  CHECK(w.group.idle() == 1);
  w.check({});
}

TEST_CASE("S18: kept by block, an equal block that waits is somebody's, and is not replaced") {
  auto w = workshop{window(8)};
  auto first = holder{};
  auto second = holder{};
  w.begin(first);
  w.begin(second);
  w.append(first, 4, 0, issue(w, t0));
  w.append(second, 4, 0, issue(w, t0));
  w.arrive(first, 0, 0);
  w.drop(first);
  w.arrive(second, 0, 0, unit_origin::idle_twin);
  CHECK(entries(second.t) == list{0});
  CHECK(w.group.waiting() == 1); // the own one
  w.check({&second});
  complete(w, t0, ticket{2});
  CHECK(w.group.free() == 15);
  w.check({&second});
  w.drop(second);
}

TEST_CASE("S18: a unit that leaves takes a block that waits with it, which is freed when it is its turn") {
  for (auto const& keeps : {retention::full(), window(8)}) {
    auto w = workshop{keeps};
    auto h = holder{};
    w.begin(h);
    w.append(h, 5, 0, issue(w, t0));
    w.arrive(h, 0, 0);
    w.drop(h);
    if (!keeps.keeps_all()) { // by path, the index keeps the pin until then
      CHECK(w.depart(0) == 1);
      CHECK(w.group.waiting() == 2);
      CHECK(w.group.pool().state(block_id{0}) == state::retiring);
    }
    w.check({});
    complete(w, t0, ticket{1});
    if (keeps.keeps_all()) { CHECK(w.depart(0) == 1); }
    CHECK(w.group.free() == 16);
    w.check({});
  }
}

TEST_CASE("S18: a step that is dropped after its launch gives back blocks that its work may write") {
  auto w = workshop{window(8)};
  auto h = holder{};
  w.begin(h);
  w.append(h, 6);
  auto reader = holder{};
  w.fork(h, reader, 6);
  w.take(reader, 4); // a copy and a new block
  auto const until = issue(w, t1);
  reader.last[1] = until;
  w.group.give_back(reader.t, 2, reader.last);
  w.group.undo_copy(reader.t, 1, reader.sources.back(), reader.last);
  reader.sources.clear();
  CHECK(w.group.waiting() == 2);
  w.check({&h, &reader});
  complete(w, t1, until);
  CHECK(w.group.free() == 14);
  w.check({&h, &reader});
  w.drop(h);
  w.drop(reader);
}

TEST_CASE("S18: the source of a copy is kept until the copy is done") {
  for (auto const& keeps : {retention::full(), window(8)}) {
    auto w = workshop{keeps};
    auto h = holder{};
    auto reader = holder{};
    w.begin(h);
    w.append(h, 6);
    w.fork(h, reader, 6);
    auto const a = w.request(reader, 1);
    w.take(reader, 1);
    w.drop(h); // the reader's copy is the last that needs the block
    CHECK(w.group.pool().holders(block_id{1}) == 1);
    w.check({&reader});
    w.commit(reader, a, 1, issue(w, t1));
    CHECK(w.group.pool().holders(block_id{1}) == 0);
    CHECK(w.group.waiting() == 1);
    w.check({&reader});
    complete(w, t1, ticket{1});
    CHECK(w.group.waiting() == 0);
    w.drop(reader);
  }
}

TEST_CASE("S18: a lost device takes the blocks that it may still write, and no others") {
  auto w = workshop{window(8)};
  auto lost = holder{};
  auto other = holder{};
  auto ended = holder{};
  for (auto* const h : {&lost, &other, &ended}) { w.begin(*h); }
  w.append(lost, 4); // over
  w.append(lost, 8, 0, issue(w, t0));
  w.append(other, 8, 1, issue(w, t1));
  w.append(ended, 4, 0, issue(w, t0));
  w.arrive(lost, 0, 0);
  w.arrive(lost, 1, 1);
  w.arrive(other, 0, 2);
  w.arrive(ended, 0, 3);
  w.drop(ended); // waits
  CHECK(w.group.ready_length(lost.t) == std::nullopt);
  w.group.doom(0);
  w.clock.abandon(0, w.clock.issued(t0));
  CHECK(w.group.published() == 2); // units 0 and 2
  CHECK(w.group.doomed(lost.t.blocks[1]));
  CHECK_FALSE(w.group.doomed(lost.t.blocks[0]));
  CHECK_FALSE(w.group.doomed(other.t.blocks[0]));
  CHECK(w.group.ready_length(lost.t) == std::optional{4U});
  CHECK(w.group.ready_length(other.t) == std::nullopt);
  w.check({&lost, &other});
  w.group.reclaim();
  CHECK(w.group.waiting() == 0);
  CHECK(w.group.lost() == 1); // the one that nobody holds
  w.check({&lost, &other});
  w.arrive(lost, 2, 4);
  CHECK(w.group.published() == 2); // nobody ever finds it
  w.check({&lost, &other});
  w.truncate(lost, 4);
  CHECK(w.group.lost() == 3);
  w.drop(lost);
  w.drop(other);
  complete(w, t1, ticket{1});
  CHECK(w.group.idle() + w.group.free() + w.group.lost() == 16);
  CHECK(w.group.lost() == 3);
  w.check({});
}

TEST_CASE("S18: what a dropped step may still write is lost with its device, although nothing of it counts") {
  auto w = workshop{window(8)};
  auto h = holder{};
  w.begin(h);
  w.append(h, 6);
  auto const a = w.request(h, 1); // into the partial block
  w.take(h, 1);
  h.last[0] = issue(w, t0);
  w.group.note_writes(h.t, a, h.last);
  w.group.give_back(h.t, 2, h.last);
  w.group.doom(0);
  CHECK_FALSE(w.group.doomed(h.t.blocks[0]));
  CHECK(w.group.doomed(h.t.blocks[1]));
  w.check({&h});
  w.clock.abandon(0, w.clock.issued(t0));
  w.drop(h);
  CHECK(w.group.lost() == 1);
  CHECK(w.group.free() == 15);
  w.check({});
}

TEST_CASE("S18: kept by path, the units of what a lost device may write are told, and leave with their blocks") {
  for (auto const per_unit : {1U, 2U}) {
    auto w = workshop{retention::full(), {.blocks = 16, .block_tokens = 4, .per_unit = per_unit, .units = 4}};
    auto h = holder{};
    w.begin(h);
    w.append(h, 4 * per_unit);
    w.append(h, 4 * per_unit, 0, issue(w, t0));
    w.arrive(h, 0, 2);
    w.arrive(h, 1, 3);
    w.group.doom(0);
    w.clock.abandon(0, w.clock.issued(t0));
    auto marks = std::vector<std::uint8_t>(4);
    w.group.mark_doomed(marks);
    CHECK(marks == std::vector<std::uint8_t>{0, 0, 0, 1});
    CHECK(w.group.ready_length(h.t) == std::optional{4 * per_unit});
    w.drop(h);
    CHECK(w.depart(3) == per_unit);
    CHECK(w.group.lost() == per_unit);
    CHECK(w.depart(2) == per_unit);
    CHECK(w.group.lost() == per_unit);
    CHECK(w.group.free() == 16 - per_unit);
    w.check({});
  }
}

TEST_CASE("S18: a steady stream of tickets allocates nothing") {
  auto w = workshop{window(8)};
  auto h = holder{};
  w.begin(h, 4096);
  h.t.blocks.reserve(1200);
  CHECK(quire_test::allocations_of([&] {
          for (std::uint32_t round = 0; round < 1000; ++round) {
            auto const until = issue(w, t0);
            w.append(h, 4, 0, until);
            w.group.trim(h.t, h.committed, h.last);
            w.clock.fence().complete(t0, ticket{until.value() - 1});
            w.group.reclaim();
          }
        }) == 0);
  CHECK(w.group.waiting() == 1);
  w.check({&h});
  w.drop(h);
}
