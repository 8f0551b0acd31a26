// SPDX-License-Identifier: Apache-2.0
// Several groups out of one budget: what the concept takes and refuses, one suite for every model, and what each loses.
#include <quire/block/block_pool.hpp>
#include <quire/block/concepts.hpp>
#include <quire/core/config_error.hpp>
#include <quire/core/types.hpp>
#include <quire/memory/concepts.hpp>
#include <quire/memory/group_allocation.hpp>
#include <quire/memory/memory_usage.hpp>
#include <quire/memory/owner_hint.hpp>
#include <quire/memory/partitioned_memory.hpp>
#include <quire/memory/two_level_memory.hpp>
#include <quire/memory/uniform_memory.hpp>

#include "support/catch_compat.hpp"
#include "support/counting_allocator.hpp"
#include "support/throwing_contract.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace {
using namespace quire;

// --- the concept ---------------------------------------------------------------------------------------------------
// A model whose parts are replaced one by one.
struct good_take {
  auto take(group_id, owner_hint = {}) noexcept -> block_id { return {}; }
  auto take(group_id, std::span<block_id>, owner_hint = {}) noexcept -> block_count { return {}; }
};
struct good_give {
  auto give(group_id, block_id) noexcept -> void {}
  auto give(group_id, std::span<block_id const>) noexcept -> void {}
};
struct good_counts {
  auto available(group_id) const noexcept -> block_count { return {}; }
  auto capacity(group_id) const noexcept -> block_count { return {}; }
};
struct good_places {
  auto base(group_id) const noexcept -> byte_count { return {}; }
  auto stride(group_id) const noexcept -> byte_count { return {}; }
};
struct good_sizes {
  auto groups() const noexcept -> std::size_t { return 1; }
  auto budget() const noexcept -> byte_count { return {}; }
  auto arena() const noexcept -> byte_count { return {}; }
};
struct good_fits {
  auto fits(std::span<block_count const>) const -> bool { return true; }
};
struct good_usage {
  auto usage(group_id) const -> memory_usage { return {}; }
  auto usage() const -> memory_usage { return {}; }
};
struct nothing {};
template <class Take = good_take, class Give = good_give, class Counts = good_counts, class Places = good_places,
          class Sizes = good_sizes, class Fits = good_fits, class Usage = good_usage>
struct assembled : Take, Give, Counts, Places, Sizes, Fits, Usage {
  assembled(std::span<byte_count const>, byte_count) {}
};
static_assert(group_memory<assembled<>>);
static_assert(!group_memory<int>);
static_assert(!group_memory<void>);

struct take_one_only {
  auto take(group_id, owner_hint = {}) noexcept -> block_id { return {}; }
};
struct take_many_only {
  auto take(group_id, std::span<block_id>, owner_hint = {}) noexcept -> block_count { return {}; }
};
struct take_without_hint {
  auto take(group_id) noexcept -> block_id { return {}; }
  auto take(group_id, std::span<block_id>) noexcept -> block_count { return {}; }
};
struct take_with_hint_only {
  auto take(group_id, owner_hint) noexcept -> block_id { return {}; }
  auto take(group_id, std::span<block_id>, owner_hint) noexcept -> block_count { return {}; }
};
struct take_throws {
  auto take(group_id, owner_hint = {}) -> block_id { return {}; }
  auto take(group_id, std::span<block_id>, owner_hint = {}) noexcept -> block_count { return {}; }
};
struct take_many_throws {
  auto take(group_id, owner_hint = {}) noexcept -> block_id { return {}; }
  auto take(group_id, std::span<block_id>, owner_hint = {}) -> block_count { return {}; }
};
struct take_number {
  auto take(group_id, owner_hint = {}) noexcept -> std::uint32_t { return {}; }
  auto take(group_id, std::span<block_id>, owner_hint = {}) noexcept -> block_count { return {}; }
};
struct take_many_number {
  auto take(group_id, owner_hint = {}) noexcept -> block_id { return {}; }
  auto take(group_id, std::span<block_id>, owner_hint = {}) noexcept -> std::size_t { return {}; }
};
static_assert(!group_memory<assembled<nothing>>);
static_assert(!group_memory<assembled<take_one_only>>);
static_assert(!group_memory<assembled<take_many_only>>);
static_assert(!group_memory<assembled<take_without_hint>>);
static_assert(!group_memory<assembled<take_with_hint_only>>);
static_assert(!group_memory<assembled<take_throws>>);
static_assert(!group_memory<assembled<take_many_throws>>);
static_assert(!group_memory<assembled<take_number>>);
static_assert(!group_memory<assembled<take_many_number>>);

