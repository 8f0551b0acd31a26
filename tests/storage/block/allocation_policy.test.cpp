// SPDX-License-Identifier: Apache-2.0
// What the concept takes and refuses, and one suite for every model.
#include <quire/block/block_pool.hpp>
#include <quire/block/concepts.hpp>
#include <quire/block/fifo_allocation.hpp>
#include <quire/block/lifo_allocation.hpp>
#include <quire/block/lowest_allocation.hpp>
#include <quire/block/no_allocation.hpp>

#include "storage/storage_fixture.hpp"
#include "support/catch_compat.hpp"
#include "support/counting_allocator.hpp"

#include <array>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

namespace {
using namespace quire;

// --- the concept ---------------------------------------------------------------------------------------------------
// A model whose parts are replaced one by one.
struct good_take {
  auto take() noexcept -> block_id { return block_id::none(); }
  auto take(std::span<block_id>) noexcept -> block_count { return {}; }
};
struct good_give {
  auto give(block_id) noexcept -> void {}
};
struct good_available {
  auto available() const noexcept -> block_count { return {}; }
};
struct nothing {};
template <class Take = good_take, class Give = good_give, class Available = good_available>
struct assembled : Take, Give, Available {
  explicit assembled(block_count) {}
};
static_assert(allocation_policy<assembled<>>);
static_assert(!allocation_policy<int>);
static_assert(!allocation_policy<void>);

struct take_one_only {
  auto take() noexcept -> block_id { return {}; }
};
struct take_many_only {
  auto take(std::span<block_id>) noexcept -> block_count { return {}; }
};
struct take_throws {
  auto take() -> block_id { return {}; }
  auto take(std::span<block_id>) noexcept -> block_count { return {}; }
};
struct take_many_throws {
  auto take() noexcept -> block_id { return {}; }
  auto take(std::span<block_id>) -> block_count { return {}; }
};
struct take_number {
  auto take() noexcept -> std::uint32_t { return {}; }
  auto take(std::span<block_id>) noexcept -> block_count { return {}; }
};
struct take_many_number {
  auto take() noexcept -> block_id { return {}; }
  auto take(std::span<block_id>) noexcept -> std::uint32_t { return {}; }
};
static_assert(!allocation_policy<assembled<nothing>>);
static_assert(!allocation_policy<assembled<take_one_only>>);
static_assert(!allocation_policy<assembled<take_many_only>>);
static_assert(!allocation_policy<assembled<take_throws>>);
static_assert(!allocation_policy<assembled<take_many_throws>>);
static_assert(!allocation_policy<assembled<take_number>>);
static_assert(!allocation_policy<assembled<take_many_number>>);

struct give_throws {
  auto give(block_id) -> void {}
};
struct give_bool {
  auto give(block_id) noexcept -> bool { return true; }
};
static_assert(!allocation_policy<assembled<good_take, nothing>>);
static_assert(!allocation_policy<assembled<good_take, give_throws>>);
static_assert(!allocation_policy<assembled<good_take, give_bool>>);

struct available_throws {
  auto available() const -> block_count { return {}; }
};
struct available_number {
  auto available() const noexcept -> std::uint32_t { return {}; }
};
struct available_not_const {
  auto available() noexcept -> block_count { return {}; }
};
static_assert(!allocation_policy<assembled<good_take, good_give, nothing>>);
static_assert(!allocation_policy<assembled<good_take, good_give, available_throws>>);
static_assert(!allocation_policy<assembled<good_take, good_give, available_number>>);
static_assert(!allocation_policy<assembled<good_take, good_give, available_not_const>>);

struct without_capacity : good_take, good_give, good_available {};
static_assert(!allocation_policy<without_capacity>);
struct immovable : assembled<> {
  using assembled<>::assembled;
  immovable(immovable&&) = delete;
};
static_assert(!allocation_policy<immovable>);

// The smallest model: one block. It compiles and works wherever a policy is used.
class one_block {
public:
  explicit one_block(block_count) {}
  auto take() noexcept -> block_id {
    auto const out = free_ ? block_id{0} : block_id::none();
    free_ = false;
    return out;
  }
  auto take(std::span<block_id> out) noexcept -> block_count {
    if (out.empty() || !free_) { return {}; }
    out[0] = take();
    return block_count{1};
  }
  auto give(block_id) noexcept -> void { free_ = true; }
  auto available() const noexcept -> block_count { return block_count{free_ ? 1U : 0U}; }

private:
  bool free_ = true;
};
static_assert(allocation_policy<one_block>);

template <class Allocation>
struct allocating : default_policies {
  using allocation = Allocation;
};
} // namespace

TEST_CASE("allocation_policy: the archetype serves a pool and a cache") {
  auto pool = block_pool<one_block>{block_count{1}};
  CHECK(pool.try_allocate() == block_id{0});
  auto e = quire_test::engine<allocating<one_block>>{quire_test::pool_of(1)};
  auto r = e.serve({1, 2, 3});
  CHECK(r.seq.blocks().size() == 1);
}

