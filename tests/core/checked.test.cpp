// SPDX-License-Identifier: Apache-2.0
#include <quire/core/checked.hpp>

#include <quire/core/config_error.hpp>

#include "support/catch_compat.hpp"

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace {
constexpr auto most = std::numeric_limits<std::uint64_t>::max();
} // namespace

TEST_CASE("case 115: a product beyond 32 bits is exact") {
  // 64000 blocks of 32 x 16 x 16 x 8 elements
  REQUIRE(quire::checked_mul(64'000, std::uint64_t{32} * 16 * 16 * 8, "elements") == 4'194'304'000);
}

TEST_CASE("case 116: an offset beyond 32 bits is exact") {
  REQUIRE(quire::checked_mul(2066, 1'039'680, "offset") == 2'147'978'880);
}

TEST_CASE("checked_mul: the last product that fits, and the first that does not") {
  REQUIRE(quire::checked_mul(most, 1, "x") == most);
  REQUIRE(quire::checked_mul(most / 3, 3, "x") == most);
  REQUIRE(quire::checked_mul(0, most, "x") == 0);
  REQUIRE_THROWS_AS(quire::checked_mul(most / 3 + 1, 3, "x"), quire::config_error);
  REQUIRE_THROWS_AS(quire::checked_mul(std::uint64_t{1} << 32, std::uint64_t{1} << 32, "x"), quire::config_error);
}

TEST_CASE("checked_add: the last sum that fits, and the first that does not") {
  REQUIRE(quire::checked_add(most - 1, 1, "x") == most);
  REQUIRE(quire::checked_add(0, 0, "x") == 0);
  REQUIRE_THROWS_AS(quire::checked_add(most, 1, "x"), quire::config_error);
}

TEST_CASE("checked maths: the message names what was computed, and the operands") {
  using quire_test::ContainsSubstring;
  REQUIRE_THROWS_WITH(quire::checked_mul(most, 2, "bytes of the pool"),
                      ContainsSubstring("bytes of the pool") && ContainsSubstring("18446744073709551615 * 2"));
  REQUIRE_THROWS_WITH(quire::checked_add(most, 7, "bytes of a plane"),
                      ContainsSubstring("bytes of a plane") && ContainsSubstring("18446744073709551615 + 7"));
}

TEST_CASE("config_error: caught as an invalid argument") {
  static_assert(std::is_base_of_v<std::invalid_argument, quire::config_error>);
  REQUIRE_THROWS_AS(quire::checked_add(most, 1, "x"), std::invalid_argument);
}

TEST_CASE("ceil_div: rounds up, without overflow at the end of the range") {
  REQUIRE(quire::ceil_div(0u, 16u) == 0);
  REQUIRE(quire::ceil_div(1u, 16u) == 1);
  REQUIRE(quire::ceil_div(16u, 16u) == 1);
  REQUIRE(quire::ceil_div(17u, 16u) == 2);
  REQUIRE(quire::ceil_div(most, std::uint64_t{1}) == most);
  REQUIRE(quire::ceil_div(most, std::uint64_t{2}) == most / 2 + 1);
  REQUIRE(quire::ceil_div(std::uint8_t{255}, std::uint8_t{2}) == 128);
}

TEST_CASE("ceil_div: agrees with the definition for every pair of small numbers") {
  for (auto b = 1u; b <= 40; ++b) {
    for (auto a = 0u; a <= 200; ++a) {
      auto const groups = quire::ceil_div(a, b);
      INFO(a << " / " << b);
      REQUIRE((groups * b >= a && (groups == 0 || (groups - 1) * b < a)));
      REQUIRE(quire::round_up(a, b) == groups * b);
    }
  }
}

TEST_CASE("round_up: a multiple stays, all else goes to the next") {
  REQUIRE(quire::round_up(0u, 16u) == 0);
  REQUIRE(quire::round_up(32u, 16u) == 32);
  REQUIRE(quire::round_up(33u, 16u) == 48);
}

TEST_CASE("checked maths: usable in constant expressions") {
  static_assert(quire::checked_mul(6, 7, "x") == 42 && quire::checked_add(6, 7, "x") == 13);
  static_assert(quire::ceil_div(17u, 16u) == 2 && quire::round_up(17u, 16u) == 32);
  SUCCEED();
}
