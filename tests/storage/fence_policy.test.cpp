// SPDX-License-Identifier: Apache-2.0
// What the concept takes and refuses, one suite for every model, and the limbo of retired blocks.
#include <quire/block/concepts.hpp>
#include <quire/block/immediate_fence.hpp>
#include <quire/block/limbo.hpp>
#include <quire/block/ticket_fence.hpp>

#include "storage/storage_fixture.hpp"
#include "support/catch_compat.hpp"
#include "support/counting_allocator.hpp"

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

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

template <class Limbo, class Fence>
auto drained(Limbo& limbo, Fence const& fence, timeline_id t) -> std::vector<std::uint32_t> {
  auto out = std::vector<std::uint32_t>{};
  limbo.drain(t, [&](ticket k) { return fence.reached(t, k); }, [&](block_id b) { out.push_back(b.value()); });
  return out;
}
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

// --- limbo ---------------------------------------------------------------------------------------------------------
TEST_CASE("S18: a block waits in limbo until its ticket is reached, oldest ticket first") {
  auto fence = ticket_fence<1>{};
  auto waiting = limbo<1>{block_count{8}};
  waiting.reserve(3);
  auto const first = fence.issue(t0);
  auto const second = fence.issue(t0);
  waiting.retire(block_id{4}, t0, first);
  waiting.retire(block_id{1}, t0, first);
  waiting.retire(block_id{7}, t0, second);
  CHECK(waiting.size() == block_count{3});
  CHECK(drained(waiting, fence, t0).empty());
  fence.complete(t0, first);
  auto const out = drained(waiting, fence, t0);
  CHECK(std::set<std::uint32_t>(out.begin(), out.end()) == std::set<std::uint32_t>{1, 4});
  CHECK(waiting.size() == block_count{1});
  fence.complete(t0, second);
  CHECK(drained(waiting, fence, t0) == std::vector<std::uint32_t>{7});
  CHECK(waiting.size() == block_count{0});
}

TEST_CASE("S18: timelines wait apart, and a lost one gives up its own blocks only") {
  auto fence = ticket_fence<2>{};
  auto waiting = limbo<2>{block_count{8}};
  waiting.reserve(4);
  waiting.retire(block_id{0}, t0, fence.issue(t0));
  waiting.retire(block_id{1}, t1, fence.issue(t1));
  fence.complete(t1, fence.issued(t1));
  CHECK(drained(waiting, fence, t0).empty());
  CHECK(drained(waiting, fence, t1) == std::vector<std::uint32_t>{1});
  auto lost = std::vector<std::uint32_t>{};
  waiting.abandon(t0, [&](block_id b) { lost.push_back(b.value()); });
  CHECK(lost == std::vector<std::uint32_t>{0});
  CHECK(waiting.size() == block_count{0});
}

TEST_CASE("S18: a block may be retired again, under a later ticket of another timeline") {
  auto waiting = limbo<2>{block_count{2}};
  waiting.reserve(4);
  waiting.retire(block_id{0}, t0, ticket{1});
  waiting.drain(t0, [](ticket) { return true; }, [&](block_id b) { waiting.retire(b, t1, ticket{9}); });
  CHECK(waiting.size() == block_count{1});
  auto fence = ticket_fence<2>{};
  CHECK(drained(waiting, fence, t1).empty());
  fence.complete(t1, ticket{9});
  CHECK(drained(waiting, fence, t1) == std::vector<std::uint32_t>{0});
}

TEST_CASE("S18: a steady stream of tickets allocates nothing, and no block costs an entry") {
  auto fence = ticket_fence<1>{};
  auto waiting = limbo<1>{block_count{64}};
  waiting.reserve(2);
  CHECK(quire_test::allocations_of([&] {
          for (std::uint32_t round = 0; round < 100; ++round) {
            waiting.reserve(2);
            auto const until = fence.issue(t0);
            for (std::uint32_t b = 0; b < 32; ++b) { waiting.retire(block_id{(round % 2) * 32 + b}, t0, until); }
            if (round > 0) { fence.complete(t0, ticket{until.value() - 1}); }
            waiting.drain(t0, [&](ticket k) { return fence.reached(t0, k); }, [](block_id) {});
          }
        }) == 0);
  CHECK(waiting.size() == block_count{32});
}