// --- conformance ---------------------------------------------------------------------------------------------------
TEMPLATE_TEST_CASE("allocation_policy: every block is handed out once until it is given back", "", lifo_allocation,
                   fifo_allocation, lowest_allocation) {
  for (auto const n : {1U, 2U, 3U, 64U, 65U, 4096U, 4097U}) {
    auto policy = TestType{block_count{n}};
    CHECK(policy.available() == block_count{n});
    auto held = std::set<std::uint32_t>{};
    for (std::uint32_t i = 0; i < n; ++i) {
      auto const b = policy.take();
      REQUIRE(b.value() < n);
      REQUIRE(held.insert(b.value()).second);
    }
    CHECK(policy.available() == block_count{0});
    CHECK_FALSE(static_cast<bool>(policy.take()));
    auto more = std::array<block_id, 2>{};
    CHECK(policy.take(more) == block_count{0});
    policy.give(block_id{n / 2});
    CHECK(policy.available() == block_count{1});
    CHECK(policy.take() == block_id{n / 2});
  }
}

TEMPLATE_TEST_CASE("allocation_policy: taking many is taking one many times", "", lifo_allocation, fifo_allocation,
                   lowest_allocation) {
  auto one = TestType{block_count{10}};
  auto many = TestType{block_count{10}};
  auto const same = [&](std::size_t n) {
    auto got = std::vector<block_id>(n);
    auto const count = many.take(got);
    for (std::uint32_t i = 0; i < n; ++i) {
      auto const b = one.take();
      CHECK(static_cast<bool>(b) == (i < count.value()));
      if (b) { CHECK(got[i] == b); }
    }
    CHECK(one.available() == many.available());
  };
  same(4);
  for (auto const b : {2U, 0U, 3U}) {
    one.give(block_id{b});
    many.give(block_id{b});
  }
  same(5);
  same(100); // what is left, and no more
  CHECK(many.available() == block_count{0});
}

TEMPLATE_TEST_CASE("allocation_policy: nothing allocates after construction", "", lifo_allocation, fifo_allocation,
                   lowest_allocation) {
  auto policy = TestType{block_count{1000}};
  CHECK(quire_test::allocations_of([&] {
          auto out = std::array<block_id, 600>{};
          for (auto round = 0; round < 3; ++round) {
            auto const n = policy.take(out).value();
            for (std::uint32_t i = 0; i < n; ++i) { policy.give(out[i]); }
          }
        }) == 0);
}

TEMPLATE_TEST_CASE("allocation_policy: a cache reads back every byte whatever block it is given", "", lifo_allocation,
                   fifo_allocation, lowest_allocation) {
  using namespace quire_test;
  auto e = engine<allocating<TestType>>{pool_of(6)};
  for (auto round = 0; round < 5; ++round) {
    auto a = e.serve(ascending(9, 1 + 100 * (round % 2)), 3);
    auto b = e.serve(ascending(6, 1000 * round), 2);
    e.step({{&a, {7}}, {&b, {8}}});
    e.read(a);
    e.read(b);
    e.release(a);
    e.release(b);
  }
}

TEST_CASE("lifo_allocation: the block freed last is taken first") {
  auto policy = lifo_allocation{block_count{4}};
  CHECK(policy.take() == block_id{0});
  CHECK(policy.take() == block_id{1});
  policy.give(block_id{0});
  policy.give(block_id{1});
  CHECK(policy.take() == block_id{1});
  CHECK(policy.take() == block_id{0});
  CHECK(policy.take() == block_id{2});
}

TEST_CASE("fifo_allocation: the block that has been free longest is taken first") {
  auto policy = fifo_allocation{block_count{3}};
  CHECK(policy.take() == block_id{0});
  policy.give(block_id{0});
  CHECK(policy.take() == block_id{1});
  CHECK(policy.take() == block_id{2});
  CHECK(policy.take() == block_id{0});
  CHECK_FALSE(static_cast<bool>(policy.take()));
}

TEST_CASE("lowest_allocation: the free block with the lowest number is taken") {
  auto policy = lowest_allocation{block_count{200}};
  auto all = std::vector<block_id>(200);
  CHECK(policy.take(all) == block_count{200});
  for (std::uint32_t i = 0; i < 200; ++i) { CHECK(all[i] == block_id{i}); }
  for (auto const b : {150U, 64U, 63U, 199U}) { policy.give(block_id{b}); }
  CHECK(policy.take() == block_id{63});
  CHECK(policy.take() == block_id{64});
  CHECK(policy.take() == block_id{150});
  CHECK(policy.take() == block_id{199});
}

TEST_CASE("no_allocation: a cache without memory refuses everybody") {
  using namespace quire_test;
  auto cache = kv_cache<allocating<no_allocation>>{pool_of(4)};
  auto const scope = cache.open_scope(compute_identity{some_fields()}, domain_of("tenant"));
  auto const prompt = ascending(3);
  CHECK(cache.figures(group_id{0}).available == block_count{0});
  auto wanted = admit_request{};
  wanted.scope = scope;
  wanted.prompt = prompt;
  wanted.max_output = token_count{1};
  auto const refused = cache.admit(wanted);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == errc::no_blocks);
  CHECK(cache.live_sequences() == sequence_count{0});
  CHECK(cache.audit().has_value()); // the pool denies having the blocks that are free
}
