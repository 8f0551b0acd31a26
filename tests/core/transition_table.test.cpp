// SPDX-License-Identifier: Apache-2.0
#include <quire/core/transition_table.hpp>

#include "support/catch_compat.hpp"

namespace {

enum class lamp { off, on, broken, count_ };
enum class action { press, drop, count_ };

constexpr auto table = quire::transition_table<lamp, action>{{
    {lamp::off, action::press, lamp::on},
    {lamp::on, action::press, lamp::off},
    {lamp::off, action::drop, lamp::broken},
    {lamp::on, action::drop, lamp::broken},
}};

} // namespace

TEST_CASE("S25: a transition table permits its edges") {
  static_assert(table.next(lamp::off, action::press) == lamp::on);
  REQUIRE(table.next(lamp::on, action::press) == lamp::off);
  REQUIRE(table.next(lamp::on, action::drop) == lamp::broken);
  REQUIRE(table.allows(lamp::off, action::drop));
}

TEST_CASE("S25: a transition table refuses whatever has no edge") {
  REQUIRE_FALSE(table.next(lamp::broken, action::press));
  REQUIRE_FALSE(table.next(lamp::broken, action::drop));
  REQUIRE_FALSE(table.allows(lamp::broken, action::press));
}
