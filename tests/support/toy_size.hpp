// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// How large a toy is.

#include <cstdint>
#include <ostream>

namespace quire_test {

/// The size of a toy.
struct toy_size {
  std::uint32_t block_tokens = 4;
  std::uint32_t blocks = 8;
  std::uint32_t buffers = 2;
  std::uint32_t sequences = 8;
  std::uint32_t rows = 6;
  bool skip_writes = true;
  bool scrub = false;
  friend auto operator<<(std::ostream& out, toy_size const& s) -> std::ostream& {
    return out << s.blocks << " blocks of " << s.block_tokens << ", " << s.buffers << " buffers, " << s.sequences
               << " sequences, " << s.rows << " rows" << (s.skip_writes ? "" : ", no skipped writes")
               << (s.scrub ? ", scrub" : "");
  }
};

} // namespace quire_test
