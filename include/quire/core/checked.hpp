// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Checked 64-bit arithmetic for sizes, and the one rounding rule. Sizes of real caches exceed 32 bits
/// (cases 115 and 116), so every size goes through these.

#include <quire/core/config_error.hpp>

#include <concepts>
#include <cstdint>
#include <string>

namespace quire {

/// `a * b`. \throws config_error naming \p what if the product does not fit 64 bits.
[[nodiscard]] constexpr auto checked_mul(std::uint64_t a, std::uint64_t b, char const* what) -> std::uint64_t {
  std::uint64_t out = 0;
  if (__builtin_mul_overflow(a, b, &out)) {
    throw config_error{std::string{what} + ": " + std::to_string(a) + " * " + std::to_string(b) + " exceeds 64 bits"};
  }
  return out;
}

/// `a + b`. \throws config_error naming \p what if the sum does not fit 64 bits.
[[nodiscard]] constexpr auto checked_add(std::uint64_t a, std::uint64_t b, char const* what) -> std::uint64_t {
  std::uint64_t out = 0;
  if (__builtin_add_overflow(a, b, &out)) {
    throw config_error{std::string{what} + ": " + std::to_string(a) + " + " + std::to_string(b) + " exceeds 64 bits"};
  }
  return out;
}

/// Smallest number of groups of \p b that hold \p a, without overflow. \pre `b > 0`.
template <std::unsigned_integral T>
[[nodiscard]] constexpr auto ceil_div(T a, T b) noexcept -> T {
  return static_cast<T>(a / b + (a % b != 0 ? 1 : 0));
}

/// \p a rounded up to a multiple of \p b. \pre `b > 0` and the result fits.
template <std::unsigned_integral T>
[[nodiscard]] constexpr auto round_up(T a, T b) noexcept -> T {
  return static_cast<T>(ceil_div(a, b) * b);
}

} // namespace quire
