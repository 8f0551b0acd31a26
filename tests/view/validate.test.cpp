// SPDX-License-Identifier: Apache-2.0
#include <quire/view/validate.hpp>

#include "support/catch_compat.hpp"
#include "view/view_fixture.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>

namespace {
using namespace quire;
using quire_test::view_fixture;
using quire_test::view_row;

// Two rows, a window in the second, one padding row; p_b = 4.
auto good() -> view_fixture { return {4, 4, 3, {view_row{{7, 2, 9}, 0, 9, 1}, view_row{{5, 3}, 32, 37, 2}}}; }
auto fault_of(batch_view const& view, view_rules const& rules = {}) -> std::optional<view_error> {
  auto const checked = validate(view, rules);
  return checked ? std::nullopt : std::optional{checked.error()};
}
auto where(view_fault what, std::int32_t row = -1, std::int32_t index = -1) -> std::optional<view_error> {
  return view_error{.fault = what, .row = row, .index = index};
}
constexpr auto huge = std::numeric_limits<std::int32_t>::max();
constexpr auto lowest = std::numeric_limits<std::int32_t>::min();
} // namespace

TEST_CASE("S18: a view that keeps its promises is valid") {
  CHECK_FALSE(fault_of(good().view()));
  CHECK_FALSE(fault_of(good().view(), {.pool = block_count{10}}));
  CHECK_FALSE(fault_of(view_fixture{4, 4, 3, {}}.view()));
  CHECK_FALSE(fault_of(view_fixture{1, 1, 1, {view_row{{0}, 0, 0, 1}}}.view()));
  SECTION("skipped writes are allowed anywhere (S22)") {
    auto v = good();
    v.slot = {-1, -1, -1};
    CHECK_FALSE(fault_of(v.view()));
  }
  SECTION("blocks reserved beyond the length are allowed") {
    auto v = good();
    v.table[3] = 1;
    CHECK_FALSE(fault_of(v.view()));
  }
}

TEST_CASE("S18: each broken promise of a view is named with its place") {
  auto v = good();
  SECTION("header") {
    v.block_tokens = 0;
    CHECK(fault_of(v.view()) == where(view_fault::header));
    v.block_tokens = 4;
    auto raw = v.view();
    raw.rows = -1;
    CHECK(fault_of(raw) == where(view_fault::header));
    raw = v.view();
    raw.max_blocks = -1;
    CHECK(fault_of(raw) == where(view_fault::header));
    raw = v.view();
    raw.buffer = -1;
    CHECK(fault_of(raw) == where(view_fault::header));
  }
  SECTION("array sizes") {
    SECTION("first_position") { v.first.pop_back(); }
    SECTION("length") { v.length.push_back(1); }
    SECTION("query_start") { v.query_start.pop_back(); }
    SECTION("slot") { v.slot.pop_back(); }
    SECTION("position") { v.position.push_back(1); }
    SECTION("table too short") { v.table.resize(7); }
    SECTION("table not a whole number of rows") { v.table.resize(11); }
    CHECK(fault_of(v.view()) == where(view_fault::array_size));
  }
  SECTION("first position") {
    SECTION("unaligned") { v.first[1] = 33; }
    SECTION("negative") { v.first[1] = -4; }
    CHECK(fault_of(v.view()) == where(view_fault::first_position, 1));
  }
  SECTION("query start") {
    SECTION("does not begin with 0") {
      v.query_start[0] = 1;
      CHECK(fault_of(v.view()) == where(view_fault::query_start, 0));
    }
    SECTION("decreases") {
      v.query_start = {0, 3, 2};
      CHECK(fault_of(v.view()) == where(view_fault::query_start, 1));
    }
    SECTION("garbage does not overflow the check") {
      v.query_start = {0, huge, lowest};
      CHECK(fault_of(v.view()) == where(view_fault::query_start, 1));
    }
  }
  SECTION("length") {
    SECTION("below the first position") { v.length[1] = 31; }
    SECTION("below q") { v.first[1] = 0, v.length[1] = 1; }
    SECTION("beyond the columns") { v.length[1] = 32 + 16 + 1; }
    SECTION("negative") { v.length[1] = -1; }
    SECTION("huge") { v.length[1] = huge; }
    CHECK(fault_of(v.view()) == where(view_fault::length, 1));
  }
  SECTION("missing block inside the length") {
    v.table[1] = -1;
    CHECK(fault_of(v.view()) == where(view_fault::missing_block, 0, 1));
    CHECK_FALSE(fault_of(v.view(), {.holes = true}));
  }
  SECTION("missing block under a written position, holes or not") {
    v.table[2] = -1;
    CHECK(fault_of(v.view(), {.holes = true}) == where(view_fault::missing_block, 0, 0));
  }
  SECTION("foreign block") {
    SECTION("beyond the pool") {
      CHECK(fault_of(v.view(), {.pool = block_count{9}}) == where(view_fault::foreign_block, 0, 2));
    }
    SECTION("negative, but not -1, even in an unused column") {
      v.table[3] = -2;
      CHECK(fault_of(v.view()) == where(view_fault::foreign_block, 0, 3));
    }
  }
  SECTION("padding row in use (case 76)") {
    v.table[9] = 3;
    CHECK(fault_of(v.view()) == where(view_fault::padding_in_use, 2, 1));
  }
  SECTION("position") {
    v.position[2] = 37;
    CHECK(fault_of(v.view()) == where(view_fault::position, 1, 2));
  }
  SECTION("slot") {
    SECTION("of another offset") { v.slot[2] += 1; }
    SECTION("of another block") { v.slot[2] = 2 * 4 + 2; }
    SECTION("negative, but not -1") { v.slot[2] = -2; }
    SECTION("cut to 32 bits") { v.slot[2] += std::int64_t{1} << 32; }
    CHECK(fault_of(v.view()) == where(view_fault::slot, 1, 2));
  }
  SECTION("slot for a position in front of the table") {
    auto w = view_fixture{4, 4, 1, {view_row{{5, 3}, 32, 32, 1}}};
    w.first[0] = 32;
    w.length[0] = 32;
    w.position = {31};
    CHECK(fault_of(w.view()) == where(view_fault::slot, 0, 0));
    w.slot = {-1};
    CHECK_FALSE(fault_of(w.view()));
  }
  SECTION("delta") {
    v.whole = false;
    SECTION("row") { v.delta = {{0, 0, 7}, {3, 0, 1}}; }
    SECTION("negative row") { v.delta = {{0, 0, 7}, {-1, 0, 1}}; }
    SECTION("column") { v.delta = {{0, 0, 7}, {0, 4, 1}}; }
    SECTION("negative column") { v.delta = {{0, 0, 7}, {0, -1, 1}}; }
    SECTION("block") { v.delta = {{0, 0, 7}, {0, 1, -2}}; }
    auto const found = fault_of(v.view());
    REQUIRE(found);
    CHECK(found->fault == view_fault::delta);
    CHECK(found->index == 1);
    v.whole = true; // then the list is not used
    CHECK_FALSE(fault_of(v.view()));
  }
}

