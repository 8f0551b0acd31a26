// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// One persistent buffer of a batch view: padded rows that follow their sequences (S19).
///
/// Row i of a step is item i. If the same sequence sat in row i of this buffer's last view, only its new blocks are
/// written; otherwise the row is rewritten. Whatever changes is listed, so that a device copy is patched and not re-sent.

#include <quire/core/types.hpp>
#include <quire/sequence/block_geometry.hpp>
#include <quire/sequence/page_table.hpp>
#include <quire/view/batch_view.hpp>
#include <quire/view/table_delta.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
/// Whose blocks a row shows. Never leaves the cache.
struct row_key {
  std::uint32_t record = 0xffff'ffffU;
  std::uint32_t generation = 0;
  std::uint32_t version = 0;
  friend auto operator==(row_key const&, row_key const&) noexcept -> bool = default;
};

class batch_rows {
public:
  batch_rows(std::uint32_t rows, block_geometry geometry)
      : geometry_{geometry}, rows_(rows), first_position_(rows, 0), length_(rows, 0), query_start_(std::size_t{rows} + 1, 0) {
    slot_.reserve(rows);
    position_.reserve(rows);
    delta_.reserve(std::size_t{rows} * 2);
  }
  [[nodiscard]] auto capacity() const noexcept -> std::uint32_t { return static_cast<std::uint32_t>(rows_.size()); }

  /// Starts a step whose longest table has \p columns blocks. \pre no view on this buffer is in flight.
  auto begin(std::uint32_t columns) -> void {
    delta_.clear();
    slot_.clear();
    position_.clear();
    used_ = 0;
    whole_ = unseen_ || columns > columns_;
    unseen_ = false;
    if (columns > columns_) { widen(std::max(columns, columns_ * 2)); }
  }
  /// Adds the next row: \p q new positions behind \p committed, the first of them without a write if \p skip_first.
  auto add(row_key const& key, page_table const& table, std::uint32_t committed, std::uint32_t q, bool skip_first) -> void {
    auto const r = used_++;
    auto& row = rows_[r];
    if (row.key == key) {
      if (row.filled < table.size()) { show(r, table, row.filled); }
    } else {
      row.key = key;
      show(r, table, 0);
    }
    length_[r] = static_cast<std::int32_t>(committed + q);
    auto j = geometry_.index(committed);
    auto offset = geometry_.offset(committed);
    for (std::uint32_t i = 0; i < q; ++i) {
      slot_.push_back(std::int64_t{table[j].value()} * geometry_.block_tokens() + offset);
      position_.push_back(static_cast<std::int32_t>(committed + i));
      if (++offset == geometry_.block_tokens()) {
        offset = 0;
        ++j;
      }
    }
    if (skip_first) { slot_[slot_.size() - q] = -1; }
    query_start_[r + 1] = static_cast<std::int32_t>(slot_.size());
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
    for (auto& row : rows_) { row.key = {}; }
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
    v.slot = slot_;
    v.position = position_;
    v.delta = delta_;
    v.whole_table = whole_;
    return v;
  }

private:
  struct row_state {
    row_key key;
    std::uint32_t filled = 0; // columns that are not -1
  };
  static constexpr std::int32_t nothing = -1;

  auto show(std::uint32_t r, page_table const& table, std::uint32_t from) -> void {
    auto* cells = &table_[std::size_t{r} * columns_];
    for (auto c = from; c < table.size(); ++c) {
      auto const block = static_cast<std::int32_t>(table[c].value());
      if (cells[c] == block) { continue; }
      cells[c] = block;
      delta_.push_back({static_cast<std::int32_t>(r), static_cast<std::int32_t>(c), block});
    }
    clear_from(r, table.size());
    rows_[r].filled = table.size();
  }
  auto clear_from(std::uint32_t r, std::uint32_t from) -> void {
    auto* cells = &table_[std::size_t{r} * columns_];
    for (auto c = from; c < rows_[r].filled; ++c) {
      cells[c] = nothing;
      delta_.push_back({static_cast<std::int32_t>(r), static_cast<std::int32_t>(c), nothing});
    }
  }
  auto widen(std::uint32_t columns) -> void {
    std::vector<std::int32_t> wider(rows_.size() * columns, nothing);
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      std::copy_n(table_.begin() + static_cast<std::ptrdiff_t>(r * columns_), columns_, wider.begin() + static_cast<std::ptrdiff_t>(r * columns));
    }
    table_ = std::move(wider);
    columns_ = columns;
  }

  block_geometry geometry_;
  std::uint32_t columns_ = 0;
  std::uint32_t used_ = 0;  // rows of this step
  std::uint32_t shown_ = 0; // rows of the step before
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
