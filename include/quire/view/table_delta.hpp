// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// One changed cell of a persistent block table.

#include <cstdint>

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

} // namespace quire