struct give_one_only {
  auto give(group_id, block_id) noexcept -> void {}
};
struct give_many_only {
  auto give(group_id, std::span<block_id const>) noexcept -> void {}
};
struct give_throws {
  auto give(group_id, block_id) -> void {}
  auto give(group_id, std::span<block_id const>) noexcept -> void {}
};
struct give_many_throws {
  auto give(group_id, block_id) noexcept -> void {}
  auto give(group_id, std::span<block_id const>) -> void {}
};
struct give_bool {
  auto give(group_id, block_id) noexcept -> bool { return true; }
  auto give(group_id, std::span<block_id const>) noexcept -> void {}
};
static_assert(!group_memory<assembled<good_take, nothing>>);
static_assert(!group_memory<assembled<good_take, give_one_only>>);
static_assert(!group_memory<assembled<good_take, give_many_only>>);
static_assert(!group_memory<assembled<good_take, give_throws>>);
static_assert(!group_memory<assembled<good_take, give_many_throws>>);
static_assert(!group_memory<assembled<good_take, give_bool>>);

template <class Counts>
constexpr bool counts = group_memory<assembled<good_take, good_give, Counts>>;
struct counts_without_capacity {
  auto available(group_id) const noexcept -> block_count { return {}; }
};
struct counts_without_available {
  auto capacity(group_id) const noexcept -> block_count { return {}; }
};
struct counts_throwing : counts_without_capacity {
  auto capacity(group_id) const -> block_count { return {}; }
};
struct counts_not_const : counts_without_available {
  auto available(group_id) noexcept -> block_count { return {}; }
};
struct counts_in_bytes : counts_without_available {
  auto available(group_id) const noexcept -> byte_count { return {}; }
};
static_assert(counts<good_counts>);
static_assert(!counts<counts_without_capacity>);
static_assert(!counts<counts_without_available>);
static_assert(!counts<counts_throwing>);
static_assert(!counts<counts_not_const>);
static_assert(!counts<counts_in_bytes>);

template <class Places>
constexpr bool places = group_memory<assembled<good_take, good_give, good_counts, Places>>;
struct places_without_stride {
  auto base(group_id) const noexcept -> byte_count { return {}; }
};
struct places_without_base {
  auto stride(group_id) const noexcept -> byte_count { return {}; }
};
struct places_throwing : places_without_base {
  auto base(group_id) const -> byte_count { return {}; }
};
struct places_in_blocks : places_without_stride {
  auto stride(group_id) const noexcept -> block_count { return {}; }
};
static_assert(places<good_places>);
static_assert(!places<places_without_stride>);
static_assert(!places<places_without_base>);
static_assert(!places<places_throwing>);
static_assert(!places<places_in_blocks>);

template <class Sizes>
constexpr bool sizes = group_memory<assembled<good_take, good_give, good_counts, good_places, Sizes>>;
struct sizes_without_groups {
  auto budget() const noexcept -> byte_count { return {}; }
  auto arena() const noexcept -> byte_count { return {}; }
};
struct sizes_without_arena {
  auto groups() const noexcept -> std::size_t { return 1; }
  auto budget() const noexcept -> byte_count { return {}; }
};
struct sizes_without_budget {
  auto groups() const noexcept -> std::size_t { return 1; }
  auto arena() const noexcept -> byte_count { return {}; }
};
struct sizes_throwing : sizes_without_groups {
  auto groups() const -> std::size_t { return 1; }
};
static_assert(sizes<good_sizes>);
static_assert(!sizes<sizes_without_groups>);
static_assert(!sizes<sizes_without_arena>);
static_assert(!sizes<sizes_without_budget>);
static_assert(!sizes<sizes_throwing>);

