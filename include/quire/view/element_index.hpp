// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The integer type with which a device's kernels address elements.

#include <cstdint>
#include <limits>
#include <string_view>

namespace quire {

/// Type of the element index inside a kernel. Many kernels still compute it in 32 bits and then read the wrong place
/// without a word (cases 115 and 116).
enum class element_index : std::uint8_t {
  signed_32,   ///< `int`.
  unsigned_32, ///< `unsigned`.
  signed_64,   ///< `std::int64_t`.
};

/// Largest element index that \p width can hold.
[[nodiscard]] constexpr auto max_index(element_index width) noexcept -> std::uint64_t {
  switch (width) {
  case element_index::signed_32: return std::uint64_t{std::numeric_limits<std::int32_t>::max()};
  case element_index::unsigned_32: return std::uint64_t{std::numeric_limits<std::uint32_t>::max()};
  case element_index::signed_64: break;
  }
  return std::uint64_t{std::numeric_limits<std::int64_t>::max()};
}

/// Name of \p width, for messages.
[[nodiscard]] constexpr auto to_string(element_index width) noexcept -> std::string_view {
  switch (width) {
  case element_index::signed_32: return "signed 32-bit";
  case element_index::unsigned_32: return "unsigned 32-bit";
  case element_index::signed_64: break;
  }
  return "signed 64-bit";
}

} // namespace quire
