// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// One persistent buffer of a batch view: padded rows that follow their sequences (S19).
///
/// A plan *expects* rows, which takes memory; a launch *adds* them, which takes none. Row i of a step is item i. If the same
/// sequence sat in row i of this buffer's last view, only its new blocks are written; otherwise the row is rewritten.
/// Whatever changes is listed, so that a device copy is patched and not sent again. The list has a fixed size: where more
/// has changed, to send the whole table is cheaper than to send the list.

#include <quire/sequence/block_geometry.hpp>
#include <quire/sequence/block_table.hpp>
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
    std::uint64_t version = 0;  // of the table it shows; 0 = none
    std::uint32_t filled = 0;   // columns that may not be -1
    std::uint32_t released = 0; // [blocks] as in the table it shows
  };

public:
  batch_rows(std::uint32_t rows, block_geometry geometry)
      : geometry_{geometry}, rows_(rows), first_position_(rows, 0), length_(rows, 0),
        query_start_(std::size_t{rows} + 1, 0) {
    make_room(2 * std::size_t{rows});
  }
  [[nodiscard]] auto capacity() const noexcept -> std::uint32_t { return static_cast<std::uint32_t>(rows_.size()); }

  /// Starts a step whose longest table has \p columns blocks. \pre no view on this buffer is in flight.
  /// \throws std::bad_alloc; nothing that a view shows has changed then
  auto begin(std::uint32_t columns) -> void {
    if (columns > columns_) {
      widen(std::max(columns, columns_ * 2));
      unseen_ = true;
    }
    delta_.clear();
    positions_ = 0;
    used_ = 0;
    expected_positions_ = 0;
  }
  /// Takes the memory that a next row of \p q positions needs. \throws std::bad_alloc
  auto make_ready(std::uint32_t q) -> void {
    auto const positions = expected_positions_ + q + rows_.size(); // one for every row after it
    if (positions > slot_.size()) { make_room(positions); }
  }
  /// Rows with \p q positions in all will come. \pre `make_ready`, but for one position a row
  auto expect(std::uint32_t q) noexcept -> void { expected_positions_ += q; }
  /// True if row \p r shows \p t as it is.
  [[nodiscard]] auto shows(std::size_t r, block_table const& t) const noexcept -> bool {
    auto const& row = rows_[r];
    return row.version == t.version && t.version != 0 && row.filled + t.view_begin >= t.size() &&
           row.released >= t.released_end;
  }
  /// Adds the next row: \p q new positions behind \p committed, the first \p skips of them without a write.
  /// \pre it was expected
  auto add(block_table const& t, std::uint32_t committed, std::uint32_t q, std::uint32_t skips) noexcept -> void {
    auto const r = next_row(t);
    length_[r] = static_cast<std::int32_t>(committed + q);
    auto* const slot = slot_.data() + positions_;
    auto* const position = position_.data() + positions_;
    auto j = geometry_.index(committed);
    auto offset = geometry_.offset(committed);
    for (std::uint32_t i = 0; i < q;) { // block by block
      auto const first = std::int64_t{t.blocks[j].value()} * geometry_.block_tokens() + offset;
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
  /// The same with one new position in the block at hand.
  auto add_next(block_table const& t, std::uint32_t committed) noexcept -> void {
    next_row(t);
    --used_;
    appender().write(0, committed, committed + t.slot_shift);
    take(1);
  }
  /// Writes rows with one new position each whose tables are shown already. Holds the places of the first of them, so that one
  /// count serves them all; `take` tells the rows how many there were.
  class row_appender {
  public:
    explicit row_appender(batch_rows& rows) noexcept
        : length_{rows.length_.data() + rows.used_}, query_start_{rows.query_start_.data() + rows.used_ + 1},
          slot_{rows.slot_.data() + rows.positions_}, position_{rows.position_.data() + rows.positions_},
          first_{static_cast<std::int32_t>(rows.positions_) + 1} {}
    /// Writes row \p k from here: one new position at \p slot behind \p committed.
    auto write(std::size_t k, std::uint32_t committed, std::int64_t slot) const noexcept -> void {
      length_[k] = static_cast<std::int32_t>(committed + 1);
      slot_[k] = slot;
      position_[k] = static_cast<std::int32_t>(committed);
      query_start_[k] = first_ + static_cast<std::int32_t>(k);
    }

  private:
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
  auto end() noexcept -> void {
    for (auto r = used_; r < shown_; ++r) {
      clear_from(r, 0);
      rows_[r] = {};
    }
    shown_ = used_;
    whole_ = std::exchange(unseen_, false);
  }
  /// Forgets whose blocks the rows show, and lets the next view be copied whole: this one never reached a device, or
  /// blocks have moved since.
  auto invalidate() noexcept -> void {
    for (auto& row : rows_) { row.version = 0; }
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

  auto next_row(block_table const& t) noexcept -> std::uint32_t {
    auto const r = used_++;
    auto& row = rows_[r];
    auto const columns = t.size() - t.view_begin;
    if (row.version != t.version) [[unlikely]] {
      row.version = t.version;
      first_position_[r] = static_cast<std::int32_t>(t.view_begin * geometry_.block_tokens());
      show(r, t, 0, columns);
      clear_from(r, columns);
    } else {
      if (row.released < t.released_end) [[unlikely]] {
        show(r, t, std::max(row.released, t.view_begin) - t.view_begin,
             std::min(t.released_end - t.view_begin, row.filled));
      }
      if (row.filled < columns) { show(r, t, row.filled, columns); }
    }
    row.filled = columns;
    row.released = t.released_end;
    return r;
  }
  /// Writes columns [\p begin, \p end) of row \p r.
  [[gnu::noinline]] auto show(std::uint32_t r, block_table const& t, std::uint32_t begin, std::uint32_t end) noexcept
      -> void {
    auto* cells = &table_[std::size_t{r} * columns_];
    for (auto c = begin; c < end; ++c) {
      auto const block = static_cast<std::int32_t>(t.blocks[t.view_begin + c].value()); // none is -1
      if (cells[c] == block) { continue; }
      cells[c] = block;
      list(r, c, block);
    }
  }
  auto clear_from(std::uint32_t r, std::uint32_t from) noexcept -> void {
    auto* cells = &table_[std::size_t{r} * columns_];
    for (auto c = from; c < rows_[r].filled; ++c) {
      cells[c] = nothing;
      list(r, c, nothing);
    }
  }
  auto list(std::uint32_t r, std::uint32_t c, std::int32_t block) noexcept -> void {
    if (delta_.size() == most_listed_) {
      unseen_ = true;
    } else {
      delta_.push_back({static_cast<std::int32_t>(r), static_cast<std::int32_t>(c), block});
    }
  }
  [[gnu::noinline]] auto make_room(std::size_t positions) -> void {
    auto const size = std::max(positions, 2 * slot_.size());
    slot_.resize(size);
    position_.resize(size);
  }
  /// \throws std::bad_alloc; nothing that a view shows has changed then
  auto widen(std::uint32_t columns) -> void {
    std::vector<std::int32_t> wider(rows_.size() * columns, nothing);
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      std::copy_n(table_.begin() + static_cast<std::ptrdiff_t>(r * columns_), columns_,
                  wider.begin() + static_cast<std::ptrdiff_t>(r * columns));
    }
    constexpr std::size_t short_list = 1024; // worth more than its bytes
    auto const most =
        std::max(wider.size() * sizeof(table_[0]) / sizeof(table_delta), std::min(wider.size(), short_list));
    delta_.reserve(most);
    most_listed_ = most;
    table_ = std::move(wider);
    columns_ = columns;
  }

  block_geometry geometry_;
  std::uint32_t columns_ = 0;
  std::size_t positions_ = 0; // of this step
  std::uint32_t used_ = 0;    // rows of this step
  std::size_t expected_positions_ = 0;
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
  std::size_t most_listed_ = 0;
};
/// \endcond

} // namespace quire::detail
