// SPDX-License-Identifier: Apache-2.0
// Positions to blocks and back, against the definitions and a count by hand.
#include <quire/core/config_error.hpp>
#include <quire/core/types.hpp>
#include <quire/sequence/block_geometry.hpp>
#include <quire/sequence/page_table.hpp>

#include "support/catch_compat.hpp"
#include "support/counting_allocator.hpp"
#include "support/throwing_contract.hpp"

#include <cstdint>
#include <limits>
#include <vector>

namespace {
using namespace quire;

auto table_7_2_9() -> page_table {
  auto table = page_table{};
  for (auto const block : {7U, 2U, 9U}) { table.push_back(block_id{block}); }
  return table;
}
} // namespace

TEST_CASE("S14: position 6 of the worked table lies in block 2 at offset 2, position 9 in block 9 at offset 1") {
  auto const geometry = block_geometry{token_count{4}};
  auto const table = table_7_2_9();
  CHECK(table[geometry.index(6)] == block_id{2});
  CHECK(geometry.offset(6) == 2);
  CHECK(table[geometry.index(9)] == block_id{9});
  CHECK(geometry.offset(9) == 1);
  CHECK(table.slot(geometry, token_pos{6}) == 2 * 4 + 2);
  CHECK(table.slot(geometry, token_pos{9}) == 9 * 4 + 1);
  CHECK(table.slot(geometry, token_pos{0}) == 7 * 4);
}

TEST_CASE("S14: a slot of a large pool does not overflow 32 bits") {
  auto const geometry = block_geometry{token_count{256}};
  auto table = page_table{};
  table.push_back(block_id{0x7fff'fffeU});
  CHECK(table.slot(geometry, token_pos{255}) == std::int64_t{0x7fff'fffe} * 256 + 255);
}

TEST_CASE("S14: a position that the table does not cover is a broken contract") {
  auto const geometry = block_geometry{token_count{4}};
  auto const table = table_7_2_9();
  CHECK_NOTHROW(table.slot(geometry, token_pos{11}));
  CHECK_THROWS_AS(table.slot(geometry, token_pos{12}), quire_test::contract_violation);
}

TEST_CASE("S14: index and offset are division and remainder for every block size") {
  for (std::uint32_t unit = 1; unit <= 70; ++unit) {
    auto const geometry = block_geometry{token_count{unit}};
    CHECK(geometry.block_tokens() == unit);
    std::uint32_t block = 0;
    std::uint32_t offset = 0;
    auto wrong = 0;
    for (std::uint32_t t = 0; t < 1000; ++t) { // counted, not divided
      wrong += geometry.index(t) != block || geometry.offset(t) != offset;
      wrong += geometry.blocks(t) != block + (offset > 0 ? 1 : 0);
      if (++offset == unit) {
        offset = 0;
        ++block;
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("S16: n tokens take n / p_b blocks rounded up, and waste less than one block") {
  auto const four = block_geometry{token_count{4}};
  CHECK(four.blocks(0) == 0);
  CHECK(four.blocks(1) == 1);
  CHECK(four.blocks(4) == 1);
  CHECK(four.blocks(5) == 2);
  CHECK(four.blocks(10) == 3);
  CHECK(four.blocks(std::numeric_limits<std::uint32_t>::max()) == 1U << 30U);
  CHECK(block_geometry{token_count{16}}.blocks(8192) == 512);
}

TEST_CASE("block_geometry: a block of 0 tokens is refused") {
  CHECK_THROWS_AS(block_geometry{token_count{0}}, config_error);
}

TEST_CASE("page_table: reserved room is filled without an allocation") {
  auto table = page_table{};
  table.reserve(100);
  CHECK(table.capacity() >= 100);
  CHECK(quire_test::allocations_of([&] {
          for (std::uint32_t i = 0; i < 100; ++i) { table.push_back(block_id{i}); }
          table.shrink(50);
          table.push_back(block_id{7});
        }) == 0);
  CHECK(table.size() == 51);
  CHECK(table[50] == block_id{7});
}

TEST_CASE("page_table: remap, assign and open") {
  auto table = table_7_2_9();
  table.remap(1, block_id{5});
  CHECK(table[1] == block_id{5});
  CHECK(table[0] == block_id{7});
  auto const others = std::vector{block_id{1}, block_id{3}};
  table.assign(others);
  CHECK(table.size() == 2);
  CHECK(table.blocks()[1] == block_id{3});
  auto const opened = table.open(4);
  CHECK(opened.size() == 4);
  CHECK(table.size() == 4);
  CHECK_FALSE(static_cast<bool>(table[3]));
}