TEST_CASE("S23: what a row writes, no other row reads") {
  SECTION("rows of their own") { CHECK(validate_writes(good().view())); }
  SECTION("full blocks are shared by readers") {
    auto const v = view_fixture{4, 2, 2, {view_row{{1, 2}, 0, 4, 1}, view_row{{1, 3}, 0, 4, 2}}};
    CHECK(validate_writes(v.view()));
  }
  SECTION("one row writes behind what the other one reads") {
    auto v = view_fixture{4, 2, 2, {view_row{{1}, 0, 2, 1}, view_row{{1}, 0, 1, 1}}};
    v.slot[1] = -1; // the reader recomputes its last position without a write
    CHECK(validate_writes(v.view()));
  }
  SECTION("a write into what the other one reads") {
    auto v = view_fixture{4, 2, 2, {view_row{{1}, 0, 2, 1}, view_row{{1}, 0, 2, 1}}};
    v.slot[1] = -1;
    auto const checked = validate_writes(v.view());
    REQUIRE_FALSE(checked);
    CHECK(checked.error() == view_error{.fault = view_fault::write_collision, .row = 0, .index = 0});
  }
  SECTION("both write one slot") {
    auto const v = view_fixture{4, 2, 2, {view_row{{1}, 0, 0, 1}, view_row{{1}, 0, 0, 1}}};
    CHECK_FALSE(validate_writes(v.view()));
  }
  SECTION("one block twice in a row") {
    auto const v = view_fixture{4, 3, 1, {view_row{{1, 2, 1}, 0, 8, 1}}};
    auto const checked = validate_writes(v.view());
    REQUIRE_FALSE(checked);
    CHECK(checked.error() == view_error{.fault = view_fault::repeated_block, .row = 0, .index = 2});
  }
}

TEST_CASE("S18: every fault has a text of its own") {
  auto texts = std::set<std::string>{};
  for (auto f = 0; f <= static_cast<int>(view_fault::last_block); ++f) {
    texts.emplace(message(static_cast<view_fault>(f)));
  }
  CHECK(texts.size() == static_cast<std::size_t>(view_fault::last_block) + 1);
  CHECK(texts.count("unknown fault") == 0);
}
