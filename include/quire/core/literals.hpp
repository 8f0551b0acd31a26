// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Sizes as people write them: `using namespace quire::literals; cache_options{.bytes = 8_GiB}`.

#include <quire/core/checked.hpp>
#include <quire/core/types.hpp>

namespace quire::inline literals {

/// [2^10 bytes]
[[nodiscard]] constexpr auto operator""_KiB(unsigned long long n) -> byte_count {
  return byte_count{checked_mul(n, 1ULL << 10U, "KiB")};
}
/// [2^20 bytes]
[[nodiscard]] constexpr auto operator""_MiB(unsigned long long n) -> byte_count {
  return byte_count{checked_mul(n, 1ULL << 20U, "MiB")};
}
/// [2^30 bytes]
[[nodiscard]] constexpr auto operator""_GiB(unsigned long long n) -> byte_count {
  return byte_count{checked_mul(n, 1ULL << 30U, "GiB")};
}

} // namespace quire::inline literals
