// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The compressed-row form of a block table that FlashInfer and its relatives read.

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

} // namespace quire
