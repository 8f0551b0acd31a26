// SPDX-License-Identifier: Apache-2.0
// The policies with one function: admission, copy and lock. What each concept takes and refuses, and one suite for every
// model.
#include <quire/cache/admission.hpp>
#include <quire/cache/lock.hpp>
#include <quire/core/config_error.hpp>
#include <quire/sequence/concepts.hpp>
#include <quire/sequence/copy_on_write.hpp>

#include "storage/storage_fixture.hpp"
#include "support/catch_compat.hpp"

#include <cstdint>
#include <mutex>

namespace {
using namespace quire;
using quire_test::ascending;
using quire_test::engine;
using quire_test::pool_of;

// --- admission -----------------------------------------------------------------------------------------------------
struct admits_half {
  auto admits(admission_query const& q) const noexcept -> bool { return 2 * q.in_total.value() <= q.available.value(); }
};
static_assert(admission_policy<admits_half>);
static_assert(!admission_policy<int>);
static_assert(!admission_policy<void>);
struct admits_nothing {};
struct admits_throwing {
  auto admits(admission_query const&) const -> bool { return true; }
};
struct admits_number {
  auto admits(admission_query const&) const noexcept -> int { return 1; }
};
struct admits_not_const {
  auto admits(admission_query const&) noexcept -> bool { return true; }
};
struct admits_by_mutable_query {
  auto admits(admission_query&) const noexcept -> bool { return true; }
};
struct immovable_admission : admits_half {
  immovable_admission(immovable_admission&&) = delete;
};
static_assert(!admission_policy<admits_nothing>);
static_assert(!admission_policy<admits_throwing>);
static_assert(!admission_policy<admits_number>);
static_assert(!admission_policy<admits_not_const>);
static_assert(!admission_policy<admits_by_mutable_query>);
static_assert(!admission_policy<immovable_admission>);

struct half_policies : default_policies {
  using admission = admits_half;
};

auto query(unsigned now, unsigned in_total, unsigned promised, unsigned available, unsigned capacity)
    -> admission_query {
  return {block_count{now}, block_count{in_total}, block_count{promised}, block_count{available},
          block_count{capacity}};
}

// --- copy ----------------------------------------------------------------------------------------------------------
struct smallest_copy {
  static constexpr bool allowed = true;
  static auto copy(group_id g, block_id from, block_id to, token_count n, token_count) noexcept -> action {
    return action::copy_block(g, from, to, n);
  }
};
static_assert(copy_policy<smallest_copy>);
static_assert(!copy_policy<int>);
static_assert(!copy_policy<void>);
struct copy_without_allowed {
  static auto copy(group_id, block_id, block_id, token_count, token_count) noexcept -> action { return {}; }
};
struct copy_not_static {
  static constexpr bool allowed = true;
  auto copy(group_id, block_id, block_id, token_count, token_count) noexcept -> action { return {}; }
};
struct copy_allowed_number : copy_without_allowed {
  static constexpr int allowed = 1;
};
struct copy_allowed_changes : copy_without_allowed {
  static inline bool allowed = true;
};
struct copy_missing {
  static constexpr bool allowed = true;
};
struct copy_throwing {
  static constexpr bool allowed = true;
  static auto copy(group_id, block_id, block_id, token_count, token_count) -> action { return {}; }
};
struct copy_bool {
  static constexpr bool allowed = true;
  static auto copy(group_id, block_id, block_id, token_count, token_count) noexcept -> bool { return true; }
};
static_assert(!copy_policy<copy_without_allowed>);
static_assert(!copy_policy<copy_not_static>);
static_assert(!copy_policy<copy_allowed_number>);
static_assert(!copy_policy<copy_allowed_changes>);
static_assert(!copy_policy<copy_missing>);
static_assert(!copy_policy<copy_throwing>);
static_assert(!copy_policy<copy_bool>);

template <class Copy>
struct copying : default_policies {
  using copy = Copy;
};

// --- lock ----------------------------------------------------------------------------------------------------------
struct counting_lock {
  inline static int locked = 0;
  inline static int unlocked = 0;
  void lock() { ++locked; }
  void unlock() { ++unlocked; }
};
static_assert(lock_policy<counting_lock>);
static_assert(lock_policy<std::mutex>);
static_assert(!lock_policy<int>);
static_assert(!lock_policy<void>);
struct lock_only {
  void lock() {}
};
struct unlock_only {
  void unlock() {}
};
struct lock_bool {
  auto lock() -> bool { return true; }
  void unlock() {}
};
struct unlock_bool {
  void lock() {}
  auto unlock() -> bool { return true; }
};
struct lock_with_argument : counting_lock {
  explicit lock_with_argument(int) {}
};
static_assert(!lock_policy<lock_only>);
static_assert(!lock_policy<unlock_only>);
static_assert(!lock_policy<lock_bool>);
static_assert(!lock_policy<unlock_bool>);
static_assert(!lock_policy<lock_with_argument>);

} // namespace