template <class Fits, class Usage = good_usage>
constexpr bool answers =
    group_memory<assembled<good_take, good_give, good_counts, good_places, good_sizes, Fits, Usage>>;
struct fits_not_const {
  auto fits(std::span<block_count const>) -> bool { return true; }
};
struct fits_count {
  auto fits(std::span<block_count const>) const -> block_count { return {}; }
};
struct usage_of_group_only {
  auto usage(group_id) const -> memory_usage { return {}; }
};
struct usage_of_all_only {
  auto usage() const -> memory_usage { return {}; }
};
struct usage_in_bytes {
  auto usage(group_id) const -> byte_count { return {}; }
  auto usage() const -> byte_count { return {}; }
};
static_assert(answers<good_fits>);
static_assert(!answers<nothing>);
static_assert(!answers<fits_not_const>);
static_assert(!answers<fits_count>);
static_assert(!answers<good_fits, nothing>);
static_assert(!answers<good_fits, usage_of_group_only>);
static_assert(!answers<good_fits, usage_of_all_only>);
static_assert(!answers<good_fits, usage_in_bytes>);

struct without_budget : good_take, good_give, good_counts, good_places, good_sizes, good_fits, good_usage {};
static_assert(!group_memory<without_budget>);
struct immovable : assembled<> {
  using assembled<>::assembled;
  immovable(immovable&&) = delete;
};
static_assert(!group_memory<immovable>);

static_assert(allocation_policy<group_allocation<uniform_memory>>);
static_assert(allocation_policy<group_allocation<partitioned_memory>>);
static_assert(allocation_policy<group_allocation<two_level_memory>>);
static_assert(allocation_policy<group_allocation<assembled<>>>); // the archetype serves a view

// --- helpers -------------------------------------------------------------------------------------------------------
constexpr auto a = group_id{0};
constexpr auto b = group_id{1};

auto sizes_of(std::initializer_list<std::uint64_t> bytes) -> std::vector<byte_count> {
  auto out = std::vector<byte_count>{};
  for (auto const n : bytes) { out.emplace_back(n); }
  return out;
}
template <class Memory>
auto memory_of(std::initializer_list<std::uint64_t> sizes, std::uint64_t budget) -> Memory {
  return Memory{sizes_of(sizes), byte_count{budget}};
}
template <class Memory>
auto take_all(Memory& memory, group_id group, std::size_t n) -> std::vector<block_id> {
  auto out = std::vector<block_id>(n);
  out.resize(memory.take(group, out).value());
  return out;
}
// What always holds of the report: held bytes are used, padding, or free for their group only.
template <class Memory>
void check_usage(Memory const& memory) {
  auto sum = memory_usage{};
  for (std::uint32_t g = 0; g < memory.groups(); ++g) {
    auto const one = memory.usage(group_id{g});
    CHECK(one.held == one.used + one.padding + one.external);
    sum += one;
  }
  CHECK(memory.usage() == sum);
  CHECK(sum.held <= memory.arena());
  CHECK(memory.arena() <= memory.budget());
}
} // namespace

