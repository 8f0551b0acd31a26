// SPDX-License-Identifier: Apache-2.0
#include <quire/core/expected.hpp>

#include <quire/core/errc.hpp>

#include "support/catch_compat.hpp"

#include <memory>
#include <tl/expected.hpp>
#include <type_traits>
#include <utility>

namespace {

// One type in every language mode: a program that mixes C++20 and C++23 units shares it.
static_assert(std::is_same_v<quire::expected<int>, tl::expected<int, quire::errc>>);
static_assert(std::is_same_v<quire::expected<int, char>, tl::expected<int, char>>);

auto half(int n) -> quire::expected<int> {
  if (n % 2 != 0) { return quire::refuse(quire::errc::out_of_range); }
  return n / 2;
}

} // namespace

TEST_CASE("expected: carries the value or the reason") {
  REQUIRE(half(4).value() == 2);
  REQUIRE_FALSE(half(3));
  REQUIRE(half(3).error() == quire::errc::out_of_range);
}

TEST_CASE("expected: void and move-only values") {
  auto const nothing = quire::expected<void>{};
  REQUIRE(nothing);
  auto owned = quire::expected<std::unique_ptr<int>>{std::make_unique<int>(7)};
  auto const taken = std::move(owned).value();
  REQUIRE(*taken == 7);
}
