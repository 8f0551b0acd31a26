// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Checks that a batch view keeps every promise it makes to a backend. Kernels have no error path, so the
/// host side of an executor, and every test, asks here first.

#include <quire/core/expected.hpp>
#include <quire/core/types.hpp>
#include <quire/view/batch_view.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

namespace quire {

/// The rule that a view breaks.
enum class view_fault : std::uint8_t {
  header,         ///< `rows`, `max_blocks` or `buffer` is negative, or `block_tokens` is not positive.
  array_size,     ///< An array does not have the size that its shape says.
  first_position, ///< `first_position` is negative or not a multiple of p_b.
  query_start,    ///< `query_start` does not begin with 0 or decreases.
  length,         ///< `length` is smaller than the row's q or its first position, or needs more columns than there are.
  missing_block,  ///< The length reaches into a column without a block.
  foreign_block,  ///< A cell names a block that the pool does not have, or a negative number other than -1.
  repeated_block, ///< Two columns that a row reads hold the same block: two positions in one slot.
  padding_in_use, ///< A row from B on is not all -1.
  position,       ///< `position` is not L, L + 1, … of its row.
  slot,           ///< `slot` is neither -1 nor the place that the table gives to the position.
  write_collision, ///< A slot is written by one row and read or written by another.
  delta,           ///< A delta names a cell outside the table or a block that is none.
  last_block,      ///< A CSR row's last length is outside 1..p_b, or is not 0 where the row has no block.
};

/// What the rule says, for people.
[[nodiscard]] constexpr auto message(view_fault fault) noexcept -> std::string_view {
  switch (fault) {
  case view_fault::header: return "rows, max_blocks and buffer must not be negative, block_tokens must be positive";
  case view_fault::array_size: return "an array does not have the size that its shape says";
  case view_fault::first_position: return "first_position must be a multiple of block_tokens, from 0";
  case view_fault::query_start: return "query_start must begin with 0 and never decrease";
  case view_fault::length: return "length must cover the new positions and fit the columns of the table";
  case view_fault::missing_block: return "the length reaches into a column without a block";
  case view_fault::foreign_block: return "a cell holds neither -1 nor a block of the pool";
  case view_fault::repeated_block: return "two columns that a row reads hold the same block";
  case view_fault::padding_in_use: return "a row beyond the batch is not all -1";
  case view_fault::position: return "position must count from length - q to length - 1";
  case view_fault::slot: return "slot must be -1 or block * block_tokens + offset of its position";
  case view_fault::write_collision: return "a slot that one row writes is read or written by another";
  case view_fault::delta: return "a delta names a cell outside the table or no block";
  case view_fault::last_block: return "the last length must be in 1..block_tokens, and 0 for a row without blocks";
  }
  return "unknown fault";
}

/// Which rule a view breaks, and where it breaks it first.
struct view_error {
  /// The broken rule; `message(fault)` says it in words.
  view_fault fault;
  /// Row, or -1 if no single row is at fault.
  std::int32_t row = -1;
  /// Column for a cell, index into the array for `slot`, `position` and `delta`; else -1.
  std::int32_t index = -1;

