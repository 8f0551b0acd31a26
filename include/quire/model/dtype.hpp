// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Types of stored cache elements, with their exact size in bits.

#include <quire/core/checked.hpp>
#include <quire/core/types.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility> // std::pair

namespace quire {

/// The type of one stored element. Sizes are kept in bits, so 4-bit types are exact (half a byte).
enum class dtype : std::uint8_t {
  f64,      ///< IEEE binary64, for reference caches.
  f32,      ///< IEEE binary32.
  f16,      ///< IEEE binary16.
  bf16,     ///< bfloat16.
  fp8_e4m3, ///< 8-bit float, 4 exponent bits, no infinity.
  fp8_e5m2, ///< 8-bit float, 5 exponent bits.
  int8,     ///< 8-bit two's complement.
  int4,     ///< 4-bit two's complement, two to a byte.
  fp4_e2m1, ///< 4-bit float, two to a byte.
};

/// Size of one element. \returns bits; 4 for the half-byte types. \source spec, symbols b_k and b_v
[[nodiscard]] constexpr auto bits_of(dtype type) noexcept -> std::uint32_t {
  switch (type) {
  case dtype::f64: return 64;
  case dtype::f32: return 32;
  case dtype::f16:
  case dtype::bf16: return 16;
  case dtype::fp8_e4m3:
  case dtype::fp8_e5m2:
  case dtype::int8: return 8;
  case dtype::int4:
  case dtype::fp4_e2m1: return 4;
  }
  return 0;
}

/// True for the types that cannot hold a 16-bit activation: caches of these are approximate modes.
/// \source S6
[[nodiscard]] constexpr auto is_quantised(dtype type) noexcept -> bool { return bits_of(type) <= 8; }

/// Bytes that \p elements packed elements take, rounded up to whole bytes once, at the end.
/// \throws config_error if the size does not fit 64 bits. \complexity O(1)
[[nodiscard]] constexpr auto packed_bytes(dtype type, std::uint64_t elements) -> byte_count {
  return byte_count{ceil_div(checked_mul(elements, bits_of(type), "bits of a row"), std::uint64_t{8})};
}

/// \cond INTERNAL
namespace detail {
inline constexpr std::array<std::pair<dtype, std::string_view>, 9> dtype_names{{
    {dtype::f64, "f64"},
    {dtype::f32, "f32"},
    {dtype::f16, "f16"},
    {dtype::bf16, "bf16"},
    {dtype::fp8_e4m3, "fp8_e4m3"},
    {dtype::fp8_e5m2, "fp8_e5m2"},
    {dtype::int8, "int8"},
    {dtype::int4, "int4"},
    {dtype::fp4_e2m1, "fp4_e2m1"},
}};
} // namespace detail
/// \endcond

/// The name of the type, as `parse_dtype` reads it.
[[nodiscard]] constexpr auto name_of(dtype type) noexcept -> std::string_view {
  for (auto const& [candidate, name] : detail::dtype_names) {
    if (candidate == type) { return name; }
  }
  return "unknown";
}

/// The type with the name \p text. \returns nothing if no type has it.
[[nodiscard]] constexpr auto parse_dtype(std::string_view text) noexcept -> std::optional<dtype> {
  for (auto const& [candidate, name] : detail::dtype_names) {
    if (name == text) { return candidate; }
  }
  return std::nullopt;
}

} // namespace quire
