// SPDX-License-Identifier: Apache-2.0
#include <quire/view/batch_view.hpp>
#include <quire/view/mirror.hpp>
#include <quire/view/validate.hpp>

#include "support/catch_compat.hpp"
#include "support/throwing_contract.hpp"
#include "view/view_fixture.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace {
using namespace quire;
using quire_test::view_fixture;
using quire_test::view_row;

auto at(std::uint32_t position) -> token_pos { return token_pos{position}; }
auto place(std::uint32_t block, std::uint32_t offset) -> token_place {
  return {.block = block_id{block}, .offset = token_count{offset}};
}
auto to_vector(std::span<std::int32_t const> cells) -> std::vector<std::int32_t> {
  return {cells.begin(), cells.end()};
}

// What a reader sees: the slot of every readable position, in order.
auto read_slots(batch_view const& view, std::int32_t row) -> std::vector<std::int64_t> {
  auto out = std::vector<std::int64_t>{};
  for (auto p = view.first_position[static_cast<std::size_t>(row)]; p < view.row_length(row); ++p) {
    auto const where = view.locate(row, at(static_cast<std::uint32_t>(p)));
    out.push_back(std::int64_t{where.block.value()} * view.block_tokens + where.offset.value());
  }
  return out;
}
} // namespace

TEST_CASE("S14: position maps to block and offset") {
  auto const fixture = view_fixture{4, 4, 1, {view_row{.blocks = {7, 2, 9}, .cached = 9, .queries = 1}}};
  auto const view = fixture.view();
  REQUIRE(validate(view));
  CHECK(view.row_length(0) == 10);
  CHECK(view.locate(0, at(0)) == place(7, 0));
  CHECK(view.locate(0, at(3)) == place(7, 3));
  CHECK(view.locate(0, at(4)) == place(2, 0));
  CHECK(view.locate(0, at(6)) == place(2, 2));
  CHECK(view.locate(0, at(9)) == place(9, 1));
  CHECK(view.slot[0] == 9 * 4 + 1);
  CHECK(to_vector(view.blocks_of_row(0)) == std::vector<std::int32_t>{7, 2, 9});
  CHECK(to_vector(view.table_row(0)) == std::vector<std::int32_t>{7, 2, 9, -1});
  SECTION("the last two slots are beyond the length and are never read") {
    CHECK_THROWS_AS(view.locate(0, at(10)), quire_test::contract_violation);
    CHECK_THROWS_AS(view.locate(0, at(11)), quire_test::contract_violation);
    CHECK_THROWS_AS(view.locate(1, at(0)), quire_test::contract_violation);
    CHECK_THROWS_AS(view.locate(-1, at(0)), quire_test::contract_violation);
    CHECK_THROWS_AS(view.row_length(1), quire_test::contract_violation);
  }
}

TEST_CASE("S14: every position of every block size maps as a walk does (case 121)") {
  for (auto const unit : {1, 2, 3, 5, 16, 17, 64}) {
    for (auto const length : {1, unit - 1, unit, unit + 1, 2 * unit, 3 * unit - 1, 3 * unit}) {
      if (length < 1) { continue; }
      auto const fixture = view_fixture{unit, 3, 1, {view_row{.blocks = {11, 3, 8}, .cached = 0, .queries = length}}};
      auto const view = fixture.view();
      REQUIRE(validate(view));
      REQUIRE(read_slots(view, 0) == fixture.slot);
      REQUIRE(view.blocks_of_row(0).size() ==
              (static_cast<std::size_t>(length) + static_cast<std::size_t>(unit) - 1) / static_cast<std::size_t>(unit));
    }
  }
}

TEST_CASE("S14: a table may begin at a later position") {
  auto const fixture = view_fixture{4, 3, 1, {view_row{.blocks = {5, 3}, .first = 32, .cached = 37, .queries = 2}}};
  auto const view = fixture.view();
  REQUIRE(validate(view));
  CHECK(view.locate(0, at(32)) == place(5, 0));
  CHECK(view.locate(0, at(37)) == place(3, 1));
  CHECK(to_vector(view.blocks_of_row(0)) == std::vector<std::int32_t>{5, 3});
  CHECK(view.position[0] == 37); // logical, not counted from the table's first column
  CHECK(view.slot[1] == 3 * 4 + 2);
  CHECK_THROWS_AS(view.locate(0, at(31)), quire_test::contract_violation);
}

