// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The usual slopes of ALiBi.

#include <quire/core/config_error.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

namespace quire {

/// Slopes of \p heads query heads: 2^(−8/n), 2^(−16/n), … for a power of two n; otherwise those of the next lower power
/// of two, then every other one of twice that many. \throws config_error if there is no head
/// \source B8; Press et al., "Train Short, Test Long", section 3 and its reference code
[[nodiscard]] inline auto alibi_slopes(std::uint32_t heads) -> std::vector<double> {
  if (heads == 0) { throw config_error{"alibi_slopes: 0 heads: use at least 1"}; }
  auto const power = std::bit_floor(heads);
  auto const slope = [](std::uint32_t index, std::uint32_t of) {
    return std::exp2(-8.0 * static_cast<double>(index) / static_cast<double>(of));
  };
  std::vector<double> out;
  out.reserve(heads);
  for (std::uint32_t i = 1; i <= power; ++i) { out.push_back(slope(i, power)); }
  for (std::uint32_t i = 1; out.size() < heads; i += 2) { out.push_back(slope(i, 2 * power)); }
  return out;
}

} // namespace quire
