// SPDX-License-Identifier: Apache-2.0
#include <quire/view/csr.hpp>

#include "support/catch_compat.hpp"
#include "support/throwing_contract.hpp"
#include "view/view_fixture.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace {
using namespace quire;
using quire_test::view_fixture;
using quire_test::view_row;

struct csr_memory {
  std::vector<std::int32_t> indptr;
  std::vector<std::int32_t> indices;
  std::vector<std::int32_t> last;
  auto buffers() -> csr_buffers { return {.indptr = indptr, .indices = indices, .last_block_length = last}; }
};
auto memory_for(batch_view const& view, std::size_t spare = 0) -> csr_memory {
  auto const rows = static_cast<std::size_t>(view.rows);
  return {std::vector<std::int32_t>(rows + 1 + spare, -7), std::vector<std::int32_t>(csr_indices(view) + spare, -7),
          std::vector<std::int32_t>(rows + spare, -7)};
}
auto to_vector(std::span<std::int32_t const> s) -> std::vector<std::int32_t> { return {s.begin(), s.end()}; }
} // namespace

TEST_CASE("S20: the compressed form of a worked batch") {
  auto const fixture = view_fixture{
      4, 4, 5, {view_row{{7, 2, 9}, 0, 9, 1}, view_row{}, view_row{{5, 3}, 32, 37, 3}, view_row{{8}, 0, 0, 1}}};
  auto const view = fixture.view();
  REQUIRE(validate(view));
  auto memory = memory_for(view, 3);
  auto const csr = export_csr(view, memory.buffers());
  CHECK(csr.rows() == 4);
  CHECK(csr.block_tokens == 4);
  CHECK(to_vector(csr.indptr) == std::vector<std::int32_t>{0, 3, 3, 5, 6});
  CHECK(to_vector(csr.indices) == std::vector<std::int32_t>{7, 2, 9, 5, 3, 8});
  CHECK(to_vector(csr.last_block_length) == std::vector<std::int32_t>{2, 0, 4, 1}); // a full last block holds 4, not 0
  CHECK(validate(csr));
  SECTION("nothing behind the needed part is touched") {
    CHECK(memory.indptr[5] == -7);
    CHECK(memory.indices[6] == -7);
    CHECK(memory.last[4] == -7);
  }
  SECTION("too little room is a broken contract, and nothing is written beyond it") {
    auto small = memory_for(view);
    small.indices.pop_back();
    CHECK_THROWS_AS(export_csr(view, small.buffers()), quire_test::contract_violation);
    small = memory_for(view);
    small.indptr.pop_back();
    CHECK_THROWS_AS(export_csr(view, small.buffers()), quire_test::contract_violation);
    small = memory_for(view);
    small.last.pop_back();
    CHECK_THROWS_AS(export_csr(view, small.buffers()), quire_test::contract_violation);
  }
}

TEST_CASE("S20: padded and compressed rows read the same slots at every length (cases 121, 122)") {
  for (auto const unit : {1, 2, 3, 5, 16, 17, 64}) {
    for (auto length = 0; length <= 3 * unit; ++length) {
      auto const needed = (length + unit - 1) / unit;
      auto blocks = std::vector<std::int32_t>{9, 4, 6};
      blocks.resize(static_cast<std::size_t>(needed));
      // two sequences, as in the report where the second one came out as zeros
      auto other = blocks;
      for (auto& block : other) { block += 20; }
      auto const fixture = view_fixture{unit, 3, 2, {view_row{blocks, 0, length, 0}, view_row{other, 0, length, 0}}};
      auto const view = fixture.view();
      REQUIRE(validate(view));
      auto memory = memory_for(view);
      auto const csr = export_csr(view, memory.buffers());
      REQUIRE(validate(csr));
      for (std::size_t row = 0; row < 2; ++row) {
        auto const begin = csr.indptr[row];
        auto const end = csr.indptr[row + 1];
        auto const total = begin == end ? 0 : (end - begin - 1) * unit + csr.last_block_length[row];
        REQUIRE(total == length); // FlashInfer's formula
        for (std::int32_t p = 0; p < length; ++p) {
          auto const where = view.locate(static_cast<std::int32_t>(row), token_pos{static_cast<std::uint32_t>(p)});
          REQUIRE(csr.indices[static_cast<std::size_t>(begin + p / unit)] ==
                  static_cast<std::int32_t>(where.block.value()));
        }
      }
    }
  }
}

TEST_CASE("S20: compressed rows that contradict themselves are refused (case 122)") {
  auto indptr = std::vector<std::int32_t>{0, 2, 2, 3};
  auto indices = std::vector<std::int32_t>{4, 5, 6};
  auto last = std::vector<std::int32_t>{1, 0, 4};
  auto const check = [&](view_rules const& rules = {}) {
    return validate(csr_view{.block_tokens = 4, .indptr = indptr, .indices = indices, .last_block_length = last},
                    rules);
  };
  auto const fault = [&](view_rules const& rules = {}) {
    auto const checked = check(rules);
    REQUIRE_FALSE(checked);
    return checked.error();
  };
  REQUIRE(check());
  SECTION("last length beyond p_b") {
    last[2] = 5;
    CHECK(fault() == view_error{.fault = view_fault::last_block, .row = 2});
  }
  SECTION("last length 0 for a row with blocks") {
    last[0] = 0;
    CHECK(fault() == view_error{.fault = view_fault::last_block, .row = 0});
  }
  SECTION("last length for a row without blocks") {
    last[1] = 1;
    CHECK(fault() == view_error{.fault = view_fault::last_block, .row = 1});
  }
  SECTION("indptr") {
    indptr = {0, 2, 1, 3};
    CHECK(fault() == view_error{.fault = view_fault::query_start, .row = 1});
    indptr = {1, 2, 2, 3};
    CHECK(fault() == view_error{.fault = view_fault::query_start, .row = 0});
    indptr = {0, 2, 2};
    CHECK(fault() == view_error{.fault = view_fault::array_size});
  }
  SECTION("indices") {
    indices = {4, 5};
    CHECK(fault() == view_error{.fault = view_fault::array_size});
    indices = {4, 5, 6};
    CHECK(fault({.pool = block_count{6}}) == view_error{.fault = view_fault::foreign_block, .row = -1, .index = 2});
    indices = {4, -1, 6};
    CHECK(fault() == view_error{.fault = view_fault::missing_block, .row = -1, .index = 1});
    CHECK(check({.holes = true}));
    indices = {4, -2, 6};
    CHECK(fault({.holes = true}) == view_error{.fault = view_fault::foreign_block, .row = -1, .index = 1});
  }
  SECTION("block size") {
    CHECK_FALSE(validate(csr_view{.block_tokens = 0, .indptr = indptr, .indices = indices, .last_block_length = last}));
  }
}