TEST_CASE("S17: reserve_all lets in what fits beside everything promised") {
  auto const policy = reserve_all{};
  CHECK(policy.admits(query(1, 6, 4, 10, 10)));
  CHECK_FALSE(policy.admits(query(1, 7, 4, 10, 10)));
  CHECK(policy.admits(query(0, 0, 10, 10, 10)));
  CHECK_FALSE(policy.admits(query(1, 0xffff'ffffU, 0xffff'ffffU, 10, 10))); // the sum does not wrap
}

TEST_CASE("S17: optimistic lets in what can be prefilled now") {
  auto const policy = optimistic{};
  CHECK(policy.admits(query(10, 1000, 999, 10, 10)));
  CHECK_FALSE(policy.admits(query(11, 11, 0, 10, 100)));
}

TEST_CASE("S17: watermark keeps its share of the pool free") {
  auto const policy = watermark{100}; // a tenth of 50 = 5 blocks
  CHECK(policy.admits(query(5, 1000, 999, 10, 50)));
  CHECK_FALSE(policy.admits(query(6, 6, 0, 10, 50)));
  CHECK(watermark{}.admits(query(9, 9, 0, 10, 100))); // 1 % by default
  CHECK_FALSE(watermark{}.admits(query(10, 10, 0, 10, 100)));
  CHECK(watermark{0}.admits(query(10, 10, 0, 10, 100)));
  CHECK_FALSE(watermark{1000}.admits(query(1, 1, 0, 100, 100)));
  CHECK_THROWS_AS(watermark{1001}, config_error);
}

TEMPLATE_TEST_CASE("admission_policy: more room never turns a yes into a no", "", reserve_all, optimistic, watermark,
                   admit_all, admits_half) {
  auto const policy = TestType{};
  for (auto now = 0U; now < 6; ++now) {
    for (auto total = now; total < 8; ++total) {
      for (auto promised = 0U; promised < 6; ++promised) {
        auto before = false;
        for (auto available = 0U; available <= 16; ++available) {
          auto const admitted = policy.admits(query(now, total, promised, available, 16));
          CHECK((admitted || !before));
          before = admitted;
        }
        CHECK(policy.admits(query(0, 0, 0, 16, 16)));
      }
    }
  }
}

TEST_CASE("S23: copy_on_write copies the valid tokens, copy_whole_block the block, never_copy refuses") {
  auto const args = [](auto policy) {
    return decltype(policy)::copy(group_id{3}, block_id{1}, block_id{2}, token_count{5}, token_count{16});
  };
  CHECK(args(copy_on_write{}) == action::copy_block(group_id{3}, block_id{1}, block_id{2}, token_count{5}));
  CHECK(args(copy_whole_block{}) == action::copy_block(group_id{3}, block_id{1}, block_id{2}, token_count{16}));
  CHECK(copy_on_write::allowed);
  CHECK(copy_whole_block::allowed);
  CHECK_FALSE(never_copy::allowed);
}

TEMPLATE_TEST_CASE("copy_policy: a fork that appends reads its own bytes", "", copy_on_write, copy_whole_block,
                   smallest_copy) {
  auto e = engine<copying<TestType>>{pool_of(16)};
  auto r = e.serve(ascending(6), 4);
  auto a = e.fork(r, 6);
  auto b = e.fork(r, 5);
  e.step({{&a, {60}}, {&r, {70}}, {&b, {80}}});
  for (auto* const one : {&r, &a, &b}) { e.read(*one); }
  CHECK(e.cache.statistics().copied_blocks == 2); // the writer keeps its block
}

TEST_CASE("S23: where nothing may be copied a step that would have to is refused and changes nothing") {
  auto e = engine<copying<never_copy>>{pool_of(16)};
  auto r = e.serve(ascending(6), 4);
  auto twin = e.fork(r, 6);
  auto const ids = quire_test::text{60};
  auto const items = {engine<copying<never_copy>>::step_item{twin.seq, ids}};
  {
    auto const planned = e.cache.plan_step({items.begin(), items.size()});
    REQUIRE(planned.has_value());
    CHECK(planned->results()[0].status == errc::not_supported);
    CHECK_FALSE(static_cast<bool>(planned->results()[0].row));
  }
  quire_test::check(e.cache);
  e.step({{&r, {7}}}); // the writer needs no copy
  e.release(r);
  e.step({{&twin, {60}}}); // alone now
  e.read(twin);
}
