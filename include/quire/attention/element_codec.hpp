// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Reads and writes stored elements of every cache type, one at a time: the reference for fast conversions, and how the
/// oracle sees the bytes as stored.
///
/// Writing rounds to nearest, ties to even. Values beyond the range, infinities among them, become infinity in types wider
/// than 8 bits and the largest finite value in the others, as cache kernels do. NaN stays NaN, or 0 in types without it.

#include <quire/core/contract.hpp>
#include <quire/model/dtype.hpp>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace quire {

/// \cond INTERNAL
namespace detail {

/// A small floating-point format: sign, exponent, mantissa.
struct small_float {
  unsigned exponent_bits;
  unsigned mantissa_bits;
  bool infinity; // the largest exponent is infinity and NaN
  bool saturates;
  bool nan; // all ones is NaN although there is no infinity

  [[nodiscard]] constexpr auto bias() const noexcept -> int { return (1 << (exponent_bits - 1)) - 1; }
  [[nodiscard]] constexpr auto sign() const noexcept -> std::uint32_t { return 1U << (exponent_bits + mantissa_bits); }
  [[nodiscard]] constexpr auto top_exponent() const noexcept -> std::uint32_t { return (1U << exponent_bits) - 1; }
  /// Bits of the largest finite value.
  [[nodiscard]] constexpr auto largest() const noexcept -> std::uint32_t {
    auto const all = sign() - 1;
    return infinity ? (top_exponent() << mantissa_bits) - 1 : nan ? all - 1 : all;
  }

  [[nodiscard]] auto decode(std::uint32_t bits) const -> double {
    auto const negative = (bits & sign()) != 0;
    auto const magnitude = bits & (sign() - 1);
    auto const exponent = magnitude >> mantissa_bits;
    auto const mantissa = magnitude & ((1U << mantissa_bits) - 1);
    auto value = 0.0;
    if (magnitude > largest()) {
      value = infinity && mantissa == 0 ? std::numeric_limits<double>::infinity()
                                        : std::numeric_limits<double>::quiet_NaN();
    } else if (exponent == 0) {
      value = std::ldexp(static_cast<double>(mantissa), 1 - bias() - static_cast<int>(mantissa_bits));
    } else {
      value = std::ldexp(static_cast<double>(mantissa | (1U << mantissa_bits)),
                         static_cast<int>(exponent) - bias() - static_cast<int>(mantissa_bits));
    }
    return negative ? -value : value;
  }
  [[nodiscard]] auto encode(double value) const -> std::uint32_t {
    auto const negative = std::signbit(value) ? sign() : 0U;
    if (std::isnan(value)) {
      if (infinity) { return negative | (top_exponent() << mantissa_bits) | (1U << (mantissa_bits - 1)); }
      return nan ? negative | (sign() - 1) : 0U;
    }
    auto const beyond = negative | (infinity && !saturates ? top_exponent() << mantissa_bits : largest());
    auto const magnitude = std::fabs(value);
    if (std::isinf(magnitude)) { return beyond; }
    if (magnitude == 0.0) { return negative; }
    // one unit in the last place at this magnitude, or of the subnormals
    auto const least = 1 - bias();
    auto const exponent = std::ilogb(magnitude) < least ? least : std::ilogb(magnitude);
    auto const units = std::nearbyint(std::ldexp(magnitude, static_cast<int>(mantissa_bits) - exponent));
    auto const rounded = std::ldexp(units, exponent - static_cast<int>(mantissa_bits));
    if (rounded > decode(largest())) { return beyond; }
    // units = 2^mantissa_bits counts one exponent up: the carry of the sum below is right for it as for subnormals
    auto const base = static_cast<std::uint32_t>(exponent + bias() - 1) << mantissa_bits;
    return negative | (base + static_cast<std::uint32_t>(units));
  }
};

inline constexpr auto small_f16 = small_float{5, 10, true, false, true};
inline constexpr auto small_bf16 = small_float{8, 7, true, false, true};
inline constexpr auto small_e4m3 = small_float{4, 3, false, true, true};
inline constexpr auto small_e5m2 = small_float{5, 2, true, true, true};
inline constexpr auto small_e2m1 = small_float{2, 1, false, true, false};

[[nodiscard]] inline auto nearest_integer(double value, double least, double most) -> double {
  auto const rounded = std::nearbyint(value);
  if (std::isnan(rounded)) { return 0.0; }
  return rounded < least ? least : rounded > most ? most : rounded;
}

} // namespace detail
/// \endcond

