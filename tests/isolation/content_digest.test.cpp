// SPDX-License-Identifier: Apache-2.0
#include <quire/identity/content_digest.hpp>
#include <quire/identity/identity_digest.hpp>

#include "isolation/identity_fixtures.hpp"
#include "support/catch_compat.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

using quire::content_digest;

// S35: no digest comes from a name, a number or nothing.
static_assert(!std::is_default_constructible_v<content_digest>);
static_assert(!std::is_constructible_v<content_digest, char const*>);
static_assert(!std::is_constructible_v<content_digest, std::string>);
static_assert(!std::is_constructible_v<content_digest, std::string_view>);
static_assert(!std::is_constructible_v<content_digest, std::uint64_t>);
static_assert(!std::is_constructible_v<content_digest, std::array<std::byte, 16>>);
static_assert(!std::is_convertible_v<std::array<std::byte, 32>, content_digest>);

// Roles are apart: a digest gets its role by name, and no role turns into another.
static_assert(!std::is_convertible_v<content_digest, quire::weights_digest>);
static_assert(!std::is_constructible_v<quire::weights_digest, quire::structure_digest>);
static_assert(!std::is_constructible_v<quire::tokenizer_digest, quire::adapter_digest>);
static_assert(!std::is_constructible_v<quire::weights_digest, std::string_view>);
static_assert(!std::is_default_constructible_v<quire::weights_digest>);
static_assert(!std::is_default_constructible_v<quire::external_conditions>);
static_assert(!std::is_constructible_v<quire::external_conditions, quire::prompt_template_digest>);

TEST_CASE("S35: a digest keeps all of its bytes") {
  auto const base = quire_test::some_digest(1);
  CHECK(quire_test::to_hex(base.bytes()) == "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20");
  for (std::size_t i = 0; i < content_digest::size; ++i) {
    auto value = std::array<std::byte, content_digest::size>{};
    std::copy(base.bytes().begin(), base.bytes().end(), value.begin());
    CHECK(content_digest{value} == base);
    value[i] ^= std::byte{1};
    CHECK_FALSE(content_digest{value} == base);
  }
}

TEST_CASE("S35: a digest that was never computed is refused") {
  CHECK_THROWS_AS((content_digest{std::array<std::byte, 32>{}}), quire::config_error);
  auto last = std::array<std::byte, 32>{};
  last.back() = std::byte{1};
  CHECK_NOTHROW(content_digest{last});
}

TEST_CASE("S35: a name, a branch, a path or a short revision is no digest") {
  auto const printed = std::string{"0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20"};
  REQUIRE(content_digest::from_hex(printed).has_value());
  CHECK(*content_digest::from_hex(printed) == quire_test::some_digest(1));
  CHECK(*content_digest::from_hex("0102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F20") ==
        quire_test::some_digest(1));
  CHECK(quire_test::to_hex(content_digest::from_hex(std::string(63, '0') + "9")->bytes()) ==
        std::string(63, '0') + "9");

  for (auto const* text : {"", "main", "llama-3-8b", "weights/model.bin", "a83cd38c5b2e2e7f6a8ba9cf0f6bb6d2e1a4e6c3"}) {
    CHECK_FALSE(content_digest::from_hex(text).has_value());
  }
  CHECK_FALSE(content_digest::from_hex(std::string(64, '0')).has_value());
  CHECK_FALSE(content_digest::from_hex(printed + "0").has_value());
  CHECK_FALSE(content_digest::from_hex(std::string_view{printed}.substr(1)).has_value());
  for (auto const bad : {'g', 'G', '/', ':', '@', '`', ' ', '\0', '\xff'}) {
    for (auto const at : {0U, 31U, 63U}) {
      auto text = printed;
      text[at] = bad;
      CHECK_FALSE(content_digest::from_hex(text).has_value());
    }
  }
}