// --- conformance ---------------------------------------------------------------------------------------------------
TEMPLATE_TEST_CASE("B3: every block is handed out once until it is given back", "", uniform_memory, partitioned_memory,
                   two_level_memory) {
  for (auto const& sizes : {std::vector<std::uint64_t>{4, 6}, {5, 1, 3}, {8}, {16, 16, 16, 16}, {1, 64}}) {
    auto bytes = std::vector<byte_count>{};
    for (auto const n : sizes) { bytes.emplace_back(n); }
    auto memory = TestType{bytes, byte_count{1000}};
    REQUIRE(memory.groups() == sizes.size());
    auto filled = std::uint64_t{0};
    for (std::uint32_t g = 0; g < sizes.size(); ++g) {
      auto const group = group_id{g};
      auto const n = memory.available(group).value();
      CHECK(n == memory.capacity(group).value()); // nobody else has anything
      auto held = std::set<std::uint32_t>{};
      for (std::uint32_t i = 0; i < n; ++i) {
        auto const block = memory.take(group, owner_hint{i % 3});
        REQUIRE(block.value() < n);
        REQUIRE(held.insert(block.value()).second);
      }
      check_usage(memory);
      CHECK(memory.available(group) == block_count{0});
      CHECK_FALSE(static_cast<bool>(memory.take(group)));
      auto more = std::array<block_id, 2>{};
      CHECK(memory.take(group, more) == block_count{0});
      memory.give(group, block_id{n / 2});
      CHECK(memory.available(group) == block_count{1});
      CHECK(memory.take(group) == block_id{n / 2});
      filled = memory.usage(group).used.value();
      CHECK(filled == n * sizes[g]);
      for (auto const id : held) { memory.give(group, block_id{id}); }
      CHECK(memory.available(group) == memory.capacity(group));
      CHECK(memory.usage(group).used == byte_count{0});
    }
    CHECK(filled > 0);
  }
}

