// SPDX-License-Identifier: Apache-2.0
// The pool alone: states, holders, and what it refuses before anything has changed.
#include <quire/block/block_pool.hpp>
#include <quire/block/fifo_allocation.hpp>
#include <quire/block/lifo_allocation.hpp>
#include <quire/block/lowest_allocation.hpp>
#include <quire/block/no_allocation.hpp>
#include <quire/core/config_error.hpp>
#include <quire/core/types.hpp>

#include "support/catch_compat.hpp"
#include "support/counting_allocator.hpp"
#include "support/throwing_contract.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace {
using namespace quire;
using quire_test::contract_violation;
using event = block_event;
using state = block_state;
} // namespace

TEST_CASE("S25: a block goes through its whole life") {
  auto pool = block_pool<>{block_count{2}};
  auto const b = pool.try_allocate();
  REQUIRE(b);
  CHECK(pool.state(b) == state::writing);
  CHECK(pool.holders(b) == 1);
  CHECK(pool.free_blocks() == block_count{1});
  pool.apply(b, event::commit);
  CHECK(pool.state(b) == state::private_);
  pool.apply(b, event::publish);
  CHECK(pool.release(b)); // the hold has become a pin
  CHECK(pool.state(b) == state::published);
  CHECK(pool.holders(b) == 0);
  pool.hold(b); // found again
  CHECK(pool.holders(b) == 1);
  pool.apply(b, event::unpublish); // cut out of the index under its holder
  CHECK(pool.state(b) == state::private_);
  pool.apply(b, event::publish);
  CHECK(pool.release(b));
  pool.apply(b, event::evict);
  CHECK(pool.state(b) == state::retiring);
  CHECK(pool.free_blocks() == block_count{1}); // not before the fence
  pool.reclaim(b);
  CHECK(pool.state(b) == state::free);
  CHECK(pool.free_blocks() == block_count{2});
}

TEST_CASE("S25: an illegal transition is refused before anything changes") {
  auto pool = block_pool<>{block_count{1}};
  auto const b = pool.try_allocate();
  for (auto const wrong : {event::allocate, event::publish, event::unpublish, event::evict, event::reclaim}) {
    CHECK_THROWS_AS(pool.apply(b, wrong), contract_violation);
    CHECK(pool.state(b) == state::writing);
    CHECK(pool.holders(b) == 1);
  }
}

TEST_CASE("S23: a block with two holders is given up by the second release only") {
  auto pool = block_pool<>{block_count{1}};
  auto const b = pool.try_allocate();
  pool.retain(b);
  CHECK(pool.holders(b) == 2);
  CHECK_FALSE(pool.release(b));
  CHECK(pool.release(b));
  CHECK(pool.holders(b) == 0);
}

TEST_CASE("B12: a double release of a raw block is caught at the faulty call") {
  auto pool = block_pool<>{block_count{2}};
  auto const b = pool.try_allocate();
  CHECK(pool.release(b));
  CHECK_THROWS_AS(pool.release(b), contract_violation);
  CHECK(pool.holders(b) == 0);
  CHECK(pool.state(b) == state::writing);
  CHECK_THROWS_AS(pool.retain(b), contract_violation);
  CHECK_THROWS_AS(pool.release(block_id{1}), contract_violation); // never allocated
}

TEST_CASE("B12: a block of another pool is caught at the faulty call") {
  auto pool = block_pool<>{block_count{2}};
  CHECK_THROWS_AS(pool.state(block_id{2}), contract_violation);
  CHECK_THROWS_AS(pool.holders(block_id{2}), contract_violation);
  CHECK_THROWS_AS(pool.retain(block_id{2}), contract_violation);
  CHECK_THROWS_AS(pool.release(block_id::none()), contract_violation);
  CHECK_THROWS_AS(pool.apply(block_id{7}, event::commit), contract_violation);
}

TEST_CASE("S24: a block that somebody holds is never reclaimed") {
  auto pool = block_pool<>{block_count{1}};
  auto const b = pool.try_allocate();
  pool.apply(b, event::retire);
  CHECK_THROWS_AS(pool.reclaim(b), contract_violation);
  CHECK(pool.free_blocks() == block_count{0});
  CHECK(pool.release(b));
  pool.reclaim(b);
  CHECK(pool.free_blocks() == block_count{1});
}

