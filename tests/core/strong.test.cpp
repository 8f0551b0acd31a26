// SPDX-License-Identifier: Apache-2.0
#include <quire/core/strong.hpp>

#include "support/catch_compat.hpp"

#include <cstdint>
#include <type_traits>

namespace {

struct page_tag;
struct sheet_tag;
using page_id = quire::strong_id<page_tag, std::uint16_t>;
using sheet_id = quire::strong_id<sheet_tag, std::uint16_t>;
using page_count = quire::strong_count<page_tag, std::uint16_t>;
using sheet_count = quire::strong_count<sheet_tag, std::uint16_t>;
using page_pos = quire::strong_position<page_count>;

template <class A, class B>
concept addable = requires(A a, B b) { a + b; };
template <class A, class B>
concept subtractable = requires(A a, B b) { a - b; };
template <class A, class B>
concept comparable = requires(A a, B b) { a == b; };
template <class A, class B>
concept ordered_with = requires(A a, B b) { a < b; };

// Plain integers at run time.
static_assert(sizeof(page_id) == 2 && sizeof(page_count) == 2 && sizeof(page_pos) == 2);
static_assert(std::is_trivially_copyable_v<page_id> && std::is_trivially_copyable_v<page_pos>);

// No way in from an integer, no way out to one, and no way across.
static_assert(!std::is_convertible_v<std::uint16_t, page_id> && std::is_constructible_v<page_id, std::uint16_t>);
static_assert(!std::is_convertible_v<std::uint16_t, page_count> && !std::is_convertible_v<std::uint16_t, page_pos>);
static_assert(!std::is_convertible_v<page_id, std::uint16_t> && !std::is_constructible_v<std::uint16_t, page_count>);
static_assert(!std::is_constructible_v<page_id, sheet_id> && !std::is_constructible_v<page_count, sheet_count>);
static_assert(!std::is_constructible_v<page_pos, page_count> && !std::is_constructible_v<page_count, page_pos>);
static_assert(!std::is_convertible_v<page_id, bool>);

// Ids are compared, never added.
static_assert(comparable<page_id, page_id> && ordered_with<page_id, page_id>);
static_assert(!comparable<page_id, sheet_id> && !ordered_with<page_id, sheet_id>);
static_assert(!addable<page_id, page_id> && !addable<page_id, page_count> && !subtractable<page_id, page_id>);

// Counts of one unit add; of two units they do not.
static_assert(addable<page_count, page_count> && !addable<page_count, sheet_count> && !addable<page_count, int>);
static_assert(!comparable<page_count, sheet_count> && !comparable<page_count, int>);

// Positions: position + count, position - position; two positions do not add, and the unit must be right.
static_assert(std::is_same_v<decltype(page_pos{} + page_count{}), page_pos>);
static_assert(std::is_same_v<decltype(page_pos{} - page_pos{}), page_count>);
static_assert(!addable<page_pos, page_pos> && !addable<page_pos, sheet_count> && !addable<page_pos, int>);

} // namespace

TEST_CASE("strong_id: the default names nothing") {
  REQUIRE(page_id{} == page_id::none());
  REQUIRE_FALSE(page_id{});
  REQUIRE(page_id::none().value() == 0xFFFF);
}

TEST_CASE("strong_id: every number but the last names something") {
  REQUIRE(page_id{0});
  REQUIRE(page_id{0xFFFE});
  REQUIRE_FALSE(page_id{0xFFFF});
  REQUIRE(page_id{7}.value() == 7);
  REQUIRE(page_id{3} < page_id{4});
  REQUIRE(page_id{4} != page_id{3});
}

TEST_CASE("strong_count: starts at zero, adds and subtracts in its width") {
  auto n = page_count{};
  REQUIRE(n.value() == 0);
  n += page_count{5};
  n -= page_count{2};
  REQUIRE(n == page_count{3});
  REQUIRE(page_count{40'000} + page_count{25'535} == page_count{65'535});
  REQUIRE(page_count{65'535} - page_count{65'535} == page_count{});
  REQUIRE(page_count{2} < page_count{3});
}

TEST_CASE("strong_position: distance is the inverse of moving") {
  auto const p = page_pos{100};
  auto const q = p + page_count{28};
  REQUIRE(q == page_pos{128});
  REQUIRE(q - p == page_count{28});
  REQUIRE(p - p == page_count{});
  REQUIRE(page_pos{}.value() == 0);
  REQUIRE(p < q);
}

TEST_CASE("strong types: usable in constant expressions") {
  static_assert(page_count{2} + page_count{3} == page_count{5});
  static_assert((page_pos{2} + page_count{3}).value() == 5);
  static_assert(page_id{2} != page_id::none());
  SUCCEED();
}
