// SPDX-License-Identifier: Apache-2.0
// What the concept takes and refuses, and one suite for every model.
#include <quire/block/concepts.hpp>
#include <quire/block/immediate_fence.hpp>
#include <quire/block/ticket_fence.hpp>

#include "storage/storage_fixture.hpp"
#include "support/catch_compat.hpp"

#include <cstddef>
#include <cstdint>

namespace {
using namespace quire;
constexpr auto t0 = timeline_id{0};
constexpr auto t1 = timeline_id{1};

// --- the concept ---------------------------------------------------------------------------------------------------
struct good_timelines {
  static constexpr std::size_t timelines = 1;
};
struct good_issue {
  auto issue(timeline_id) noexcept -> ticket { return {}; }
};
struct good_issued {
  auto issued(timeline_id) const noexcept -> ticket { return {}; }
};
struct good_reached {
  auto reached(timeline_id, ticket) const noexcept -> bool { return true; }
};
struct nothing {};
template <class Timelines = good_timelines, class Issue = good_issue, class Issued = good_issued,
          class Reached = good_reached>
struct assembled : Timelines, Issue, Issued, Reached {};
static_assert(fence_policy<assembled<>>);
static_assert(!fence_policy<int>);
static_assert(!fence_policy<void>);

struct timelines_text {
  static constexpr char const* timelines = "1";
};
static_assert(!fence_policy<assembled<nothing>>);
static_assert(!fence_policy<assembled<timelines_text>>);
struct issue_throws {
  auto issue(timeline_id) -> ticket { return {}; }
};
struct issue_number {
  auto issue(timeline_id) noexcept -> std::uint64_t { return {}; }
};
static_assert(!fence_policy<assembled<good_timelines, nothing>>);
static_assert(!fence_policy<assembled<good_timelines, issue_throws>>);
static_assert(!fence_policy<assembled<good_timelines, issue_number>>);
struct issued_throws {
  auto issued(timeline_id) const -> ticket { return {}; }
};
struct issued_number {
  auto issued(timeline_id) const noexcept -> std::uint64_t { return {}; }
};
struct issued_not_const {
  auto issued(timeline_id) noexcept -> ticket { return {}; }
};
static_assert(!fence_policy<assembled<good_timelines, good_issue, nothing>>);
static_assert(!fence_policy<assembled<good_timelines, good_issue, issued_throws>>);
static_assert(!fence_policy<assembled<good_timelines, good_issue, issued_number>>);
static_assert(!fence_policy<assembled<good_timelines, good_issue, issued_not_const>>);
struct reached_throws {
  auto reached(timeline_id, ticket) const -> bool { return true; }
};
struct reached_number {
  auto reached(timeline_id, ticket) const noexcept -> int { return 1; }
};
struct reached_not_const {
  auto reached(timeline_id, ticket) noexcept -> bool { return true; }
};
static_assert(!fence_policy<assembled<good_timelines, good_issue, good_issued, nothing>>);
static_assert(!fence_policy<assembled<good_timelines, good_issue, good_issued, reached_throws>>);
static_assert(!fence_policy<assembled<good_timelines, good_issue, good_issued, reached_number>>);
static_assert(!fence_policy<assembled<good_timelines, good_issue, good_issued, reached_not_const>>);
struct needs_argument : assembled<> {
  explicit needs_argument(int) {}
};
static_assert(!fence_policy<needs_argument>);

struct archetype_policies : default_policies {
  using fence = assembled<>;
};
} // namespace

TEST_CASE("fence_policy: the archetype serves a cache") {
  auto e = quire_test::engine<archetype_policies>{quire_test::pool_of(4)};
  auto r = e.serve({1, 2, 3, 4, 5});
  e.release(r);
  CHECK(e.now().free == block_count{3});
}

// --- conformance ---------------------------------------------------------------------------------------------------
TEMPLATE_TEST_CASE("fence_policy: ticket 0 is reached from the start", "", immediate_fence, ticket_fence<1>,
                   ticket_fence<3>) {
  auto const fence = TestType{};
  for (std::uint32_t t = 0; t < TestType::timelines; ++t) {
    CHECK(fence.reached(timeline_id{t}, ticket{}));
    CHECK(fence.issued(timeline_id{t}) == ticket{});
  }
}

TEMPLATE_TEST_CASE("fence_policy: tickets of a timeline do not decrease, and reached is monotone", "", immediate_fence,
                   ticket_fence<1>, ticket_fence<3>) {
  auto fence = TestType{};
  auto last = ticket{};
  for (auto i = 0; i < 10; ++i) {
    auto const next = fence.issue(t0);
    CHECK(next >= last);
    CHECK(fence.issued(t0) == next);
    last = next;
  }
  if constexpr (requires { fence.complete(t0, last); }) { fence.complete(t0, last); }
  for (std::uint64_t k = 0; k <= last.value(); ++k) { CHECK(fence.reached(t0, ticket{k})); }
}

TEST_CASE("S18: a ticket is reached when its completion is told, not before") {
  auto fence = ticket_fence<2>{};
  auto const a = fence.issue(t0);
  auto const b = fence.issue(t0);
  auto const c = fence.issue(t1);
  CHECK(a < b);
  CHECK_FALSE(fence.reached(t0, a));
  fence.complete(t0, a);
  CHECK(fence.reached(t0, a));
  CHECK_FALSE(fence.reached(t0, b));
  CHECK_FALSE(fence.reached(t1, c)); // timelines know nothing of each other
  fence.complete(t0, b);
  fence.complete(t0, a); // late, or told twice
  CHECK(fence.reached(t0, b));
  CHECK(fence.issued(t1) == c);
}