TEST_CASE("S24: only a published block that nobody holds is evicted, and it is free at once then") {
  auto pool = block_pool<>{block_count{1}};
  auto const b = pool.try_allocate();
  pool.apply(b, event::commit);
  CHECK_THROWS_AS(pool.evict_and_reclaim(b), contract_violation); // held
  CHECK_THROWS_AS(pool.hold(b), contract_violation);              // and not published
  pool.apply(b, event::publish);
  CHECK_THROWS_AS(pool.evict_and_reclaim(b), contract_violation);
  CHECK(pool.state(b) == state::published);
  CHECK(pool.release(b));
  CHECK_THROWS_AS(pool.retire_and_reclaim(b), contract_violation); // what can be found does not retire
  pool.evict_and_reclaim(b);
  CHECK(pool.state(b) == state::free);
  CHECK(pool.free_blocks() == block_count{1});
  CHECK_THROWS_AS(pool.evict_and_reclaim(b), contract_violation);
}

TEST_CASE("S24: only a block that is not published retires and is free at once") {
  auto pool = block_pool<>{block_count{2}};
  auto const written = pool.try_allocate();
  auto const committed = pool.try_allocate();
  pool.apply(committed, event::commit);
  for (auto const b : {written, committed}) {
    CHECK_THROWS_AS(pool.retire_and_reclaim(b), contract_violation); // held
    CHECK(pool.release(b));
    pool.retire_and_reclaim(b);
    CHECK(pool.state(b) == state::free);
  }
  CHECK(pool.free_blocks() == block_count{2});
}

TEST_CASE("S24: a private block with one holder is published and left in one write, any other stays as it is") {
  using event = standard_block_lifecycle::event;
  auto pool = block_pool<>{block_count{4}};
  auto const own = pool.try_allocate();
  auto const shared = pool.try_allocate();
  auto const writing = pool.try_allocate();
  for (auto const block : {own, shared}) { pool.apply(block, event::commit); }
  pool.retain(shared);
  CHECK(pool.publish_and_release(own));
  CHECK(pool.state(own) == block_state::published);
  CHECK(pool.holders(own) == 0);
  for (auto const block : {own, shared, writing, block_id{3}}) {
    auto const state = pool.state(block);
    auto const holders = pool.holders(block);
    CHECK_FALSE(pool.publish_and_release(block));
    CHECK(pool.state(block) == state);
    CHECK(pool.holders(block) == holders);
  }
}

TEST_CASE("block_pool: a pool has exactly the blocks it was given, all of them usable") {
  for (auto const n : {1U, 2U, 63U, 64U, 65U, 4097U}) {
    auto pool = block_pool<>{block_count{n}};
    auto got = std::vector<block_id>(n + 1);
    CHECK(pool.try_allocate(got) == block_count{n});
    CHECK_FALSE(static_cast<bool>(pool.try_allocate()));
    auto seen = std::vector<bool>(n);
    for (std::uint32_t i = 0; i < n; ++i) {
      REQUIRE(got[i].value() < n);
      CHECK_FALSE(seen[got[i].value()]);
      seen[got[i].value()] = true;
    }
  }
}

