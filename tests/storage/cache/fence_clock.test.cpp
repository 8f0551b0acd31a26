// SPDX-License-Identifier: Apache-2.0
// What is over, by fence, by timelines that were given up, and by several tickets at once.
#include <quire/block/immediate_fence.hpp>
#include <quire/block/ticket_fence.hpp>
#include <quire/cache/detail/fence_clock.hpp>
#include <quire/core/types.hpp>

#include "support/catch_compat.hpp"

#include <cstdint>

namespace {
using namespace quire;
using two = detail::fence_clock<ticket_fence<2>>;
constexpr auto t0 = timeline_id{0};
constexpr auto t1 = timeline_id{1};
} // namespace

TEST_CASE("fence_clock: nothing is ever in flight behind an immediate fence, whatever the ticket") {
  using now = detail::fence_clock<immediate_fence>;
  static_assert(now::immediate);
  static_assert(!two::immediate);
  auto const clock = now{};
  CHECK(clock.reached(0, ticket{99}));
  CHECK(clock.reached(now::tickets{ticket{99}}));
}

TEST_CASE("S18: several tickets are reached when each of them is") {
  auto clock = two{};
  auto const a = clock.issue(t0);
  auto const b = clock.issue(t1);
  CHECK(clock.issued(t0) == a);
  CHECK(clock.reached(two::tickets{}));
  CHECK_FALSE(clock.reached({a, b}));
  CHECK(clock.behind({a, b}) == 0);
  CHECK(clock.behind({ticket{}, b}) == 1);
  clock.fence().complete(t0, a);
  CHECK(clock.reached(0, a));
  CHECK_FALSE(clock.reached(1, b));
  CHECK_FALSE(clock.reached({a, b}));
  CHECK(clock.behind({a, b}) == 1);
  CHECK(clock.reached({a, ticket{}}));
  clock.fence().complete(t1, b);
  CHECK(clock.reached({a, b}));
}

TEST_CASE("S18: of a timeline that was given up, what was issued counts as reached, and later work does not") {
  auto clock = two{};
  auto const a = clock.issue(t0);
  auto const b = clock.issue(t1);
  clock.abandon(0, clock.issued(t0));
  CHECK(clock.reached(0, a));
  CHECK_FALSE(clock.reached(1, b)); // timelines know nothing of each other
  auto const later = clock.issue(t0);
  CHECK_FALSE(clock.reached(0, later));
  clock.fence().complete(t0, later);
  CHECK(clock.reached(0, later));
}

TEST_CASE("fence_clock: the latest tickets are those of all users, timeline by timeline") {
  auto clock = two{};
  clock.note(0, ticket{3});
  clock.note(1, ticket{5});
  clock.note(0, ticket{2}); // told late
  CHECK(clock.latest() == two::tickets{ticket{3}, ticket{5}});
  auto a = two::tickets{ticket{4}, ticket{1}};
  detail::join(a, clock.latest());
  CHECK(a == two::tickets{ticket{4}, ticket{5}});
}
