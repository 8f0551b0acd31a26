// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Block tables as compressed rows, the form that FlashInfer and its relatives read: their export from a padded batch view, and
/// the one place where they are checked.

#include <quire/core/contract.hpp>
#include <quire/core/expected.hpp>
#include <quire/view/batch_view.hpp>
#include <quire/view/validate.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace quire {

/// Block tables of a batch without padding. Row b reads `indices[indptr[b] .. indptr[b + 1])`; its length is
/// `(indptr[b + 1] - indptr[b] - 1) * block_tokens + last_block_length[b]`, or 0 if it has no block. int32
/// throughout, because the kernels that read it index so.
struct csr_view {
  /// [tokens] per block, p_b.
  std::int32_t block_tokens = 0;
  /// \shape [B + 1] first index of each row; starts with 0.
  std::span<std::int32_t const> indptr = {};
  /// \shape [blocks of all rows] block ids in logical order.
  std::span<std::int32_t const> indices = {};
  /// \shape [B] tokens in the row's last block, 1..p_b; 0 for a row without blocks.
  std::span<std::int32_t const> last_block_length = {};

  /// Rows, B.
  [[nodiscard]] constexpr auto rows() const noexcept -> std::size_t { return last_block_length.size(); }
};

/// Where a CSR export is written. Each span may be longer than needed; what is needed is said with each.
struct csr_buffers {
  /// At least `rows + 1`.
  std::span<std::int32_t> indptr;
  /// At least `csr_indices(view)`.
  std::span<std::int32_t> indices;
  /// At least `rows`.
  std::span<std::int32_t> last_block_length;
};

/// Number of `indices` that the export of \p view needs: the blocks that its rows read.
/// \pre `validate(view)` succeeded  \complexity O(rows)
[[nodiscard]] inline auto csr_indices(batch_view const& view) -> std::size_t {
  std::size_t blocks = 0;
  for (std::int32_t row = 0; row < view.rows; ++row) { blocks += view.blocks_of_row(row).size(); }
  return blocks;
}

/// Writes the tables of \p view as compressed rows. Lengths count from each row's `first_position`, as the kernels that
/// read CSR know no other origin. Holes stay -1: such a view fits only kernels that skip them.
/// \pre `validate(view)` succeeded, \p out is large enough, and the blocks of all rows fit 31 bits
/// \returns the filled part of \p out
/// \post (1) `validate(result)` succeeds if the view has no holes; (2) every row has its blocks and its length
/// \complexity O(blocks); allocates nothing
[[nodiscard]] inline auto export_csr(batch_view const& view, csr_buffers out) -> csr_view {
  auto const rows = static_cast<std::size_t>(view.rows);
  auto const blocks = csr_indices(view);
  QUIRE_EXPECTS(out.indptr.size() >= rows + 1);
  QUIRE_EXPECTS(out.indices.size() >= blocks);
  QUIRE_EXPECTS(out.last_block_length.size() >= rows);
  QUIRE_EXPECTS(blocks <= 0x7FFF'FFFFU);
  std::size_t next = 0;
  out.indptr[0] = 0;
  for (std::int32_t row = 0; row < view.rows; ++row) {
    auto const i = static_cast<std::size_t>(row);
    auto const cells = view.blocks_of_row(row);
    for (auto const block : cells) { out.indices[next++] = block; }
    out.indptr[i + 1] = static_cast<std::int32_t>(next);
    auto const tokens = view.length[i] - view.first_position[i];
    // (tokens - 1) % p_b + 1 and not tokens % p_b: a full last block holds p_b tokens, not 0 (case 122)
    out.last_block_length[i] = tokens == 0 ? 0 : (tokens - 1) % view.block_tokens + 1;
  }
  return {.block_tokens = view.block_tokens,
          .indptr = out.indptr.first(rows + 1),
          .indices = out.indices.first(blocks),
          .last_block_length = out.last_block_length.first(rows)};
}

/// Checks compressed rows: sizes, order, block ids, last lengths. Kernels check none of these.
/// \returns nothing, or the first contradiction.
/// \complexity O(rows + blocks)  \source case 122
[[nodiscard]] inline auto validate(csr_view const& csr, view_rules const& rules = {}) -> expected<void, view_error> {
  if (csr.block_tokens <= 0) { return detail::fault(view_fault::header); }
  if (csr.indptr.size() != csr.rows() + 1) { return detail::fault(view_fault::array_size); }
  if (csr.indptr[0] != 0) { return detail::fault(view_fault::query_start, 0); }
  for (std::size_t row = 0; row < csr.rows(); ++row) {
    auto const named = static_cast<std::int32_t>(row);
    if (csr.indptr[row + 1] < csr.indptr[row]) { return detail::fault(view_fault::query_start, named); }
    auto const last = csr.last_block_length[row];
    auto const empty = csr.indptr[row + 1] == csr.indptr[row];
    if (empty ? last != 0 : (last < 1 || last > csr.block_tokens)) {
      return detail::fault(view_fault::last_block, named);
    }
  }
  if (csr.indices.size() != static_cast<std::size_t>(csr.indptr[csr.rows()])) {
    return detail::fault(view_fault::array_size);
  }
  for (std::size_t i = 0; i < csr.indices.size(); ++i) {
    if (csr.indices[i] == -1 && !rules.holes) { return detail::fault(view_fault::missing_block, -1, i, true); }
    if (!detail::cell_in_pool(csr.indices[i], rules)) { return detail::fault(view_fault::foreign_block, -1, i, true); }
  }
  return {};
}

} // namespace quire
