// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// How far a sequence has come.
///
/// ```text
///   0 ─────────── known ───────── committed ──────── skip until
///     may publish        ids come          stored by others: computed,
///     when full          later             and not written
/// ```

#include <algorithm>
#include <cstdint>

namespace quire {

/// The lengths of one sequence. Arithmetic only. Invariant: known ≤ committed.
struct sequence_lengths {
  std::uint32_t committed = 0;  ///< [tokens] computed and ordered before every reader.
  std::uint32_t known = 0;      ///< [tokens] whose ids are known (B17).
  std::uint32_t skip_until = 0; ///< [tokens] Those behind `committed` lie in shared blocks already (S22, S28).

  /// [tokens] Positions to come that are stored already.
  [[nodiscard]] constexpr auto skips() const noexcept -> std::uint32_t {
    return skip_until > committed ? skip_until - committed : 0;
  }
  /// [tokens] that tables cover while no plan is open.
  [[nodiscard]] constexpr auto covered() const noexcept -> std::uint32_t { return std::max(committed, skip_until); }
  /// Cuts back to \p length. \pre `length <= committed`
  constexpr auto truncate(std::uint32_t length) noexcept -> void {
    committed = length;
    known = std::min(known, length);
    skip_until = 0;
  }
};

} // namespace quire
