// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// All runs of one trace, as the table, the files and the chart show them.

#include "replay/run_result.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace replay {

/// A run beside what is known about its optimum.
struct reported_run {
  run_result result;
  std::uint64_t bound = 0;  ///< [blocks] that the offline bound hits at this size.
  double floor_seconds = 0; ///< [s] of the floor; 0 = not measured.
};

/// Everything that is shown.
struct report {
  std::string trace_name;
  std::string mode;        ///< How it was replayed, in words.
  std::string memory;      ///< What --memory came to, in words.
  std::string explanation; ///< What the columns mean.
  std::uint32_t block_tokens = 0;
  std::size_t requests = 0;
  std::uint64_t references = 0; ///< [blocks] of all prompts.
  std::uint64_t distinct = 0;   ///< [blocks] different ones that are left behind.
  std::vector<reported_run> runs{};
};

/// \p part / \p whole, 0 of nothing.
[[nodiscard]] inline auto ratio(std::uint64_t part, std::uint64_t whole) noexcept -> double {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}
/// \p x to the nearest whole number. \pre it is not negative
[[nodiscard]] inline auto rounded(double x) noexcept -> std::uint64_t {
  return static_cast<std::uint64_t>(std::llround(x));
}

} // namespace replay
