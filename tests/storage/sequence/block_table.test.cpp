// SPDX-License-Identifier: Apache-2.0
// The table of one sequence in one group: which slot a position has, and what its figures mean.
#include <quire/core/types.hpp>
#include <quire/sequence/block_geometry.hpp>
#include <quire/sequence/block_table.hpp>

#include "support/catch_compat.hpp"
#include "support/counting_allocator.hpp"
#include "support/throwing_contract.hpp"

#include <cstdint>

namespace {
using namespace quire;
using quire_test::contract_violation;

auto table_7_2_9() -> block_table {
  auto table = block_table{};
  for (auto const block : {7U, 2U, 9U}) { table.blocks.push_back(block_id{block}); }
  return table;
}
} // namespace

TEST_CASE("S14: position 6 of the worked table lies in block 2 at offset 2, position 9 in block 9 at offset 1") {
  auto const geometry = block_geometry{token_count{4}};
  auto const table = table_7_2_9();
  CHECK(table.blocks[geometry.index(6)] == block_id{2});
  CHECK(geometry.offset(6) == 2);
  CHECK(table.blocks[geometry.index(9)] == block_id{9});
  CHECK(geometry.offset(9) == 1);
  CHECK(table.slot(geometry, token_pos{6}) == 2 * 4 + 2);
  CHECK(table.slot(geometry, token_pos{9}) == 9 * 4 + 1);
  CHECK(table.slot(geometry, token_pos{0}) == 7 * 4);
}

TEST_CASE("S14: a slot of a large pool does not overflow 32 bits") {
  auto const geometry = block_geometry{token_count{256}};
  auto table = block_table{};
  table.blocks.push_back(block_id{0x7fff'fffeU});
  CHECK(table.slot(geometry, token_pos{255}) == std::int64_t{0x7fff'fffe} * 256 + 255);
}

TEST_CASE("S14: a position that the table does not cover, or whose block is released, is a broken contract") {
  auto const geometry = block_geometry{token_count{4}};
  auto table = table_7_2_9();
  CHECK_NOTHROW(table.slot(geometry, token_pos{11}));
  CHECK_THROWS_AS(table.slot(geometry, token_pos{12}), contract_violation);
  table.blocks[1] = block_id::none(); // a window has moved on
  CHECK_NOTHROW(table.slot(geometry, token_pos{3}));
  CHECK_THROWS_AS(table.slot(geometry, token_pos{4}), contract_violation);
  CHECK_THROWS_AS(table.slot(geometry, token_pos{7}), contract_violation);
  CHECK_NOTHROW(table.slot(geometry, token_pos{8}));
  CHECK_THROWS_AS(block_table{}.slot(geometry, token_pos{0}), contract_violation);
}

TEST_CASE("block_table: released blocks count in its size") {
  auto table = table_7_2_9();
  CHECK(table.size() == 3);
  table.blocks[0] = table.blocks[1] = block_id::none();
  table.released_end = 2;
  CHECK(table.size() == 3);
  CHECK(block_table{}.size() == 0);
}

TEST_CASE("S22: a table skips writes up to what its group has stored, whatever others have") {
  auto table = block_table{};
  CHECK(table.skips(0) == 0);
  table.skip_until = 8;
  CHECK(table.skips(5) == 3);
  CHECK(table.skips(7) == 1);
  CHECK(table.skips(8) == 0);
  CHECK(table.skips(9) == 0); // and not a negative number
}

TEST_CASE("block_table: reserved room is filled without an allocation") {
  auto table = block_table{};
  table.blocks.reserve(100);
  CHECK(quire_test::allocations_of([&] {
          for (std::uint32_t i = 0; i < 100; ++i) { table.blocks.push_back(block_id{i}); }
          table.blocks.resize(50);
          table.blocks.push_back(block_id{7});
        }) == 0);
  CHECK(table.size() == 51);
  CHECK(table.blocks[50] == block_id{7});
}
