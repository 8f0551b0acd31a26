// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Amounts of memory as people write them: `8GiB`, `1.5 TiB`, `640MB`, `4096` (bytes).

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error> // std::errc
#include <utility>      // std::pair

namespace replay {

/// [bytes] that \p text says; nothing if it is no amount, 0, or beyond 2^53.
[[nodiscard]] inline auto memory_size(std::string_view text) -> std::optional<std::uint64_t> {
  constexpr std::array<std::pair<std::string_view, double>, 10> units{{{"", 1},
                                                                       {"B", 1},
                                                                       {"kB", 1e3},
                                                                       {"KiB", 1024.0},
                                                                       {"MB", 1e6},
                                                                       {"MiB", 1024.0 * 1024},
                                                                       {"GB", 1e9},
                                                                       {"GiB", 1024.0 * 1024 * 1024},
                                                                       {"TB", 1e12},
                                                                       {"TiB", 1024.0 * 1024 * 1024 * 1024}}};
  double amount = 0;
  auto const [stop, error] = std::from_chars(text.data(), text.data() + text.size(), amount, std::chars_format::fixed);
  if (error != std::errc{}) { return std::nullopt; }
  auto unit = text.substr(static_cast<std::size_t>(stop - text.data()));
  while (!unit.empty() && unit.front() == ' ') { unit.remove_prefix(1); }
  for (auto const& [name, bytes] : units) {
    if (unit != name) { continue; }
    auto const total = std::floor(amount * bytes);
    if (!(total >= 1 && total <= 9007199254740992.0)) { return std::nullopt; }
    return static_cast<std::uint64_t>(total);
  }
  return std::nullopt;
}

} // namespace replay
