// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// One persistent buffer of a batch view: padded rows that follow their sequences (S19).
///
/// Row i of a step is item i. If the same sequence sat in row i of this buffer's last view, only its new blocks are
/// written; otherwise the row is rewritten. Whatever changes is listed, so that a device copy is patched and not re-sent.

#include <quire/core/types.hpp>
#include <quire/sequence/block_geometry.hpp>
#include <quire/view/batch_view.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric> // std::iota
#include <span>
#include <utility>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
class batch_rows {
  struct row_state {
    std::uint64_t stamp = 0;  // of the sequence and table version it shows; 0 = none
    std::uint32_t filled = 0; // columns that may not be -1
    std::uint32_t gone = 0;   // [blocks] as in the table it shows
  };

public:
  /// What a row shows of a table: blocks from `base` on, of which those before `gone` may be given up (-1).
  struct source {
    std::uint64_t stamp; // of the table and its version
    std::span<block_id const> blocks;
    std::uint32_t base = 0;
    std::uint32_t gone = 0;
    [[nodiscard]] auto columns() const noexcept -> std::uint32_t {
      return static_cast<std::uint32_t>(blocks.size()) - base;
    }
  };

  batch_rows(std::uint32_t rows, block_geometry geometry)
      : geometry_{geometry}, rows_(rows), first_position_(rows, 0), length_(rows, 0),
        query_start_(std::size_t{rows} + 1, 0) {
    make_room(rows);
    delta_.reserve(std::size_t{rows} * 2);
  }
  [[nodiscard]] auto capacity() const noexcept -> std::uint32_t { return static_cast<std::uint32_t>(rows_.size()); }

  /// Starts a step whose longest table has \p columns blocks. \pre no view on this buffer is in flight.
  auto begin(std::uint32_t columns) -> void {
    delta_.clear();
    positions_ = 0;
    used_ = 0;
    whole_ = unseen_ || columns > columns_;
    unseen_ = false;
    if (columns > columns_) { widen(std::max(columns, columns_ * 2)); }
  }
  /// Adds the next row: \p q new positions behind \p committed, the first \p skips of them without a write.
  auto add(source const& from, std::uint32_t committed, std::uint32_t q, std::uint32_t skips) -> void {
    auto const r = next_row(from);
    length_[r] = static_cast<std::int32_t>(committed + q);
    if (auto const room = positions_ + q + rows_.size(); room > slot_.size()) {
      make_room(room);
    } // one for every row after it
    auto* const slot = slot_.data() + positions_;
    auto* const position = position_.data() + positions_;
    auto j = geometry_.index(committed);
    auto offset = geometry_.offset(committed);
    for (std::uint32_t i = 0; i < q;) { // block by block
      auto const first = std::int64_t{from.blocks[j].value()} * geometry_.block_tokens() + offset;
      auto const n = std::min(geometry_.block_tokens() - offset, q - i);
      std::iota(slot + i, slot + i + n, first); // one loop per width, so that both are vectorised
      i += n;
      offset = 0;
      ++j;
    }
    std::iota(position, position + q, static_cast<std::int32_t>(committed));
    std::fill_n(slot, std::min(skips, q), -1);
    positions_ += q;
    query_start_[r + 1] = static_cast<std::int32_t>(positions_);
  }
  /// The same with one new position at \p slot. \pre there is room for it
  auto add(source const& from, std::uint32_t committed, std::int64_t slot) -> void {
    next_row(from);
    --used_;
    appender().write(0, committed, slot);
    take(1);
  }
  /// Writes rows with one new position each whose tables are shown already. Holds the places of the first of them, so that one
  /// count serves them all; `take` tells the rows how many there were.
  class row_appender {
  public:
    explicit row_appender(batch_rows& rows) noexcept
        : rows_{rows.rows_.data() + rows.used_}, length_{rows.length_.data() + rows.used_},
          query_start_{rows.query_start_.data() + rows.used_ + 1}, slot_{rows.slot_.data() + rows.positions_},
          position_{rows.position_.data() + rows.positions_}, first_{static_cast<std::int32_t>(rows.positions_) + 1} {}
    /// True if row \p k from here shows \p columns of the table with \p stamp, and nothing that is \p gone.
    [[nodiscard]] auto shows(std::size_t k, std::uint64_t stamp, std::uint32_t columns,
                             std::uint32_t gone = 0) const noexcept -> bool {
      return rows_[k].stamp == stamp && rows_[k].filled >= columns && rows_[k].gone >= gone;
    }
    /// Writes row \p k from here: one new position at \p slot behind \p committed.
    auto write(std::size_t k, std::uint32_t committed, std::int64_t slot) const noexcept -> void {
      length_[k] = static_cast<std::int32_t>(committed + 1);
      slot_[k] = slot;
      position_[k] = static_cast<std::int32_t>(committed);
      query_start_[k] = first_ + static_cast<std::int32_t>(k);
    }

