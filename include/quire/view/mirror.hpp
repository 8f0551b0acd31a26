// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Keeps a copy of a persistent block table up to date from view to view.

#include <quire/core/contract.hpp>
#include <quire/view/batch_view.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace quire {

/// Brings \p mirror, a copy of the table of `view.buffer`, to the state of \p view: the whole table if
/// `view.whole_table`, else only the cells in `view.delta`. A device does the same with two kernels.
/// \pre `mirror` has the size of `view.block_table` and, unless `whole_table`, holds the table of the previous view
///   on the same buffer; `validate(view)` succeeded
/// \post (1) `mirror` equals `view.block_table`
/// \complexity O(changed cells), or O(table) for the first view
inline void update_mirror(batch_view const& view, std::span<std::int32_t> mirror) {
  QUIRE_EXPECTS(mirror.size() == view.block_table.size());
  if (view.whole_table) {
    for (std::size_t i = 0; i < mirror.size(); ++i) { mirror[i] = view.block_table[i]; }
    return;
  }
  for (auto const& change : view.delta) {
    auto const cell = static_cast<std::size_t>(change.row) * static_cast<std::size_t>(view.max_blocks) +
                      static_cast<std::size_t>(change.column);
    QUIRE_EXPECTS(cell < mirror.size());
    mirror[cell] = change.block;
  }
}

} // namespace quire