  /// True if all three agree.
  friend constexpr auto operator==(view_error const&, view_error const&) noexcept -> bool = default;
};

/// Facts that a view does not carry and a validator needs.
struct view_rules {
  /// Blocks of the pool: ids are below it. By default any id is taken.
  block_count pool = block_count{static_cast<std::uint32_t>(std::numeric_limits<std::int32_t>::max())};
  /// True where positions between the kept ones may have no block (sinks + window). A block that
  /// the step writes must be there all the same.
  bool holes = false;
};

/// \cond INTERNAL
namespace detail {

[[nodiscard]] inline auto fault(view_fault what, std::int32_t row = -1, std::size_t index = 0, bool indexed = false)
    -> tl::unexpected<view_error> {
  return tl::unexpected<view_error>{
      view_error{.fault = what, .row = row, .index = indexed ? static_cast<std::int32_t>(index) : -1}};
}

[[nodiscard]] constexpr auto cell_in_pool(std::int32_t cell, view_rules const& rules) noexcept -> bool {
  return cell == -1 || (cell >= 0 && static_cast<std::uint32_t>(cell) < rules.pool.value());
}

[[nodiscard]] inline auto validate_shapes(batch_view const& view) -> expected<void, view_error> {
  if (view.rows < 0 || view.max_blocks < 0 || view.buffer < 0 || view.block_tokens <= 0) {
    return fault(view_fault::header);
  }
  auto const rows = static_cast<std::size_t>(view.rows);
  auto const width = static_cast<std::size_t>(view.max_blocks);
  if (view.first_position.size() != rows || view.length.size() != rows || view.query_start.size() != rows + 1 ||
      view.block_table.size() < rows * width || (width != 0 && view.block_table.size() % width != 0)) {
    return fault(view_fault::array_size);
  }
  if (view.query_start[0] != 0) { return fault(view_fault::query_start, 0); }
  for (std::int32_t row = 0; row < view.rows; ++row) {
    auto const i = static_cast<std::size_t>(row); // compared, not subtracted: garbage must not overflow
    if (view.query_start[i + 1] < view.query_start[i]) { return fault(view_fault::query_start, row); }
  }
  auto const queries = static_cast<std::size_t>(view.query_start[rows]);
  if (view.slot.size() != queries || view.position.size() != queries) { return fault(view_fault::array_size); }
  return {};
}

[[nodiscard]] inline auto validate_row(batch_view const& view, std::int32_t row, view_rules const& rules)
    -> expected<void, view_error> {
  auto const i = static_cast<std::size_t>(row);
  auto const unit = view.block_tokens;
  auto const first = view.first_position[i];
  auto const length = view.length[i];
  if (first < 0 || first % unit != 0) { return fault(view_fault::first_position, row); }
  // in 64 bits: first + columns * p_b may pass 2^31 although length does not
  auto const room = std::int64_t{first} + std::int64_t{view.max_blocks} * unit;
  if (length < first || length < view.row_queries(row) || length > room) { return fault(view_fault::length, row); }

  auto const cells = view.table_row(row);
  auto const used = view.blocks_of_row(row).size();
  for (std::size_t column = 0; column < cells.size(); ++column) {
    if (!cell_in_pool(cells[column], rules)) { return fault(view_fault::foreign_block, row, column, true); }
    if (column < used && cells[column] == -1 && !rules.holes) {
      return fault(view_fault::missing_block, row, column, true);
    }
  }

  for (auto k = view.query_start[i]; k < view.query_start[i + 1]; ++k) {
    auto const at = static_cast<std::size_t>(k);
    auto const expected_position = length - view.query_start[i + 1] + k;
    if (view.position[at] != expected_position) { return fault(view_fault::position, row, at, true); }
    if (view.slot[at] == -1) { continue; }
    if (expected_position < first) { return fault(view_fault::slot, row, at, true); }
    auto const block = cells[static_cast<std::size_t>((expected_position - first) / unit)];
    if (block == -1) { return fault(view_fault::missing_block, row, at, true); }
    if (view.slot[at] != std::int64_t{block} * unit + expected_position % unit) {
      return fault(view_fault::slot, row, at, true);
    }
  }
  return {};
}

} // namespace detail
/// \endcond

/// Checks everything that can be checked in one pass: shapes, lengths, blocks, positions, slots, padding, deltas.
/// \returns nothing, or the first contradiction.
/// \post on success (1) every readable position of every row has a block of the pool, unless `rules.holes`;
///   (2) every slot is -1 or the place of its position; (3) the last block of a row holds 1..p_b tokens;
///   (4) every delta names a cell of the table.
/// \complexity O(cells of the table + Σq + deltas); allocates nothing.
/// \source S14, S18; cases 121, 122
[[nodiscard]] inline auto validate(batch_view const& view, view_rules const& rules = {}) -> expected<void, view_error> {
  if (auto shapes = detail::validate_shapes(view); !shapes) { return shapes; }
  for (std::int32_t row = 0; row < view.rows; ++row) {
    if (auto checked = detail::validate_row(view, row, rules); !checked) { return checked; }
  }
  auto const width = static_cast<std::size_t>(view.max_blocks);
  for (auto cell = static_cast<std::size_t>(view.rows) * width; cell < view.block_table.size(); ++cell) {
    if (view.block_table[cell] != -1) {
      return detail::fault(view_fault::padding_in_use, static_cast<std::int32_t>(cell / width), cell % width, true);
    }
  }
  if (!view.whole_table) {
    for (std::size_t i = 0; i < view.delta.size(); ++i) {
      auto const& change = view.delta[i];
      if (change.row < 0 || change.row >= view.capacity_rows() || change.column < 0 ||
          change.column >= view.max_blocks || !detail::cell_in_pool(change.block, rules)) {
        return detail::fault(view_fault::delta, change.row, i, true);
      }
    }
  }
  return {};
}

/// Checks that no two rows, and no two columns of a row, meet in a slot that is written: what a row writes, nothing
/// else reads in this step. Blocks may be shared by readers, and a block that one row writes may be read by others below
/// the written offset (a partial block has one writer and any readers).
/// \pre `validate(view)` succeeded
/// \complexity O(blocks written × blocks read): for tests and audits, not for every step.
/// \source S23, S26; cases 75 and 76
[[nodiscard]] inline auto validate_writes(batch_view const& view) -> expected<void, view_error> {
  auto const unit = view.block_tokens;
  for (std::int32_t row = 0; row < view.rows; ++row) {
    auto const used = view.blocks_of_row(row);
    for (std::size_t a = 0; a < used.size(); ++a) {
      for (std::size_t b = a + 1; b < used.size(); ++b) {
        if (used[a] != -1 && used[a] == used[b]) { return detail::fault(view_fault::repeated_block, row, b, true); }
      }
    }
  }
  for (std::int32_t writer = 0; writer < view.rows; ++writer) {
    auto const i = static_cast<std::size_t>(writer);
    for (auto k = view.query_start[i]; k < view.query_start[i + 1]; ++k) {
      auto const slot = view.slot[static_cast<std::size_t>(k)];
      if (slot == -1) { continue; }
      for (std::int32_t reader = 0; reader < view.rows; ++reader) {
        if (reader == writer) { continue; }
        auto const blocks = view.blocks_of_row(reader);
        auto const tokens =
            std::int64_t{view.row_length(reader)} - view.first_position[static_cast<std::size_t>(reader)];
        for (std::size_t column = 0; column < blocks.size(); ++column) {
          auto const read_end = tokens - static_cast<std::int64_t>(column) * unit; // in this block, may pass unit
          if (blocks[column] == slot / unit && slot % unit < read_end) {
            return detail::fault(view_fault::write_collision, writer, static_cast<std::size_t>(k), true);
          }
        }
      }
    }
  }
  return {};
}

} // namespace quire
