// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Stored elements to vectors of floats and back, for every format of the CPU backend.
///
/// Kernels read *chunks* of two vectors. bf16 is the upper half of a float, so that one load, one shift and one mask
/// make two vectors of it, the even elements and the odd ones: no widening. That order costs nothing, because a dot
/// product has no order and an output is put right once, at its end:
///
///     stored   0 1 2 3 4 5 6 7 …      chunk   [0 2 4 6 …] [1 3 5 7 …]      place(i) = i / 2 + (i odd ? lanes : 0)
///
/// Conversions give the values of `element_codec.hpp`, bit for bit.

#include <quire/attention/detail/cpu_simd.hpp>
#include <quire/core/contract.hpp>
#include <quire/model/dtype.hpp>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring> // std::memcpy
#include <limits>

/// \cond INTERNAL
namespace quire::detail {

static_assert(std::endian::native == std::endian::little, "the CPU backend reads cache bytes as little-endian numbers");

inline constexpr std::size_t cpu_chunk = 2 * cpu_lanes; // [elements]

template <class T>
[[nodiscard, gnu::always_inline]] inline auto cpu_bits(std::byte const* from) noexcept -> T {
  T out;
  std::memcpy(&out, from, sizeof out);
  return out;
}
template <class T>
[[gnu::always_inline]] inline void cpu_put(std::byte* to, T bits) noexcept {
  std::memcpy(to, &bits, sizeof bits);
}

/// Vectors of narrow integers, one per float lane. (vector_size wants a constant that depends on no parameter.)
using cpu_u16 = std::uint16_t __attribute__((vector_size(2 * cpu_lanes)));
using cpu_i16 = std::int16_t __attribute__((vector_size(2 * cpu_lanes)));
using cpu_u8 = std::uint8_t __attribute__((vector_size(cpu_lanes)));
using cpu_i8 = std::int8_t __attribute__((vector_size(cpu_lanes)));

/// Order of elements in memory.
struct cpu_plain_order {
  [[nodiscard]] static constexpr auto place(std::size_t i) noexcept -> std::size_t { return i; }
};
/// Even elements of each chunk, then odd ones.
struct cpu_paired_order {
  [[nodiscard]] static constexpr auto place(std::size_t i) noexcept -> std::size_t {
    return i - i % cpu_chunk + i % cpu_chunk / 2 + i % 2 * cpu_lanes;
  }
};

struct cpu_f32_codec : cpu_plain_order {
  static constexpr std::size_t bytes = 4;
  [[gnu::always_inline]] static void chunk(std::byte const* from, cpu_f32& a, cpu_f32& b) noexcept {
    a = cpu_load(from);
    b = cpu_load(from + bytes * cpu_lanes);
  }
  [[nodiscard, gnu::always_inline]] static auto vector(std::byte const* from) noexcept -> cpu_f32 {
    return cpu_load(from);
  }
  [[nodiscard]] static auto load(std::byte const* from) noexcept -> float { return cpu_bits<float>(from); }
  static void store(std::byte* to, float value) noexcept { cpu_put(to, value); }
};

struct cpu_bf16_codec : cpu_paired_order {
  static constexpr std::size_t bytes = 2;
  [[gnu::always_inline]] static void chunk(std::byte const* from, cpu_f32& a, cpu_f32& b) noexcept {
    auto const both = cpu_load<cpu_u32>(from);
    a = std::bit_cast<cpu_f32>(both << 16);
    b = std::bit_cast<cpu_f32>(both & 0xFFFF0000U);
  }
  [[nodiscard, gnu::always_inline]] static auto vector(std::byte const* from) noexcept -> cpu_f32 {
    return std::bit_cast<cpu_f32>(__builtin_convertvector(cpu_load<cpu_u16>(from), cpu_u32) << 16);
  }
  [[nodiscard]] static auto load(std::byte const* from) noexcept -> float {
    return std::bit_cast<float>(std::uint32_t{cpu_bits<std::uint16_t>(from)} << 16);
  }
  static void store(std::byte* to, float value) noexcept {
    auto const bits = std::bit_cast<std::uint32_t>(value);
    auto const nearest = (bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16; // ties to even; overflow gives infinity
    cpu_put(to, static_cast<std::uint16_t>(value != value ? (bits >> 16 & 0x8000U) | 0x7FC0U : nearest));
  }
};

struct cpu_f16_codec : cpu_plain_order {
  static constexpr std::size_t bytes = 2;
  /// Halves in the low bits of each lane.
  [[nodiscard, gnu::always_inline]] static auto widen(cpu_u32 half) noexcept -> cpu_f32 {
    auto const magnitude = half & 0x7FFFU;
    auto const normal = std::bit_cast<cpu_f32>((magnitude << 13) + (112U << 23)); // another bias
    auto const subnormal = __builtin_convertvector(std::bit_cast<cpu_i32>(magnitude), cpu_f32) * 0x1p-24F;
    auto const special = std::bit_cast<cpu_f32>((magnitude << 13) | 0x7F800000U);
    auto const value = magnitude < 0x400U ? subnormal : magnitude < 0x7C00U ? normal : special;
    return std::bit_cast<cpu_f32>(std::bit_cast<cpu_u32>(value) | (half & 0x8000U) << 16);
  }
  [[nodiscard, gnu::always_inline]] static auto vector(std::byte const* from) noexcept -> cpu_f32 {
#if defined(__AVX__) && defined(__F16C__)
    return __builtin_ia32_vcvtph2ps256(cpu_load<cpu_i16>(from));
#else
    return widen(__builtin_convertvector(cpu_load<cpu_u16>(from), cpu_u32));
#endif
  }
  [[gnu::always_inline]] static void chunk(std::byte const* from, cpu_f32& a, cpu_f32& b) noexcept {
    a = vector(from);
    b = vector(from + bytes * cpu_lanes);
  }
  [[nodiscard]] static auto load(std::byte const* from) noexcept -> float {
    return widen(cpu_u32{cpu_bits<std::uint16_t>(from)})[0];
  }
  static void store(std::byte* to, float value) noexcept {
    auto const all = std::bit_cast<std::uint32_t>(value);
    auto const sign = all >> 16 & 0x8000U;
    auto bits = all & 0x7FFFFFFFU;
    if (bits > 0x7F800000U) {
      bits = 0x7E00U; // NaN
    } else if (bits >= 0x477FF000U) {
      bits = 0x7C00U;                // 65520 and beyond: infinity
    } else if (bits < 0x38800000U) { // below 2^-14: adding 1/2 leaves units of 2^-24
      bits = std::bit_cast<std::uint32_t>(std::bit_cast<float>(bits) + 0.5F) - 0x3F000000U;
    } else {
      bits = (bits + 0xFFFU + (bits >> 13 & 1U) - (112U << 23)) >> 13;
    }
    cpu_put(to, static_cast<std::uint16_t>(sign | bits));
  }
};

struct cpu_e4m3_codec : cpu_plain_order {
  static constexpr std::size_t bytes = 1;
  static constexpr float largest = 448.0F;
  [[nodiscard, gnu::always_inline]] static auto widen(cpu_u32 code) noexcept -> cpu_f32 {
    auto const magnitude = code & 0x7FU;
    auto const normal = std::bit_cast<cpu_f32>((magnitude << 20) + (120U << 23));
    auto const subnormal = __builtin_convertvector(std::bit_cast<cpu_i32>(magnitude), cpu_f32) * 0x1p-9F;
    auto const value = magnitude < 8U       ? subnormal
                       : magnitude == 0x7FU ? cpu_splat(std::numeric_limits<float>::quiet_NaN())
                                            : normal;
    return std::bit_cast<cpu_f32>(std::bit_cast<cpu_u32>(value) | (code & 0x80U) << 24);
  }
  [[nodiscard, gnu::always_inline]] static auto vector(std::byte const* from) noexcept -> cpu_f32 {
    return widen(__builtin_convertvector(cpu_load<cpu_u8>(from), cpu_u32));
  }
  [[gnu::always_inline]] static void chunk(std::byte const* from, cpu_f32& a, cpu_f32& b) noexcept {
    a = vector(from);
    b = vector(from + bytes * cpu_lanes);
  }
  [[nodiscard]] static auto load(std::byte const* from) noexcept -> float {
    return widen(cpu_u32{cpu_bits<std::uint8_t>(from)})[0];
  }
  static void store(std::byte* to, float value) noexcept {
    auto const all = std::bit_cast<std::uint32_t>(value);
    auto bits = all & 0x7FFFFFFFU;
    if (bits > 0x7F800000U) {
      bits = 0x7FU;
    } else if (bits >= std::bit_cast<std::uint32_t>(largest)) {
      bits = 0x7EU;                  // saturates
    } else if (bits < 0x3C800000U) { // below 2^-6: adding 2^14 leaves units of 2^-9
      bits = std::bit_cast<std::uint32_t>(std::bit_cast<float>(bits) + 16384.0F) - 0x46800000U;
    } else {
      bits = (bits + 0x7FFFFU + (bits >> 20 & 1U) - (120U << 23)) >> 20;
    }
    cpu_put(to, static_cast<std::uint8_t>((all >> 24 & 0x80U) | bits));
  }
};

struct cpu_int8_codec : cpu_plain_order {
  static constexpr std::size_t bytes = 1;
  static constexpr float largest = 127.0F;
  [[nodiscard, gnu::always_inline]] static auto vector(std::byte const* from) noexcept -> cpu_f32 {
    return __builtin_convertvector(__builtin_convertvector(cpu_load<cpu_i8>(from), cpu_i32), cpu_f32);
  }
  [[gnu::always_inline]] static void chunk(std::byte const* from, cpu_f32& a, cpu_f32& b) noexcept {
    a = vector(from);
    b = vector(from + bytes * cpu_lanes);
  }
  [[nodiscard]] static auto load(std::byte const* from) noexcept -> float {
    return static_cast<float>(cpu_bits<std::int8_t>(from));
  }
  static void store(std::byte* to, float value) noexcept {
    auto const nearest = std::nearbyint(value);
    auto const kept = nearest != nearest ? 0.0F : nearest < -128.0F ? -128.0F : nearest > 127.0F ? 127.0F : nearest;
    cpu_put(to, static_cast<std::int8_t>(kept));
  }
};

/// True for the formats that have a codec.
[[nodiscard]] constexpr auto cpu_supports(dtype type) noexcept -> bool {
  return type == dtype::f32 || type == dtype::f16 || type == dtype::bf16 || type == dtype::fp8_e4m3 ||
         type == dtype::int8;
}

/// Calls \p use with the codec of \p type. \pre `cpu_supports(type)`
template <class Use>
auto with_cpu_codec(dtype type, Use&& use) -> decltype(auto) {
  switch (type) {
  case dtype::f16: return use(cpu_f16_codec{});
  case dtype::bf16: return use(cpu_bf16_codec{});
  case dtype::fp8_e4m3: return use(cpu_e4m3_codec{});
  case dtype::int8: return use(cpu_int8_codec{});
  case dtype::f32:
  case dtype::f64:
  case dtype::fp8_e5m2:
  case dtype::int4:
  case dtype::fp4_e2m1: break;
  }
  QUIRE_EXPECTS(type == dtype::f32);
  return use(cpu_f32_codec{});
}

} // namespace quire::detail
/// \endcond
