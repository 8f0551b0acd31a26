// SPDX-License-Identifier: Apache-2.0
// Every pair of state and event of both life cycles against a list of legal edges that was written by hand from S25.
#include <quire/block/block_state.hpp>
#include <quire/block/concepts.hpp>
#include <quire/sequence/request_state.hpp>

#include "support/catch_compat.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <tuple>
#include <vector>

namespace {
using namespace quire;

template <class Lifecycle>
using edge = std::tuple<typename Lifecycle::state, typename Lifecycle::event, typename Lifecycle::state>;

template <class Lifecycle>
void compare(std::vector<edge<Lifecycle>> const& legal) {
  using state = typename Lifecycle::state;
  using event = typename Lifecycle::event;
  std::size_t found = 0;
  for (std::size_t s = 0; s < static_cast<std::size_t>(state::count_); ++s) {
    for (std::size_t e = 0; e < static_cast<std::size_t>(event::count_); ++e) {
      auto const from = static_cast<state>(s);
      auto const what = static_cast<event>(e);
      auto expected = std::optional<state>{};
      for (auto const& [a, b, c] : legal) {
        if (a == from && b == what) { expected = c; }
      }
      INFO("state " << s << " event " << e);
      CHECK(Lifecycle::table.next(from, what) == expected);
      CHECK(Lifecycle::table.allows(from, what) == expected.has_value());
      found += expected.has_value() ? 1U : 0U;
    }
  }
  CHECK(found == legal.size());
  CHECK(std::size(Lifecycle::edges) == legal.size());
}
} // namespace

TEST_CASE("S25: every state and event of a block") {
  using s = block_state;
  using e = block_event;
  compare<standard_block_lifecycle>({
      {s::free, e::allocate, s::writing},        // a plan takes it
      {s::writing, e::commit, s::private_},      // its first positions count
      {s::writing, e::retire, s::retiring},      // rolled back after launch
      {s::private_, e::publish, s::published},   // full: matchable
      {s::private_, e::retire, s::retiring},     // last holder left
      {s::published, e::unpublish, s::private_}, // no longer found, holder stays
      {s::published, e::evict, s::retiring},     // no longer found, nobody holds it
      {s::retiring, e::reclaim, s::free},        // past the fence
  });
}

TEST_CASE("S25: the only way back to free passes the fence") {
  for (auto const& edge : standard_block_lifecycle::edges) {
    if (edge.to == block_state::free) {
      CHECK(edge.from == block_state::retiring);
      CHECK(edge.event == block_event::reclaim);
    }
    if (edge.from == block_state::free) { CHECK(edge.event == block_event::allocate); }
  }
}

TEST_CASE("S25: every state and event of a request") {
  using s = request_state;
  using e = request_event;
  auto legal = std::vector<edge<standard_request_lifecycle>>{
      {s::waiting, e::start, s::prefilling},    {s::waiting, e::decode, s::decoding},
      {s::prefilling, e::start, s::prefilling}, {s::prefilling, e::decode, s::decoding},
      {s::decoding, e::decode, s::decoding},    {s::prefilling, e::preempt, s::preempted},
      {s::decoding, e::preempt, s::preempted},  {s::preempted, e::resume, s::waiting},
  };
  for (auto const alive : {s::waiting, s::prefilling, s::decoding}) {
    legal.emplace_back(alive, e::finish, s::finished);
  }
  for (auto const alive : {s::waiting, s::prefilling, s::decoding, s::preempted}) {
    legal.emplace_back(alive, e::cancel, s::cancelled);
    legal.emplace_back(alive, e::time_out, s::timed_out);
    legal.emplace_back(alive, e::fail, s::failed);
  }
  for (auto const ended : {s::finished, s::cancelled, s::timed_out, s::failed}) {
    legal.emplace_back(ended, e::release, s::released);
  }
  compare<standard_request_lifecycle>(legal);
}

TEST_CASE("case 42: cancel and time-out are legal in every state of a living request and end in one release") {
  for (auto const alive :
       {request_state::waiting, request_state::prefilling, request_state::decoding, request_state::preempted}) {
    for (auto const end : {request_event::cancel, request_event::time_out}) {
      auto const ended = standard_request_lifecycle::table.next(alive, end);
      REQUIRE(ended.has_value());
      CHECK(standard_request_lifecycle::table.next(*ended, request_event::release) == request_state::released);
    }
  }
  for (std::size_t e = 0; e < static_cast<std::size_t>(request_event::count_); ++e) {
    CHECK_FALSE(standard_request_lifecycle::table.allows(request_state::released, static_cast<request_event>(e)));
  }
}