  private:
    row_state const* rows_;
    std::int32_t* length_;
    std::int32_t* query_start_;
    std::int64_t* slot_;
    std::int32_t* position_;
    std::int32_t first_;
  };
  [[nodiscard]] auto appender() noexcept -> row_appender { return row_appender{*this}; }
  auto take(std::uint32_t written) noexcept -> void {
    positions_ += written;
    used_ += written;
  }
  /// Ends the step: rows beyond it show nothing.
  auto end() -> void {
    for (auto r = used_; r < shown_; ++r) {
      clear_from(r, 0);
      rows_[r] = {};
    }
    shown_ = used_;
  }
  /// Forgets whose blocks the rows show, and lets the next view be copied whole: this one never reached a device, or
  /// blocks have moved since.
  auto distrust() noexcept -> void {
    for (auto& row : rows_) { row.stamp = 0; }
    unseen_ = true;
  }

  [[nodiscard]] auto view(std::int32_t buffer) const noexcept -> batch_view {
    batch_view v;
    v.rows = static_cast<std::int32_t>(used_);
    v.max_blocks = static_cast<std::int32_t>(columns_);
    v.block_tokens = static_cast<std::int32_t>(geometry_.block_tokens());
    v.buffer = buffer;
    v.block_table = table_;
    v.first_position = {first_position_.data(), used_};
    v.length = {length_.data(), used_};
    v.query_start = {query_start_.data(), std::size_t{used_} + 1};
    v.slot = {slot_.data(), positions_};
    v.position = {position_.data(), positions_};
    v.delta = delta_;
    v.whole_table = whole_;
    return v;
  }

private:
  static constexpr std::int32_t nothing = -1;

  auto next_row(source const& from) -> std::uint32_t {
    auto const r = used_++;
    auto& row = rows_[r];
    auto const columns = from.columns();
    if (row.stamp != from.stamp) [[unlikely]] {
      row.stamp = from.stamp;
      first_position_[r] = static_cast<std::int32_t>(from.base * geometry_.block_tokens());
      show(r, from, 0, columns);
      clear_from(r, columns);
    } else {
      if (row.gone < from.gone) [[unlikely]] {
        show(r, from, std::max(row.gone, from.base) - from.base, std::min(from.gone - from.base, row.filled));
      }
      if (row.filled < columns) { show(r, from, row.filled, columns); }
    }
    row.filled = columns;
    row.gone = from.gone;
    return r;
  }
  /// Writes columns [\p begin, \p end) of row \p r.
  [[gnu::noinline]] auto show(std::uint32_t r, source const& from, std::uint32_t begin, std::uint32_t end) -> void {
    auto* cells = &table_[std::size_t{r} * columns_];
    for (auto c = begin; c < end; ++c) {
      auto const block = static_cast<std::int32_t>(from.blocks[from.base + c].value()); // none is -1
      if (cells[c] == block) { continue; }
      cells[c] = block;
      delta_.push_back({static_cast<std::int32_t>(r), static_cast<std::int32_t>(c), block});
    }
  }
  auto clear_from(std::uint32_t r, std::uint32_t from) -> void {
    auto* cells = &table_[std::size_t{r} * columns_];
    for (auto c = from; c < rows_[r].filled; ++c) {
      cells[c] = nothing;
      delta_.push_back({static_cast<std::int32_t>(r), static_cast<std::int32_t>(c), nothing});
    }
  }
  [[gnu::noinline]] auto make_room(std::size_t positions) -> void {
    auto const size = std::max(positions, 2 * slot_.size());
    slot_.resize(size);
    position_.resize(size);
  }
  auto widen(std::uint32_t columns) -> void {
    std::vector<std::int32_t> wider(rows_.size() * columns, nothing);
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      std::copy_n(table_.begin() + static_cast<std::ptrdiff_t>(r * columns_), columns_,
                  wider.begin() + static_cast<std::ptrdiff_t>(r * columns));
    }
    table_ = std::move(wider);
    columns_ = columns;
  }

  block_geometry geometry_;
  std::uint32_t columns_ = 0;
  std::size_t positions_ = 0; // of this step
  std::uint32_t used_ = 0;    // rows of this step
  std::uint32_t shown_ = 0;   // rows of the step before
  bool whole_ = true;
  bool unseen_ = true; // no device has a copy of the table
  std::vector<row_state> rows_;
  std::vector<std::int32_t> table_;
  std::vector<std::int32_t> first_position_;
  std::vector<std::int32_t> length_;
  std::vector<std::int32_t> query_start_;
  std::vector<std::int64_t> slot_;
  std::vector<std::int32_t> position_;
  std::vector<table_delta> delta_;
};
/// \endcond

} // namespace quire::detail
