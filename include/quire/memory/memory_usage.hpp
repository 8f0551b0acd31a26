// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Where the bytes of a memory of several groups are.
///
/// ```text
///   budget ─┬─ arena ─┬─ held by groups ─┬─ used       the blocks that were taken, as large as their group needs them
///           │         │                  ├─ padding    what those blocks are larger than that: internal fragmentation
///           │         │                  └─ external   free blocks that only the holding group can take
///           │         └─ free                          any group can take it
///           └─ left over                               no page fits in it
/// ```

#include <quire/core/types.hpp>

namespace quire {

/// Bytes of a memory of several groups now; of one group where it is said so. They are computed from counters and sizes.
/// \source B3
struct memory_usage {
  byte_count held{};    ///< [bytes] of the pages or shares that a group holds.
  byte_count used{};    ///< [bytes] that taken blocks need, padding aside.
  byte_count padding{}; ///< [bytes] by which taken blocks are larger: internal fragmentation.
  byte_count
      external{}; ///< [bytes] of free blocks, padding included, that no other group can take: external fragmentation.

  /// Share of the held bytes that lies in taken blocks without their padding, in [0, 1]; 1 if nothing is held.
  [[nodiscard]] constexpr auto utilisation() const noexcept -> double {
    return held == byte_count{} ? 1.0 : static_cast<double>(used.value()) / static_cast<double>(held.value());
  }
  /// Adds the bytes of another group.
  constexpr auto operator+=(memory_usage const& other) noexcept -> memory_usage& {
    held += other.held;
    used += other.used;
    padding += other.padding;
    external += other.external;
    return *this;
  }
  /// Same bytes.
  friend constexpr auto operator==(memory_usage const&, memory_usage const&) noexcept -> bool = default;
};

} // namespace quire
