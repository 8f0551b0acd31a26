// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What one sequence holds of a layer group that does not keep everything.
///
/// ```text
///   blocks   [ 4 | -  -  -  - | 9  2  7 ]        -: given up
///             sinks           gone      size
/// ```

#include <quire/core/types.hpp>

#include <cstdint>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
struct group_table {
  std::vector<block_id> blocks; // by logical block; none where given up
  std::uint32_t gone = 0;       // [blocks] first one behind what was given up; what lies before and is held are sinks
  std::uint32_t base = 0;       // [blocks] first one that views show
  std::uint32_t before = 0;     // [blocks] size before the open plan
  std::uint32_t held = 0;       // [blocks] entries that are not none, and the copy source
  std::uint32_t counted = 0;    // [blocks] `held` as the group's accounts know it
  std::uint32_t budget = 0;     // [blocks] it may hold at once; 0 before it begins and once it ends
  std::uint32_t planned = 0;    // [blocks] the budget of a sequence that is being admitted
  std::uint32_t stored = 0;     // [tokens] as in `sequence_state`
  block_id copy_source;         // shared block that the open plan copies from
  std::int64_t lane_shift = 0;  // slot - position, in the block at hand
  std::uint64_t stamp = 0;      // unique; a new one whenever entries that views show changed other than at the ends

  /// [tokens] Positions behind \p committed that are stored already.
  [[nodiscard]] auto skips(std::uint32_t committed) const noexcept -> std::uint32_t {
    return stored > committed ? stored - committed : 0;
  }
  [[nodiscard]] auto size() const noexcept -> std::uint32_t { return static_cast<std::uint32_t>(blocks.size()); }
};
/// \endcond

} // namespace quire::detail
