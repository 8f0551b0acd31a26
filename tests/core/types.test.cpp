// SPDX-License-Identifier: Apache-2.0
#include <quire/core/types.hpp>

#include "support/catch_compat.hpp"

#include <cstdint>
#include <type_traits>

namespace {

template <class A, class B>
concept interchangeable = std::is_convertible_v<A, B> || std::is_constructible_v<A, B>;

// No name of one kind of thing names another kind.
static_assert(!interchangeable<quire::block_id, quire::row_id>);
static_assert(!interchangeable<quire::block_id, quire::timeline_id>);
static_assert(!interchangeable<quire::block_id, quire::group_id>);
static_assert(!interchangeable<quire::row_id, quire::group_id>);
// No amount of one unit is an amount of another.
static_assert(!interchangeable<quire::block_count, quire::token_count>);
static_assert(!interchangeable<quire::token_count, quire::byte_count>);
static_assert(!interchangeable<quire::token_pos, quire::token_count>);
static_assert(!interchangeable<quire::token_pos, quire::ticket>);

// Widths that cross to devices: block tables are int32, sizes are 64-bit.
static_assert(sizeof(quire::block_id) == 4 && sizeof(quire::token_pos) == 4 && sizeof(quire::byte_count) == 8);
static_assert(sizeof(quire::ticket) == 8);
static_assert(std::is_same_v<quire::token_id, std::int32_t>);

} // namespace

TEST_CASE("types: a distance between token positions is a count of tokens") {
  REQUIRE(quire::token_pos{48} - quire::token_pos{16} == quire::token_count{32});
}

TEST_CASE("types: ticket 0 comes before every other") {
  REQUIRE(quire::ticket{} == quire::ticket{0});
  REQUIRE(quire::ticket{} < quire::ticket{1});
}

TEST_CASE("types: bytes are counted beyond 32 bits") {
  auto const gibibyte = quire::byte_count{std::uint64_t{1} << 30};
  REQUIRE((gibibyte + gibibyte + gibibyte + gibibyte + gibibyte).value() == 5'368'709'120);
}