TEST_CASE("block_pool: impossible capacities are refused") {
  CHECK_THROWS_AS(block_pool<>{block_count{0}}, config_error);
  CHECK_THROWS_AS(block_pool<>{block_count{0x8000'0000U}}, config_error); // views carry ids as int32
}

TEST_CASE("block_pool: nothing allocates after construction") {
  auto pool = block_pool<>{block_count{100}};
  CHECK(quire_test::allocations_of([&] {
          auto out = std::array<block_id, 50>{};
          pool.try_allocate(out);
          for (auto const b : out) {
            static_cast<void>(pool.release(b));
            pool.retire_and_reclaim(b);
          }
        }) == 0);
  CHECK(pool.free_blocks() == block_count{100});
}

TEST_CASE("block_pool: a pool without blocks refuses everybody") {
  auto pool = block_pool<no_allocation>{block_count{8}};
  CHECK(pool.capacity() == block_count{8});
  CHECK(pool.free_blocks() == block_count{0});
  CHECK_FALSE(static_cast<bool>(pool.try_allocate()));
}

TEMPLATE_TEST_CASE("S24: releasing many at once equals releasing one by one, whatever their states and holders", "",
                   lifo_allocation, fifo_allocation, lowest_allocation) {
  // Runs of equal words and every change between them: state, holders, and both.
  struct wanted {
    state in;
    std::uint32_t holders;
  };
  auto const mixes = std::vector<std::vector<wanted>>{
      {{state::private_, 1}, {state::private_, 1}, {state::private_, 1}},
      {{state::private_, 1}, {state::private_, 2}, {state::private_, 2}, {state::private_, 1}},
      {{state::writing, 1}, {state::private_, 1}, {state::writing, 1}},
      {{state::published, 2}, {state::private_, 2}, {state::private_, 3}, {state::writing, 1}, {state::private_, 3}},
      {{state::published, 3}, {state::published, 2}, {state::private_, 1}},
      {{state::private_, 2}},
      {},
  };
  for (auto const& mix : mixes) {
    auto at_once = block_pool<TestType>{block_count{8}};
    auto one_by_one = block_pool<TestType>{block_count{8}};
    auto given = std::vector<block_id>{};
    for (auto* const pool : {&at_once, &one_by_one}) {
      given.clear();
      for (auto const& want : mix) {
        auto const b = pool->try_allocate();
        if (want.in != state::writing) { pool->apply(b, event::commit); }
        if (want.in == state::published) { pool->apply(b, event::publish); }
        for (std::uint32_t i = 1; i < want.holders; ++i) { pool->retain(b); }
        given.push_back(b);
      }
    }
    at_once.release_and_reclaim(given);
    for (auto const b : given) {
      if (one_by_one.release_and_retire(b)) { one_by_one.reclaim(b); }
    }
    for (std::size_t i = 0; i < mix.size(); ++i) {
      auto const last = mix[i].holders == 1;
      CHECK(at_once.state(given[i]) == (last ? state::free : mix[i].in));
      CHECK(at_once.holders(given[i]) == mix[i].holders - 1);
      CHECK(one_by_one.state(given[i]) == at_once.state(given[i]));
      CHECK(one_by_one.holders(given[i]) == mix[i].holders - 1);
    }
    REQUIRE(at_once.free_blocks() == one_by_one.free_blocks());
    while (auto const b = one_by_one.try_allocate()) { CHECK(at_once.try_allocate() == b); }
  }
}

TEMPLATE_TEST_CASE("B12: a block that nobody holds is caught wherever it stands among many", "", lifo_allocation,
                   fifo_allocation) {
  for (std::size_t wrong = 0; wrong < 3; ++wrong) {
    auto pool = block_pool<TestType>{block_count{4}};
    auto given = std::vector<block_id>{pool.try_allocate(), pool.try_allocate(), pool.try_allocate()};
    CHECK(pool.release_and_retire(given[wrong]));
    pool.reclaim(given[wrong]);
    CHECK_THROWS_AS(pool.release_and_reclaim(given), contract_violation);
  }
}

TEST_CASE("S15: relocating renames a block with its state and holders") {
  auto pool = block_pool<>{block_count{4}};
  auto out = std::array<block_id, 4>{};
  pool.try_allocate(out);
  for (auto const b : {out[0], out[1]}) { // blocks 0 and 1 become free
    static_cast<void>(pool.release(b));
    pool.retire_and_reclaim(b);
  }
  pool.retain(out[3]);
  pool.apply(out[3], event::commit);
  auto to = std::vector<block_id>(4);
  to[out[3].value()] = block_id{0};
  pool.relocate(to);
  CHECK(pool.state(block_id{0}) == state::private_);
  CHECK(pool.holders(block_id{0}) == 2);
  CHECK(pool.state(block_id{3}) == state::free);
  CHECK(pool.free_blocks() == block_count{2});
  CHECK(pool.try_allocate() == block_id{1});
  CHECK(pool.try_allocate() == block_id{3});
  CHECK_FALSE(static_cast<bool>(pool.try_allocate()));
}
