// SPDX-License-Identifier: Apache-2.0
#include <quire/view/action.hpp>

#include "support/catch_compat.hpp"

#include <cstring>
#include <set>
#include <string>
#include <type_traits>

namespace {
using namespace quire;

constexpr auto group = group_id{1};
constexpr auto a = block_id{2};
constexpr auto b = block_id{9};
constexpr auto outside = block_place{tier_id{1}, block_id{9}};
constexpr auto three = token_count{3};
} // namespace

TEST_CASE("S18: a named action sets the fields of its kind and no other") {
  constexpr auto copy = action::copy_block(group, a, b, three);
  CHECK(copy == action{.kind = action_kind::copy, .group = group, .source = a, .target = b, .tokens = three});
  CHECK(action::move_block(group, a, b) == action{.kind = action_kind::move, .group = group, .source = a, .target = b});
  CHECK(action::scrub_block(group, b) == action{.kind = action_kind::scrub, .group = group, .target = b});
  CHECK(action::store_block(group, a, outside, three) ==
        action{.kind = action_kind::store, .group = group, .source = a, .target = outside, .tokens = three});
  CHECK(action::load_block(group, outside, b, three) ==
        action{.kind = action_kind::load, .group = group, .source = outside, .target = b, .tokens = three});
  auto const wait = action::wait_for(timeline_id{3}, ticket{17});
  CHECK(wait == action{.kind = action_kind::wait, .timeline = timeline_id{3}, .until = ticket{17}});
  CHECK_FALSE(wait.source);
  CHECK_FALSE(wait.target);
  CHECK_FALSE(wait.group);
  CHECK_FALSE(action::scrub_block(group, b).source);
}

TEST_CASE("S18: a place is a block on the device, unless a tier is named") {
  CHECK(block_place{b} == block_place{device_tier, b});
  CHECK(block_place{b} != outside); // the same number in another memory
  CHECK(outside);
  CHECK_FALSE(block_place{});
}

TEST_CASE("S18: two actions are equal only if every field is") {
  auto const base = action::copy_block(group, a, b, three);
  CHECK(base != action::copy_block(group_id{2}, a, b, three));
  CHECK(base != action::copy_block(group, b, a, three));
  CHECK(base != action::copy_block(group, a, b, token_count{2}));
  CHECK(base != action::move_block(group, a, b));
  CHECK(action::wait_for(timeline_id{3}, ticket{17}) != action::wait_for(timeline_id{4}, ticket{17}));
  CHECK(action::wait_for(timeline_id{3}, ticket{17}) != action::wait_for(timeline_id{3}, ticket{18}));
}

TEST_CASE("S18: an action crosses as bytes") {
  STATIC_REQUIRE(std::is_trivially_copyable_v<action>);
  auto const sent = action::copy_block(group, a, b, three);
  unsigned char wire[sizeof(action)];
  std::memcpy(wire, &sent, sizeof sent);
  auto received = action{};
  std::memcpy(&received, wire, sizeof received);
  CHECK(received == sent);
}

TEST_CASE("S18: every kind of action has a name of its own") {
  auto names = std::set<std::string>{};
  for (auto const kind : {action_kind::wait, action_kind::copy, action_kind::move, action_kind::scrub,
                          action_kind::store, action_kind::load}) {
    names.emplace(to_string(kind));
  }
  CHECK(names.size() == 6);
  CHECK(names.count("unknown action") == 0);
}