/// The value of one stored element, without scales. \param bits in the low bits
[[nodiscard]] inline auto decode_element(dtype type, std::uint64_t bits) -> double {
  auto const small = static_cast<std::uint32_t>(bits);
  switch (type) {
  case dtype::f64: return std::bit_cast<double>(bits);
  case dtype::f32: return static_cast<double>(std::bit_cast<float>(small));
  case dtype::f16: return detail::small_f16.decode(small);
  case dtype::bf16: return detail::small_bf16.decode(small);
  case dtype::fp8_e4m3: return detail::small_e4m3.decode(small);
  case dtype::fp8_e5m2: return detail::small_e5m2.decode(small);
  case dtype::int8: return static_cast<double>(static_cast<std::int8_t>(small));
  case dtype::int4: return static_cast<double>(static_cast<int>(small & 7U) - static_cast<int>(small & 8U));
  case dtype::fp4_e2m1: return detail::small_e2m1.decode(small);
  }
  return 0.0;
}

/// The element that stores \p value, without scales: the nearest, ties to even. \returns it in the low bits
[[nodiscard]] inline auto encode_element(dtype type, double value) -> std::uint64_t {
  switch (type) {
  case dtype::f64: return std::bit_cast<std::uint64_t>(value);
  case dtype::f32: return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  case dtype::f16: return detail::small_f16.encode(value);
  case dtype::bf16: return detail::small_bf16.encode(value);
  case dtype::fp8_e4m3: return detail::small_e4m3.encode(value);
  case dtype::fp8_e5m2: return detail::small_e5m2.encode(value);
  case dtype::int8: return static_cast<std::uint8_t>(static_cast<int>(detail::nearest_integer(value, -128.0, 127.0)));
  case dtype::int4: return static_cast<std::uint64_t>(static_cast<int>(detail::nearest_integer(value, -8.0, 7.0)) & 15);
  case dtype::fp4_e2m1: return detail::small_e2m1.encode(value);
  }
  return 0;
}

/// \p value as it comes back from storage: what a cache of that type does to a number. \source S6
[[nodiscard]] inline auto stored_value(dtype type, double value) -> double {
  return decode_element(type, encode_element(type, value));
}

/// Reads element \p index of \p tensor, little endian; of two 4-bit elements in a byte the first is the low half.
/// \pre the element lies in the tensor
[[nodiscard]] inline auto load_element(dtype type, std::span<std::byte const> tensor, std::uint64_t index) -> double {
  auto const bits = std::uint64_t{bits_of(type)};
  if (bits == 4) {
    QUIRE_EXPECTS(index / 2 < tensor.size());
    return decode_element(type, std::to_integer<std::uint64_t>(tensor[index / 2]) >> (index % 2 * 4) & 15U);
  }
  auto const width = bits / 8;
  QUIRE_EXPECTS(index < tensor.size() / width);
  auto out = std::uint64_t{0};
  for (std::uint64_t i = 0; i < width; ++i) {
    out |= std::to_integer<std::uint64_t>(tensor[index * width + i]) << (8 * i);
  }
  return decode_element(type, out);
}

/// Writes element \p index of \p tensor. \pre as `load_element`
inline void store_element(dtype type, std::span<std::byte> tensor, std::uint64_t index, double value) {
  auto const bits = std::uint64_t{bits_of(type)};
  auto const element = encode_element(type, value);
  if (bits == 4) {
    QUIRE_EXPECTS(index / 2 < tensor.size());
    auto const shift = static_cast<int>(index % 2 * 4);
    auto& cell = tensor[index / 2];
    cell = (cell & ~(std::byte{15} << shift)) | (static_cast<std::byte>(element) << shift);
    return;
  }
  auto const width = bits / 8;
  QUIRE_EXPECTS(index < tensor.size() / width);
  for (std::uint64_t i = 0; i < width; ++i) {
    tensor[index * width + i] = static_cast<std::byte>(element >> (8 * i) & 0xFFU);
  }
}

} // namespace quire
