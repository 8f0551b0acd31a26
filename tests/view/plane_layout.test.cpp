// SPDX-License-Identifier: Apache-2.0
#include <quire/view/plane_layout.hpp>

#include "support/catch_compat.hpp"
#include "support/throwing_contract.hpp"

#include <cstdint>
#include <limits>
#include <string>

namespace {
using namespace quire;

auto shape(std::uint32_t blocks, std::uint32_t tokens, std::uint32_t heads, std::uint32_t dim) -> layout_shape {
  return {.role = layout_role::key,
          .blocks = block_count{blocks},
          .block_tokens = token_count{tokens},
          .heads = heads,
          .dim = dim,
          .element_bits = 16};
}
auto offset(plane_layout const& l, std::uint32_t block, std::uint32_t token, std::uint32_t head, std::uint32_t dim)
    -> std::uint64_t {
  return l.offset({.block = block_id{block}, .token = token_count{token}, .head = head, .dim = dim});
}
auto text_of(plane_layout const& l, element_index width) -> std::string {
  try {
    l.require_index(width);
  } catch (config_error const& e) { return e.what(); }
  return {};
}
} // namespace

// Walking the axes from the outermost to the innermost has to meet elements 0, 1, 2, … in every order.
TEST_CASE("S14: every layout numbers its elements in the order of its axes (case 121)") {
  constexpr auto blocks = 3U;
  for (auto const tokens : {1U, 2U, 3U, 5U, 16U, 17U, 64U}) {
    for (auto const heads : {1U, 3U}) {
      for (auto const dim : {2U, 6U}) {
        auto const s = shape(blocks, tokens, heads, dim);
        auto ok = true;
        auto next = std::uint64_t{0};
        auto const nhd = plane_layout::nhd(s);
        for (auto b = 0U; b < blocks; ++b) {
          for (auto t = 0U; t < tokens; ++t) {
            for (auto h = 0U; h < heads; ++h) {
              for (auto d = 0U; d < dim; ++d) { ok = ok && offset(nhd, b, t, h, d) == next++; }
            }
          }
        }
        REQUIRE(ok);
        REQUIRE(nhd.last_offset() == next - 1);
        REQUIRE(nhd.block_elements() * blocks == next);

        next = 0;
        auto const hnd = plane_layout::hnd(s);
        for (auto b = 0U; b < blocks; ++b) {
          for (auto h = 0U; h < heads; ++h) {
            for (auto t = 0U; t < tokens; ++t) {
              for (auto d = 0U; d < dim; ++d) { ok = ok && offset(hnd, b, t, h, d) == next++; }
            }
          }
        }
        REQUIRE(ok);
        REQUIRE(hnd.last_offset() == next - 1);

        constexpr auto x = 2U;
        next = 0;
        auto const split = plane_layout::split(s, x);
        for (auto b = 0U; b < blocks; ++b) {
          for (auto h = 0U; h < heads; ++h) {
            for (auto v = 0U; v < dim / x; ++v) {
              for (auto t = 0U; t < tokens; ++t) {
                for (auto i = 0U; i < x; ++i) { ok = ok && offset(split, b, t, h, v * x + i) == next++; }
              }
            }
          }
        }
        REQUIRE(ok);
        REQUIRE(split.last_offset() == next - 1);

        next = 0;
        auto const transposed = plane_layout::transposed(s);
        for (auto b = 0U; b < blocks; ++b) {
          for (auto h = 0U; h < heads; ++h) {
            for (auto d = 0U; d < dim; ++d) {
              for (auto t = 0U; t < tokens; ++t) { ok = ok && offset(transposed, b, t, h, d) == next++; }
            }
          }
        }
        REQUIRE(ok);
        REQUIRE(transposed.last_offset() == next - 1);
      }
    }
  }
}

TEST_CASE("S14: an offset is a constant where its inputs are") {
  constexpr auto layout = plane_layout::hnd(
      {.role = layout_role::value, .blocks = block_count{10}, .block_tokens = token_count{16}, .heads = 8, .dim = 128});
  STATIC_REQUIRE(layout.offset({.block = block_id{2}, .token = token_count{3}, .head = 1, .dim = 5}) ==
                 2 * 16384 + 1 * 2048 + 3 * 128 + 5);
  STATIC_REQUIRE(layout.last_offset() == 10 * 16384 - 1);
}

