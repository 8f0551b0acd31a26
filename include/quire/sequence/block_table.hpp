// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Which physical block of one layer group holds which position of one sequence (S14).
///
/// ```text
///   blocks   [ 4 | -  -  -  - | 9  2  7 ]        -: released by a window
///             sinks     released end   size
///                  └ view begin
/// ```

#include <quire/core/contract.hpp>
#include <quire/core/detail/unfilled_vector.hpp>
#include <quire/core/types.hpp>
#include <quire/sequence/block_geometry.hpp>

#include <cstdint>

namespace quire {

/// A request's page table T in one layer group, and what the group's accounts know of it. Logical block j lies in physical
/// block T[j]; logical positions never derive from block numbers. Plain data; a cache's block group keeps its invariants.
struct block_table {
  std::int64_t slot_shift = 0;    ///< [slots] slot − position in the block at hand, for the append cursor.
  std::uint64_t version = 0;      ///< Unique; 0 = entries that views show have changed other than at the ends.
  std::uint32_t released_end = 0; ///< [blocks] First one behind what was released; held ones before it are sinks.
  std::uint32_t view_begin = 0;   ///< [blocks] First one that views show.
  detail::unfilled_vector<block_id> blocks; ///< By logical block; none where released.
  std::uint32_t skip_until =
      0;                     ///< [tokens] as in `sequence_lengths`, of this group: windows may lack what others have.
  std::uint32_t held = 0;    ///< [blocks] entries that are not none, and copy sources.
  std::uint32_t counted = 0; ///< [blocks] `held` as the group's accounts know it.
  std::uint32_t budget = 0;  ///< [blocks] it may hold at once (a group kept by block); 0 once the sequence ends.
  std::uint32_t owed = 0;    ///< [blocks] it was promised and has not taken (a group kept by path).

  /// Logical blocks, released ones included.
  [[nodiscard]] auto size() const noexcept -> std::uint32_t { return static_cast<std::uint32_t>(blocks.size()); }
  /// Where \p position is stored: block · p_b + offset. \pre the table covers it, and holds its block \source S14
  [[nodiscard]] auto slot(block_geometry const& geometry, token_pos position) const -> std::int64_t {
    auto const j = geometry.index(position.value());
    QUIRE_EXPECTS(j < size() && blocks[j]);
    return std::int64_t{blocks[j].value()} * geometry.block_tokens() + geometry.offset(position.value());
  }
  /// [tokens] Positions behind \p committed that this group has stored already.
  [[nodiscard]] auto skips(std::uint32_t committed) const noexcept -> std::uint32_t {
    return skip_until > committed ? skip_until - committed : 0;
  }
};

} // namespace quire
