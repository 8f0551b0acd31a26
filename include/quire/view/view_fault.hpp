// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Every way in which a batch view or a CSR table can contradict itself.

#include <cstdint>
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

} // namespace quire