TEST_CASE("S14: coordinates outside a layout are broken contracts") {
  auto const layout = plane_layout::nhd(shape(2, 4, 3, 8));
  CHECK_NOTHROW(offset(layout, 1, 3, 2, 7));
  CHECK_THROWS_AS(offset(layout, 2, 0, 0, 0), quire_test::contract_violation);
  CHECK_THROWS_AS(offset(layout, 0, 4, 0, 0), quire_test::contract_violation);
  CHECK_THROWS_AS(offset(layout, 0, 0, 3, 0), quire_test::contract_violation);
  CHECK_THROWS_AS(offset(layout, 0, 0, 0, 8), quire_test::contract_violation);
}

TEST_CASE("S14: impossible layouts are refused by name") {
  CHECK_THROWS_AS(plane_layout::nhd(shape(0, 4, 3, 8)), config_error);
  CHECK_THROWS_AS(plane_layout::hnd(shape(2, 0, 3, 8)), config_error);
  CHECK_THROWS_AS(plane_layout::nhd(shape(2, 4, 0, 8)), config_error);
  CHECK_THROWS_AS(plane_layout::transposed(shape(2, 4, 3, 0)), config_error);
  CHECK_THROWS_WITH(plane_layout::split(shape(2, 4, 3, 12), 8),
                    quire_test::ContainsSubstring("8") && quire_test::ContainsSubstring("12"));
  CHECK_THROWS_AS(plane_layout::split(shape(2, 4, 3, 12), 0), config_error);
  constexpr auto most = std::numeric_limits<std::uint32_t>::max();
  CHECK_THROWS_AS(plane_layout::nhd(shape(most, most, 2, 2)), config_error); // 64 bits passed
  CHECK_NOTHROW(plane_layout::hnd(shape(1U << 31, 1U << 31, 2, 1))); // 2^63 elements: the last index is 2^63 - 1
  CHECK_THROWS_AS(plane_layout::hnd(shape(1U << 31, 1U << 31, 3, 1)), config_error);
}

TEST_CASE("S14: offsets beyond 32 bits are exact, and refused for a 32-bit device (case 115)") {
  // 64000 blocks of [32, 16, 16, 8]: heads, dim / x, p_b, x
  auto const layout = plane_layout::split(shape(64000, 16, 32, 128), 8);
  CHECK(layout.last_offset() + 1 == 4'194'304'000ULL);
  CHECK(offset(layout, 63999, 15, 31, 127) == 4'194'303'999ULL);
  CHECK_NOTHROW(layout.require_index(element_index::signed_64));
  CHECK_NOTHROW(layout.require_index(element_index::unsigned_32)); // 4 194 303 999 < 2^32
  auto const text = text_of(layout, element_index::signed_32);
  CHECK_THAT(text, quire_test::ContainsSubstring("key"));
  CHECK_THAT(text, quire_test::ContainsSubstring("block 32768 "));
  CHECK_THAT(text, quire_test::ContainsSubstring("signed 32-bit"));
  CHECK(layout.addressable_blocks(element_index::signed_32) == block_count{32768}); // 32768 · 65536 = 2^31
  CHECK(layout.addressable_blocks(element_index::signed_64) == block_count{64000});
}

TEST_CASE("S14: the largest block times its stride is checked when a layout is chosen (case 116)") {
  auto layout = plane_layout::nhd(shape(4000, 16, 2, 32490)); // block stride 16 · 2 · 32490 = 1 039 680
  REQUIRE(layout.block_stride == 1'039'680);
  CHECK(offset(layout, 2066, 0, 0, 0) == 2'147'978'880ULL); // as an int: -2 146 988 416
  CHECK(layout.addressable_blocks(element_index::signed_32) == block_count{2065});
  auto const text = text_of(layout, element_index::signed_32);
  CHECK_THAT(text, quire_test::ContainsSubstring("block 2065 "));
  CHECK_THAT(text, quire_test::ContainsSubstring("at most 2065 blocks"));
  auto const exact = plane_layout::nhd(shape(2065, 16, 2, 32490));
  CHECK_NOTHROW(exact.require_index(element_index::signed_32));
  CHECK_THROWS_AS(plane_layout::nhd(shape(2066, 16, 2, 32490)).require_index(element_index::signed_32), config_error);
  SECTION("a plane whose first block does not fit") {
    layout.base = 3'000'000'000ULL;
    CHECK(layout.addressable_blocks(element_index::signed_32) == block_count{0});
    CHECK_THROWS_AS(layout.require_index(element_index::signed_32), config_error);
  }
}