TEMPLATE_TEST_CASE("B3: blocks of all groups lie apart, wherever their address says", "", uniform_memory,
                   partitioned_memory, two_level_memory) {
  auto memory = memory_of<TestType>({24, 40, 56}, 50'000);
  auto owner = std::vector<int>(memory.arena().value(), -1);
  auto const bytes = std::array<std::uint64_t, 3>{24, 40, 56};
  auto taken = 0;
  for (auto i = 0U; i < 3000; ++i) { // in turns until nothing is left
    auto const g = group_id{i % 3};
    auto const block = memory.take(g);
    if (!block) { continue; }
    auto const at = memory.base(g).value() + block.value() * memory.stride(g).value();
    REQUIRE(at + bytes[i % 3] <= owner.size());
    for (auto byte = at; byte < at + bytes[i % 3]; ++byte) {
      REQUIRE(owner[byte] == -1);
      owner[byte] = static_cast<int>(i);
    }
    ++taken;
  }
  CHECK(taken > 800);
  for (std::uint32_t g = 0; g < 3; ++g) { CHECK(memory.available(group_id{g}) == block_count{0}); }
  check_usage(memory);
}

TEMPLATE_TEST_CASE("B3: taking many is taking one many times", "", uniform_memory, partitioned_memory,
                   two_level_memory) {
  auto one = memory_of<TestType>({4, 6}, 240);
  auto many = memory_of<TestType>({4, 6}, 240);
  auto const same = [&](group_id g, std::size_t n) {
    auto const got = take_all(many, g, n);
    for (std::size_t i = 0; i < n; ++i) {
      auto const block = one.take(g);
      CHECK(static_cast<bool>(block) == (i < got.size()));
      if (block) { CHECK(got[i] == block); }
    }
    CHECK(one.usage() == many.usage());
  };
  same(a, 4);
  same(b, 5);
  for (auto const id : {2U, 0U, 3U}) { one.give(a, block_id{id}); }
  many.give(a, std::vector{block_id{2}, block_id{0}, block_id{3}});
  same(a, 5);
  same(b, 100); // what is left, and no more
  same(a, 100);
}

TEMPLATE_TEST_CASE("B3: what fits together can be taken in any order", "", uniform_memory, partitioned_memory,
                   two_level_memory) {
  for (std::uint32_t first = 0; first < 8; ++first) { // blocks that are out already, some given back
    for (std::uint32_t x = 0; x <= 12; ++x) {
      for (std::uint32_t y = 0; y <= 9; ++y) {
        auto const fresh = [&] {
          auto memory = memory_of<TestType>({4, 6}, 36); // two-level: 3 pages
          auto const out = take_all(memory, a, first);
          for (std::size_t i = 0; i < out.size(); i += 2) { memory.give(a, out[i]); }
          return memory;
        };
        auto const needs = std::array{block_count{x}, block_count{y}};
        auto const fits = fresh().fits(needs);
        auto ok = true;
        for (auto order = 0; order < 3; ++order) {
          auto memory = fresh();
          std::uint32_t na = 0;
          std::uint32_t nb = 0;
          while (na < x || nb < y) {
            auto const from_a = nb == y || (na < x && (order == 0 || (order == 2 && (na + nb) % 2 == 0)));
            auto const block = memory.take(from_a ? a : b, owner_hint{na + nb});
            if (!block) { break; }
            ++(from_a ? na : nb);
            REQUIRE((!fits || memory.fits(std::array{block_count{x - na}, block_count{y - nb}})));
          }
          ok = ok && na == x && nb == y;
        }
        CAPTURE(first, x, y);
        CHECK(fits == ok);
      }
    }
  }
  auto memory = memory_of<TestType>({4, 6}, 36);
  CHECK_THROWS_AS(memory.fits(std::array{block_count{1}}), quire_test::contract_violation);
  CHECK_THROWS_AS(memory.usage(group_id{2}), quire_test::contract_violation);
}

TEMPLATE_TEST_CASE("B3: nothing allocates after construction", "", uniform_memory, partitioned_memory,
                   two_level_memory) {
  auto memory = memory_of<TestType>({64, 96}, 100'000);
  CHECK(quire_test::allocations_of([&] {
          auto out = std::array<block_id, 600>{};
          for (std::uint32_t round = 0; round < 6; ++round) {
            auto const g = group_id{round % 2};
            auto const n = memory.take(g, out, owner_hint{round}).value();
            for (std::uint32_t i = 0; i < n; i += 2) { memory.give(g, out[i]); }
            for (std::uint32_t i = 1; i < n; i += 2) { memory.give(g, out[i]); }
            static_cast<void>(memory.usage());
          }
        }) == 0);
}

TEMPLATE_TEST_CASE("B3: a memory that cannot exist is refused", "", uniform_memory, partitioned_memory,
                   two_level_memory) {
  CHECK_THROWS_AS(memory_of<TestType>({}, 100), config_error);
  CHECK_THROWS_AS(memory_of<TestType>({4, 0}, 100), config_error);
  CHECK_THROWS_AS(memory_of<TestType>({4, 6}, 5), config_error);
  CHECK_THROWS_AS(memory_of<TestType>({1, 2}, 1ULL << 33U), config_error); // more than 2^31 - 1 blocks
}

TEMPLATE_TEST_CASE("B3: pools of several groups draw on one memory", "", uniform_memory, partitioned_memory,
                   two_level_memory) {
  auto memory = memory_of<TestType>({4, 6}, 240);
  using pool = block_pool<group_allocation<TestType>>;
  auto const view_a = group_allocation{memory, a};
  auto const view_b = group_allocation{memory, b};
  auto pool_a = pool{view_a.capacity(), view_a};
  auto pool_b = pool{view_b.capacity(), view_b};
  CHECK(pool_a.capacity() == memory.capacity(a));
  CHECK(view_b.group() == b);
  auto out = std::vector<block_id>(7);
  REQUIRE(pool_a.try_allocate(out) == block_count{7});
  auto const other = pool_b.try_allocate();
  REQUIRE(static_cast<bool>(other));
  CHECK(pool_a.free_blocks() == memory.available(a));
  CHECK(pool_b.free_blocks() == memory.available(b));
  CHECK(pool_b.state(other) == block_state::writing);
  check_usage(memory);
  pool_a.release_and_reclaim(out);
  CHECK(pool_b.release(other));
  pool_b.retire_and_reclaim(other);
  CHECK(memory.usage().used == byte_count{0});
  CHECK_THROWS_AS((group_allocation{memory, group_id{2}}), quire_test::contract_violation);
}

TEST_CASE("B3: a view of no memory has no block") {
  auto view = group_allocation<two_level_memory>{block_count{5}};
  CHECK(view.available() == block_count{0});
  CHECK(view.capacity() == block_count{0});
  CHECK_FALSE(static_cast<bool>(view.take()));
  auto out = std::array<block_id, 2>{};
  CHECK(view.take(out) == block_count{0});
  view.give(std::span<block_id const>{});
}

// --- uniform -------------------------------------------------------------------------------------------------------
TEST_CASE("B3: uniform memory pads every block to the largest and shares all of them") {
  auto memory = memory_of<uniform_memory>({4, 6}, 63);
  CHECK(memory.capacity(a) == block_count{10});
  CHECK(memory.stride(a) == byte_count{6});
  CHECK(memory.arena() == byte_count{60});
  CHECK(memory.take(a) == block_id{0});
  CHECK(memory.take(b) == block_id{1});
  CHECK(memory.usage(a) ==
        memory_usage{.held = byte_count{6}, .used = byte_count{4}, .padding = byte_count{2}, .external = {}});
  CHECK(memory.usage(b) == memory_usage{.held = byte_count{6}, .used = byte_count{6}, .padding = {}, .external = {}});
  CHECK(memory.usage().utilisation() == 10.0 / 12.0);
  CHECK(memory_of<uniform_memory>({4, 6}, 63).usage().utilisation() == 1.0); // nothing held, nothing lost
}

// --- partitioned ---------------------------------------------------------------------------------------------------
TEST_CASE("B3: partitioned memory gives each group its share and never another's") {
  auto const sizes = sizes_of({4, 6});
  auto const parts = std::array<std::uint32_t, 2>{1, 3};
  auto memory = partitioned_memory{sizes, byte_count{100}, parts};
  CHECK(memory.capacity(a) == block_count{6});  // 25 bytes
  CHECK(memory.capacity(b) == block_count{12}); // 75 bytes
  CHECK(memory.base(b) == byte_count{25});
  CHECK(take_all(memory, a, 100).size() == 6);
  CHECK(memory.available(b) == block_count{12});
  CHECK(memory.usage(a).external == byte_count{0});
  CHECK(memory.usage(b).external == byte_count{72}); // free, and for b alone
  CHECK(memory.usage(b).held == byte_count{72});
  CHECK(memory.usage().padding == byte_count{0});

  CHECK_THROWS_AS((partitioned_memory{sizes, byte_count{100}, std::array<std::uint32_t, 1>{1}}), config_error);
  CHECK_THROWS_AS((partitioned_memory{sizes, byte_count{100}, std::array<std::uint32_t, 2>{0, 0}}), config_error);
  CHECK_THROWS_AS((partitioned_memory{sizes, byte_count{100}, std::array<std::uint32_t, 2>{0, 1}}), config_error);
}

TEST_CASE("B3: large shares start where device memory is aligned") {
  auto const sizes = sizes_of({1000, 3000});
  auto const memory = partitioned_memory{sizes, byte_count{1'000'001}, std::array<std::uint32_t, 2>{1, 2}};
  CHECK(memory.base(b).value() % 256 == 0);
  CHECK(memory.base(b) >= byte_count{memory.capacity(a).value() * 1000ULL});
  CHECK(memory.arena() <= byte_count{1'000'001});
}

// --- two levels ----------------------------------------------------------------------------------------------------
TEST_CASE("B3: a page goes to the group that needs it and comes back whole") {
  auto memory = memory_of<two_level_memory>({4, 6}, 36); // 3 pages of 12: 3 blocks of a or 2 of b
  REQUIRE(memory.plan().page == byte_count{12});
  CHECK(memory.available(a) == block_count{9});
  CHECK(memory.available(b) == block_count{6});
  auto const first = memory.take(a);
  CHECK(memory.pages(a) == 1);
  CHECK(memory.free_pages() == 2);
  CHECK(memory.available(a) == block_count{8});
  CHECK(memory.available(b) == block_count{4}); // the rest of a's page is not b's
  CHECK(memory.usage(a).external == byte_count{8});
  CHECK(take_all(memory, b, 10).size() == 4);
  CHECK(memory.available(a) == block_count{2});
  memory.give(a, first); // the last block of its page
  CHECK(memory.pages(a) == 0);
  CHECK(memory.free_pages() == 1);
  CHECK(memory.available(b) == block_count{2});
  CHECK(memory.usage(a) == memory_usage{});
}

TEST_CASE("B3: blocks come from the fuller pages, so that the others empty") {
  auto memory = memory_of<two_level_memory>({1, 8}, 80); // pages of 8 blocks of a
  REQUIRE(take_all(memory, a, 24).size() == 24);         // three pages
  auto const give = [&](std::uint32_t page, std::uint32_t n) {
    for (std::uint32_t i = 0; i < n; ++i) { memory.give(a, block_id{8 * page + i}); }
  };
  give(1, 4); // keeps 4: at least half, so one of the fuller ones
  give(2, 5); // keeps 3: one of the emptier ones
  give(0, 7); // keeps 1, and is the most recent of the emptier ones
  for (auto n = 0; n < 4; ++n) { CHECK(memory.take(a).value() / 8 == 1); }
  for (auto n = 0; n < 7; ++n) { CHECK(memory.take(a).value() / 8 == 0); }
  for (auto n = 0; n < 5; ++n) { CHECK(memory.take(a).value() / 8 == 2); } // a page of its own before a fresh one
  CHECK(memory.pages(a) == 3);
  CHECK(memory.usage(a).external == byte_count{0});
  // a page between full and half stays with the fuller ones, one below half sinks
  give(2, 4);
  give(0, 1);
  memory.give(a, block_id{8 * 2 + 4}); // page 2 keeps 3
  CHECK(memory.take(a).value() / 8 == 0);
  CHECK(memory.take(a).value() / 8 == 2);
}

TEST_CASE("B3: an owner goes on in the page it opened") {
  auto memory = memory_of<two_level_memory>({1, 8}, 80);
  auto const mine = owner_hint{7};
  auto const others = owner_hint{9};
  auto out = std::vector<block_id>(8);
  CHECK(memory.take(a, std::span{out}.first(8), others) == block_count{8}); // page 0 is full
  CHECK(memory.take(a, std::span{out}.first(3), mine) == block_count{3});   // page 1
  memory.give(a, block_id{0});                                              // page 0 is fuller than page 1
  CHECK(memory.take(a, mine).value() / 8 == 1);
  CHECK(memory.take(a, others) == block_id{0});
  CHECK(memory.take(a, owner_hint{5}).value() / 8 == 1); // nobody's page before a fresh one
  CHECK(memory.free_pages() == 8);
  // a page that came back is nobody's
  for (std::uint32_t i = 8; i < 13; ++i) { memory.give(a, block_id{i}); }
  CHECK(memory.pages(a) == 1);
  CHECK(take_all(memory, b, 100).size() == 9);
  CHECK_FALSE(static_cast<bool>(memory.take(a, mine)));
}

TEST_CASE("B3: padded pages report their padding") {
  auto const sizes = sizes_of({1000, 1001});
  auto memory = two_level_memory{sizes, byte_count{1'000'000}, byte_count{100'000}};
  REQUIRE(memory.plan().padded());
  auto const taken = take_all(memory, a, 10);
  auto const padding = memory.stride(a) - byte_count{1000};
  CHECK(padding > byte_count{0});
  CHECK(memory.usage(a).padding == byte_count{10 * padding.value()});
  CHECK(memory.usage(a).used == byte_count{10'000});
  check_usage(memory);
  CHECK_THROWS_AS((two_level_memory{sizes, byte_count{1'000'000}, byte_count{1000}}), config_error);
  CHECK_THROWS_AS((two_level_memory{sizes, byte_count{1'000'000}}), config_error); // no page of the common multiple
}
