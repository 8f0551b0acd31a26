// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// How the positions of one sequence are dealt to context-parallel ranks (S11).
///
/// ```
///   2 ranks, unit 4   positions  0123 4567 89ab cdef
///                     rank        0    1    0    1
///                     local      0123 0123 4567 4567
/// ```
/// Units are dealt in turn, so that every rank has about the same share of any sequence at any length.

#include <quire/core/config_error.hpp>
#include <quire/core/contract.hpp>
#include <quire/core/types.hpp>

#include <cstdint>

namespace quire {

/// Deals positions in units of `unit` tokens to `ranks` ranks in turn. A unit is commonly one block, so that
/// blocks stay whole.
struct context_split {
  std::uint32_t ranks = 1; ///< Ranks that share the positions.
  token_count unit{1};     ///< [tokens] dealt at a time.

  /// Refuses a split over nothing. \throws config_error
  constexpr void validate() const {
    if (ranks == 0 || unit == token_count{}) {
      throw config_error{"context_split: 0 ranks or units of 0 tokens: use at least 1 of each"};
    }
  }
  /// The rank that stores \p position. \throws config_error as `validate`. \complexity O(1)
  [[nodiscard]] constexpr auto owner_of(token_pos position) const -> std::uint32_t {
    validate();
    return position.value() / unit.value() % ranks;
  }
  /// The place of \p position among those of its rank: the position that the rank's block table is indexed with.
  /// Position encodings keep using \p position itself (S14). \throws config_error as `validate`. \complexity O(1)
  [[nodiscard]] constexpr auto local_position(token_pos position) const -> token_pos {
    validate();
    auto const round = position.value() / unit.value() / ranks;
    return token_pos{round * unit.value() + position.value() % unit.value()};
  }
  /// Positions of a sequence of \p length that \p rank stores; the shares of all ranks add up to \p length.
  /// \pre `rank < ranks`. \returns [tokens] \throws config_error as `validate`. \complexity O(1) \source S11
  [[nodiscard]] constexpr auto share_of(std::uint32_t rank, token_count length) const -> token_count {
    validate();
    QUIRE_EXPECTS(rank < ranks);
    auto const units = length.value() / unit.value();
    auto const rest = length.value() % unit.value();
    auto const whole = units / ranks + (rank < units % ranks ? 1U : 0U);
    return token_count{whole * unit.value() + (rank == units % ranks ? rest : 0U)};
  }
};

} // namespace quire
