// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What one step of one layer group shows to a backend: which slots to write, which blocks to read.
///
///     p_b = 4          block_table              first_position  length (= L + q)
///     row 0 ("abc…")   [  7   2   9  -1 ]            0             10
///     row 1            [  5   3  -1  -1 ]           32             39      (a window: blocks 0..7 are gone)
///     row 2 … capacity [ -1  -1  -1  -1 ]
///
///     query_start [ 0 1 3 ]    row 0 computes one position, row 1 two
///     position    [ 9 | 37 38 ]        logical, what position encodings use (S14)
///     slot        [ 9·4+1 | 3·4+1, 3·4+2 ]   where their K and V go; -1 = computed but not written (S22)
///
/// The spans point into one of the cache's persistent buffers: rows are padded to a fixed width and stay in
/// place, so that a captured device graph keeps its addresses, and `delta` lists the cells that changed since
/// the previous view on the same buffer. Everything behind the spans is immutable until the ticket the step was
/// committed with is reached (S18). A row is never an identity: who sits in it may change with every step (S19).

#include <quire/core/contract.hpp>
#include <quire/core/types.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace quire {

/// A cell of the block table that changed since the previous view on the same buffer. Plain 32-bit
/// integers: a kernel reads an array of these and writes them into the device's copy of the table.
struct table_delta {
  /// Row of the table, in [0, capacity rows).
  std::int32_t row;
  /// Column of the table, in [0, max_blocks).
  std::int32_t column;
  /// New content of the cell: a block, or -1 = none.
  std::int32_t block;

  /// True if all three agree.
  friend constexpr auto operator==(table_delta const&, table_delta const&) noexcept -> bool = default;
};

static_assert(sizeof(table_delta) == 12, "three packed 32-bit integers, as a kernel reads them");

/// The physical place of a logical position (S14).
struct token_place {
  /// Block that holds the position; `none()` where the table has no block for it.
  block_id block;
  /// [tokens] Offset in the block, in [0, p_b).
  token_count offset;

  /// True if both agree.
  friend constexpr auto operator==(token_place const&, token_place const&) noexcept -> bool = default;
};

/// Immutable snapshot of one step for one layer group. Plain numbers and spans of plain integers: what a kernel
/// reads, with the conventions of paged kernels (int32 tables and lengths, int64 slots, -1 for "none").
struct batch_view {
  /// Rows in use, B.
  std::int32_t rows = 0;
  /// Columns of the padded table.
  std::int32_t max_blocks = 0;
  /// [tokens] per block, p_b.
  std::int32_t block_tokens = 0;
  /// Which persistent buffer this view sits in.
  std::int32_t buffer = 0;
  /// \shape [capacity rows, max_blocks] row-major, block id or -1 = none; rows from B on are all -1.
  std::span<std::int32_t const> block_table = {};
  /// \shape [B] logical position of the table's first column, a multiple of p_b.
  std::span<std::int32_t const> first_position = {};
  /// \shape [B] positions readable in this step, L + q, counted from logical position 0.
  std::span<std::int32_t const> length = {};
  /// \shape [B + 1] where each row's positions start in `slot` and `position`; starts with 0.
  std::span<std::int32_t const> query_start = {};
  /// \shape [Σq] block · p_b + offset; -1 = compute the position, skip the write.
  std::span<std::int64_t const> slot = {};
  /// \shape [Σq] logical position.
  std::span<std::int32_t const> position = {};
  /// Cells that changed since the previous view on this buffer, in order; rows beyond B may appear.
  std::span<table_delta const> delta = {};
  /// True if there is no previous view to start from: copy the whole table and ignore `delta`.
  bool whole_table = true;

  /// Rows of the padded table, in use or not.
  [[nodiscard]] constexpr auto capacity_rows() const noexcept -> std::int32_t {
    return max_blocks == 0 ? 0 : static_cast<std::int32_t>(block_table.size() / static_cast<std::size_t>(max_blocks));
  }
  /// [tokens] Readable positions of \p row, L + q. \pre `0 <= row < rows`
  [[nodiscard]] constexpr auto row_length(std::int32_t row) const -> std::int32_t { return length[index_of(row)]; }
  /// [tokens] Positions that \p row computes in this step, q. \pre `0 <= row < rows`
  [[nodiscard]] constexpr auto row_queries(std::int32_t row) const -> std::int32_t {
    auto const i = index_of(row);
    return query_start[i + 1] - query_start[i];
  }
  /// All cells of \p row, the unused ones too. \pre `0 <= row < rows`
  [[nodiscard]] constexpr auto table_row(std::int32_t row) const -> std::span<std::int32_t const> {
    auto const width = static_cast<std::size_t>(max_blocks);
    return block_table.subspan(index_of(row) * width, width);
  }
  /// Blocks that \p row reads, in logical order: ⌈(length - first_position) / p_b⌉ cells.
  /// \pre `0 <= row < rows` and the view is valid
  [[nodiscard]] constexpr auto blocks_of_row(std::int32_t row) const -> std::span<std::int32_t const> {
    auto const i = index_of(row);
    auto const tokens = static_cast<std::size_t>(length[i] - first_position[i]);
    auto const unit = static_cast<std::size_t>(block_tokens);
    return table_row(row).first(tokens / unit + (tokens % unit != 0 ? 1 : 0));
  }
  /// Place of logical position \p at of \p row: block T[⌊t / p_b⌋], offset t mod p_b. \source S14
  /// \pre `0 <= row < rows` and `first_position <= at < length`: nothing beyond the length is ever read
  [[nodiscard]] constexpr auto locate(std::int32_t row, token_pos at) const -> token_place {
    auto const i = index_of(row);
    QUIRE_EXPECTS(at.value() >= static_cast<std::uint32_t>(first_position[i]));
    QUIRE_EXPECTS(at.value() < static_cast<std::uint32_t>(length[i]));
    auto const unit = static_cast<std::uint32_t>(block_tokens);
    auto const column = (at.value() - static_cast<std::uint32_t>(first_position[i])) / unit;
    auto const block = table_row(row)[column];
    return {.block = block < 0 ? block_id::none() : block_id{static_cast<std::uint32_t>(block)},
            .offset = token_count{at.value() % unit}};
  }

private:
  [[nodiscard]] constexpr auto index_of(std::int32_t row) const -> std::size_t {
    QUIRE_EXPECTS(row >= 0 && row < rows);
    return static_cast<std::size_t>(row);
  }
};

} // namespace quire