// block_lifecycle: an engine may add states.
namespace {
enum class more_state : std::uint8_t { free, writing, private_, published, retiring, parked, count_ };
enum class more_event : std::uint8_t { allocate, commit, publish, unpublish, evict, retire, reclaim, park, count_ };
struct more_lifecycle {
  using state = more_state;
  using event = more_event;
  static constexpr transition<state, event> edges[] = {{state::free, event::allocate, state::writing},
                                                       {state::private_, event::park, state::parked}};
  static constexpr transition_table<state, event> table{edges};
};
static_assert(block_lifecycle<standard_block_lifecycle>);
static_assert(block_lifecycle<more_lifecycle>);
static_assert(!block_lifecycle<int>);
static_assert(!block_lifecycle<standard_request_lifecycle>); // its states are others

struct without_state {
  using event = block_event;
  static constexpr auto& table = standard_block_lifecycle::table;
};
struct without_event {
  using state = block_state;
  static constexpr auto& table = standard_block_lifecycle::table;
};
struct without_table {
  using state = block_state;
  using event = block_event;
};
template <class Next, class Allows, bool Noexcept = true>
struct table_of {
  auto next(block_state, block_event) const noexcept(Noexcept) -> Next { return {}; }
  auto allows(block_state, block_event) const noexcept(Noexcept) -> Allows { return {}; }
};
template <class Table>
struct with_table {
  using state = block_state;
  using event = block_event;
  static constexpr Table table{};
};
struct without_allows {
  auto next(block_state, block_event) const noexcept -> std::optional<block_state> { return {}; }
};
struct without_next {
  auto allows(block_state, block_event) const noexcept -> bool { return false; }
};
// Each lacks the name it is called after.
enum class no_free : std::uint8_t { writing, private_, published, retiring, count_ };
enum class no_writing : std::uint8_t { free, private_, published, retiring, count_ };
enum class no_private : std::uint8_t { free, writing, published, retiring, count_ };
enum class no_published : std::uint8_t { free, writing, private_, retiring, count_ };
enum class no_retiring : std::uint8_t { free, writing, private_, published, count_ };
enum class no_state_count : std::uint8_t { free, writing, private_, published, retiring };
enum class no_allocate : std::uint8_t { commit, publish, unpublish, evict, retire, reclaim, count_ };
enum class no_commit : std::uint8_t { allocate, publish, unpublish, evict, retire, reclaim, count_ };
enum class no_publish : std::uint8_t { allocate, commit, unpublish, evict, retire, reclaim, count_ };
enum class no_unpublish : std::uint8_t { allocate, commit, publish, evict, retire, reclaim, count_ };
enum class no_evict : std::uint8_t { allocate, commit, publish, unpublish, retire, reclaim, count_ };
enum class no_retire : std::uint8_t { allocate, commit, publish, unpublish, evict, reclaim, count_ };
enum class no_reclaim : std::uint8_t { allocate, commit, publish, unpublish, evict, retire, count_ };
template <class State, class Event>
struct over {
  using state = State;
  using event = Event;
  struct table_type {
    auto next(State, Event) const noexcept -> std::optional<State> { return {}; }
    auto allows(State, Event) const noexcept -> bool { return false; }
  };
  static constexpr table_type table{};
};
static_assert(block_lifecycle<over<block_state, block_event>>);
template <class... States>
constexpr auto states_refused = (!block_lifecycle<over<States, block_event>> && ...);
template <class... Events>
constexpr auto events_refused = (!block_lifecycle<over<block_state, Events>> && ...);
static_assert(states_refused<no_free, no_writing, no_private, no_published, no_retiring, no_state_count>);
static_assert(events_refused<no_allocate, no_commit, no_publish, no_unpublish, no_evict, no_retire, no_reclaim>);
static_assert(block_lifecycle<with_table<table_of<std::optional<block_state>, bool>>>);
static_assert(!block_lifecycle<with_table<table_of<std::optional<block_state>, bool, false>>>);
static_assert(!block_lifecycle<with_table<table_of<block_state, bool>>>);
static_assert(!block_lifecycle<with_table<table_of<std::optional<block_state>, int>>>);
static_assert(!block_lifecycle<with_table<without_allows>>);
static_assert(!block_lifecycle<with_table<without_next>>);
static_assert(!block_lifecycle<without_state>);
static_assert(!block_lifecycle<without_event>);
static_assert(!block_lifecycle<without_table>);

// request_lifecycle: the same.
enum class own_request_state : std::uint8_t { waiting, over };
enum class own_request_event : std::uint8_t { start, decode, preempt, finish, cancel, time_out, release };
template <class State = own_request_state, class Event = own_request_event, class Next = std::optional<State>,
          bool Noexcept = true>
struct requests {
  using state = State;
  using event = Event;
  struct table_type {
    auto next(State, Event) const noexcept(Noexcept) -> Next { return {}; }
  };
  static constexpr table_type table{};
};
static_assert(request_lifecycle<standard_request_lifecycle>);
static_assert(request_lifecycle<requests<>>);
static_assert(!request_lifecycle<int>);
static_assert(!request_lifecycle<void>);
static_assert(!request_lifecycle<standard_block_lifecycle>);
static_assert(!request_lifecycle<requests<own_request_state, own_request_event, own_request_state>>);
static_assert(
    !request_lifecycle<requests<own_request_state, own_request_event, std::optional<own_request_state>, false>>);
enum class no_waiting : std::uint8_t { over };
enum class no_start : std::uint8_t { decode, preempt, finish, cancel, time_out, release };
enum class no_decode : std::uint8_t { start, preempt, finish, cancel, time_out, release };
enum class no_preempt : std::uint8_t { start, decode, finish, cancel, time_out, release };
enum class no_finish : std::uint8_t { start, decode, preempt, cancel, time_out, release };
enum class no_cancel : std::uint8_t { start, decode, preempt, finish, time_out, release };
enum class no_time_out : std::uint8_t { start, decode, preempt, finish, cancel, release };
enum class no_release : std::uint8_t { start, decode, preempt, finish, cancel, time_out };
template <class... Events>
constexpr auto request_events_refused = (!request_lifecycle<requests<own_request_state, Events>> && ...);
static_assert(!request_lifecycle<requests<no_waiting>>);
static_assert(request_events_refused<no_start, no_decode, no_preempt, no_finish, no_cancel, no_time_out, no_release>);
struct requests_without_table {
  using state = own_request_state;
  using event = own_request_event;
};
static_assert(!request_lifecycle<requests_without_table>);
} // namespace
