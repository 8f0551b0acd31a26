// SPDX-License-Identifier: Apache-2.0
#include <quire/view/concepts.hpp>

#include <quire/view/host_executor.hpp>
#include <quire/view/null_executor.hpp>
#include <quire/view/recording_executor.hpp>

#include "support/catch_compat.hpp"

#include <array>
#include <span>
#include <utility>

namespace {
using namespace quire;

// The least that an executor can be: not copyable, not movable, not default constructible.
class executor_archetype {
public:
  explicit executor_archetype(int) {}
  executor_archetype(executor_archetype&&) = delete;
  auto run(std::span<action const>) -> expected<void> { return {}; }
};
struct movable_archetype {
  explicit movable_archetype(int) {}
  auto run(std::span<action const> actions) -> expected<void> {
    seen += static_cast<int>(actions.size());
    return {};
  }
  int seen = 0;
};

// Near misses, each wrong in one thing.
struct no_run {};
struct run_returns_void {
  void run(std::span<action const>);
};
struct run_returns_bool {
  auto run(std::span<action const>) -> bool;
};
struct run_returns_errc {
  auto run(std::span<action const>) -> errc;
};
struct run_returns_value {
  auto run(std::span<action const>) -> expected<int>;
};
struct run_returns_reference {
  auto run(std::span<action const>) -> expected<void>&;
};
struct run_takes_mutable_actions {
  auto run(std::span<action>) -> expected<void>;
};
struct run_takes_one_action {
  auto run(action const&) -> expected<void>;
};
struct run_takes_more {
  auto run(std::span<action const>, int) -> expected<void>;
};
class run_is_private {
  auto run(std::span<action const>) -> expected<void>;
};
struct run_of_temporaries_only {
  auto run(std::span<action const>) && -> expected<void>;
};

struct wait_returns_bool {
  auto operator()(timeline_id, ticket) -> bool;
};
struct wait_without_ticket {
  void operator()(timeline_id);
};
struct wait_swapped {
  void operator()(ticket, timeline_id);
};
struct wait_of_numbers {
  void operator()(unsigned, unsigned long);
};
} // namespace

TEST_CASE("S44: executor accepts its models and the minimal archetype") {
  STATIC_REQUIRE(executor<null_executor>);
  STATIC_REQUIRE(executor<host_executor<>>);
  STATIC_REQUIRE(executor<recording_executor<>>);
  STATIC_REQUIRE(executor<recording_executor<host_executor<>>>);
  STATIC_REQUIRE(executor<recording_executor<recording_executor<null_executor>>>);
  STATIC_REQUIRE(executor<executor_archetype>);
  STATIC_REQUIRE(executor<movable_archetype>);
}

TEST_CASE("S44: executor rejects near misses") {
  STATIC_REQUIRE_FALSE(executor<int>);
  STATIC_REQUIRE_FALSE(executor<no_run>);
  STATIC_REQUIRE_FALSE(executor<run_returns_void>);
  STATIC_REQUIRE_FALSE(executor<run_returns_bool>);
  STATIC_REQUIRE_FALSE(executor<run_returns_errc>);
  STATIC_REQUIRE_FALSE(executor<run_returns_value>);
  STATIC_REQUIRE_FALSE(executor<run_returns_reference>);
  STATIC_REQUIRE_FALSE(executor<run_takes_mutable_actions>);
  STATIC_REQUIRE_FALSE(executor<run_takes_one_action>);
  STATIC_REQUIRE_FALSE(executor<run_takes_more>);
  STATIC_REQUIRE_FALSE(executor<run_is_private>);
  STATIC_REQUIRE_FALSE(executor<run_of_temporaries_only>);
  STATIC_REQUIRE_FALSE(executor<executor_archetype const>); // its run changes it
}

TEST_CASE("S44: the minimal archetype works wherever an executor is taken") {
  auto recorder = recording_executor<movable_archetype>{movable_archetype{1}};
  REQUIRE(recorder.run(std::array{action::scrub_block(group_id{0}, block_id{1})}));
  CHECK(recorder.inner().seen == 1);
  CHECK(recorder.recorded().size() == 1);
}

TEST_CASE("S44: ticket_waiter accepts its models and rejects near misses") {
  auto const lambda = [](timeline_id, ticket) {};
  STATIC_REQUIRE(ticket_waiter<no_wait>);
  STATIC_REQUIRE(ticket_waiter<decltype(lambda)>);
  STATIC_REQUIRE_FALSE(ticket_waiter<int>);
  STATIC_REQUIRE_FALSE(ticket_waiter<no_run>);
  STATIC_REQUIRE_FALSE(ticket_waiter<wait_returns_bool>);
  STATIC_REQUIRE_FALSE(ticket_waiter<wait_without_ticket>);
  STATIC_REQUIRE_FALSE(ticket_waiter<wait_swapped>);
  STATIC_REQUIRE_FALSE(ticket_waiter<wait_of_numbers>);
}
