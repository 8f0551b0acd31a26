// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Caller's memory for a CSR export.

#include <cstdint>
#include <span>

namespace quire {

/// Where a CSR export is written. Each span may be longer than needed; what is needed is said with each.
struct csr_buffers {
  /// At least `rows + 1`.
  std::span<std::int32_t> indptr;
  /// At least `csr_indices(view)`.
  std::span<std::int32_t> indices;
  /// At least `rows`.
  std::span<std::int32_t> last_block_length;
};

} // namespace quire