TEST_CASE("S14: a hole has no block") {
  auto const fixture = view_fixture{2, 3, 1, {view_row{.blocks = {4, -1, 6}, .first = 0, .cached = 5, .queries = 1}}};
  auto const view = fixture.view();
  CHECK_FALSE(validate(view));
  REQUIRE(validate(view, {.holes = true}));
  CHECK_FALSE(view.locate(0, at(2)).block);
  CHECK(view.locate(0, at(2)).offset == token_count{0});
  CHECK(view.locate(0, at(4)).block == block_id{6});
}

TEST_CASE("S14: a row without positions reads nothing") {
  auto const fixture = view_fixture{4, 2, 2, {view_row{}, view_row{.blocks = {1}, .cached = 3, .queries = 0}}};
  auto const view = fixture.view();
  REQUIRE(validate(view));
  CHECK(view.blocks_of_row(0).empty());
  CHECK(view.row_queries(0) == 0);
  CHECK(view.row_queries(1) == 0);
  CHECK(view.blocks_of_row(1).size() == 1);
}

TEST_CASE("S19: whose cache a row reads does not depend on the order of rows (cases 75, 78)") {
  // distinct in every per-row field; both first rows have a position 5
  auto const a = view_row{.blocks = {1, 2, 3}, .first = 0, .cached = 9, .queries = 2};
  auto const b = view_row{.blocks = {4, 5}, .first = 4, .cached = 6, .queries = 1};
  auto const c = view_row{.blocks = {6}, .first = 0, .cached = 0, .queries = 3};
  auto const forward = view_fixture{4, 3, 3, {a, b, c}};
  auto const backward = view_fixture{4, 3, 3, {c, b, a}};
  auto const one = forward.view();
  auto const two = backward.view();
  REQUIRE(validate(one));
  REQUIRE(validate(two));
  for (std::int32_t row = 0; row < 3; ++row) {
    CHECK(read_slots(one, row) == read_slots(two, 2 - row));
    CHECK(one.row_length(row) == two.row_length(2 - row));
    CHECK(one.row_queries(row) == two.row_queries(2 - row));
  }
  CHECK(one.locate(0, at(5)) != one.locate(1, at(5)));
}

TEST_CASE("S18: a mirror follows the table by deltas, vacated rows included (case 76)") {
  auto first = view_fixture{2, 2, 4, {view_row{{1, 2}, 0, 3, 1}, view_row{{3}, 0, 1, 1}, view_row{{4}, 0, 0, 1}}};
  auto mirror = std::vector<std::int32_t>(8, 77);
  update_mirror(first.view(), mirror);
  REQUIRE(mirror == first.table);

  // the first request ends, the third one moves into its row, row 2 is vacated
  auto second = view_fixture{2, 2, 4, {view_row{{4}, 0, 1, 1}, view_row{{3, 5}, 0, 2, 1}}};
  second.whole = false;
  second.delta = {
      {0, 0, 9}, {0, 0, 4}, {0, 1, -1}, {1, 1, 5}, {2, 0, -1}}; // a cell may change twice: the last one holds
  REQUIRE(validate(second.view()));
  update_mirror(second.view(), mirror);
  CHECK(mirror == second.table);

  SECTION("the whole table does not need deltas") {
    std::fill(mirror.begin(), mirror.end(), 77);
    second.whole = true;
    second.delta.clear();
    update_mirror(second.view(), mirror);
    CHECK(mirror == second.table);
  }
  SECTION("a mirror of another size is refused") {
    mirror.pop_back();
    CHECK_THROWS_AS(update_mirror(second.view(), mirror), quire_test::contract_violation);
  }
}
