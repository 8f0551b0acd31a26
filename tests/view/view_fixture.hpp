// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Builds batch views from plain descriptions of rows, token by token and without the library's formulas.

#include <quire/view/batch_view.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace quire_test {

/// One row: its table from `first` on, L tokens cached, q new ones.
struct view_row {
  std::vector<std::int32_t> blocks;
  std::int32_t first = 0;
  std::int32_t cached = 0;
  std::int32_t queries = 0;
};

/// Owns the arrays of one view; all of them may be spoilt by a test.
struct view_fixture {
  std::int32_t block_tokens;
  std::int32_t columns;
  std::int32_t capacity;
  std::int32_t rows;
  std::vector<std::int32_t> table;
  std::vector<std::int32_t> first = {};
  std::vector<std::int32_t> length = {};
  std::vector<std::int32_t> query_start = {0};
  std::vector<std::int64_t> slot = {};
  std::vector<std::int32_t> position = {};
  std::vector<quire::table_delta> delta = {};
  bool whole = true;

  view_fixture(std::int32_t unit, std::int32_t width, std::int32_t rows_at_most, std::vector<view_row> const& described)
      : block_tokens{unit}, columns{width}, capacity{rows_at_most}, rows{static_cast<std::int32_t>(described.size())},
        table(static_cast<std::size_t>(width) * static_cast<std::size_t>(rows_at_most), -1) {
    std::size_t row = 0;
    for (auto const& d : described) {
      for (std::size_t j = 0; j < d.blocks.size(); ++j) {
        table[row * static_cast<std::size_t>(width) + j] = d.blocks[j];
      }
      first.push_back(d.first);
      length.push_back(d.cached + d.queries);
      query_start.push_back(query_start.back() + d.queries);
      for (auto p = d.cached; p < d.cached + d.queries; ++p) {
        position.push_back(p);
        // walk from the first position, block by block: no division
        std::size_t column = 0;
        auto offset = 0;
        for (auto t = d.first; t < p; ++t) {
          if (++offset == unit) {
            offset = 0;
            ++column;
          }
        }
        slot.push_back(std::int64_t{d.blocks.at(column)} * unit + offset);
      }
      ++row;
    }
  }

  [[nodiscard]] auto view() const -> quire::batch_view {
    return {.rows = rows,
            .max_blocks = columns,
            .block_tokens = block_tokens,
            .buffer = 0,
            .block_table = table,
            .first_position = first,
            .length = length,
            .query_start = query_start,
            .slot = slot,
            .position = position,
            .delta = delta,
            .whole_table = whole};
  }
};

} // namespace quire_test
