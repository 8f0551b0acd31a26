// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Vectors of floats for the CPU backend: the vector types of gcc and clang, as wide as the registers of the target.
///
/// Why not a library: what attention needs is load, multiply-add, select, one exponential and one transposed sum. The
/// compilers' own types give the same code for these on every target, a header that costs nothing to include, and one
/// body of source for SSE2, AVX2 and Neon: what is tested without special flags is what runs with them. Compile all
/// sources of a program for the same target, as for any header-only library.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

/// \cond INTERNAL
namespace quire::detail {

/// Floats in a vector.
#if defined(__AVX__)
inline constexpr std::size_t cpu_lanes = 8;
#define QUIRE_CPU_VECTOR __attribute__((vector_size(32)))
#else
inline constexpr std::size_t cpu_lanes = 4;
#define QUIRE_CPU_VECTOR __attribute__((vector_size(16)))
#endif

using cpu_f32 = float QUIRE_CPU_VECTOR;
using cpu_i32 = std::int32_t QUIRE_CPU_VECTOR;
using cpu_u32 = std::uint32_t QUIRE_CPU_VECTOR;
using cpu_f32x4 = float __attribute__((vector_size(16)));
#undef QUIRE_CPU_VECTOR

inline constexpr auto cpu_infinity = std::numeric_limits<float>::infinity();

/// The same value in all lanes. (Zero plus the value would be an addition: the value might be −0.)
#if defined(__AVX__)
[[nodiscard, gnu::always_inline]] inline auto cpu_splat(float v) noexcept -> cpu_f32 {
  return cpu_f32{v, v, v, v, v, v, v, v};
}
[[nodiscard, gnu::always_inline]] inline auto cpu_splat(std::int32_t v) noexcept -> cpu_i32 {
  return cpu_i32{v, v, v, v, v, v, v, v};
}
#else
[[nodiscard, gnu::always_inline]] inline auto cpu_splat(float v) noexcept -> cpu_f32 { return cpu_f32{v, v, v, v}; }
[[nodiscard, gnu::always_inline]] inline auto cpu_splat(std::int32_t v) noexcept -> cpu_i32 {
  return cpu_i32{v, v, v, v};
}
#endif
/// 0, 1, 2, …
[[nodiscard, gnu::always_inline]] inline auto cpu_iota() noexcept -> cpu_i32 {
  cpu_i32 out{};
  for (std::size_t i = 0; i < cpu_lanes; ++i) { out[i] = static_cast<std::int32_t>(i); }
  return out;
}
/// Reads \p Vector from memory of any alignment.
template <class Vector = cpu_f32>
[[nodiscard, gnu::always_inline]] inline auto cpu_load(void const* from) noexcept -> Vector {
  Vector out;
  __builtin_memcpy(&out, from, sizeof out);
  return out;
}
/// Writes \p value to memory of any alignment.
template <class Vector>
[[gnu::always_inline]] inline void cpu_store(void* to, Vector value) noexcept {
  __builtin_memcpy(to, &value, sizeof value);
}
/// a · b + c. Said explicitly where the target has it: gcc splits chains of multiply-adds when it tunes for some
/// processors, which costs the half of what the chains here could do.
[[nodiscard, gnu::always_inline]] inline auto cpu_fma(cpu_f32 a, cpu_f32 b, cpu_f32 c) noexcept -> cpu_f32 {
#if defined(__AVX__) && defined(__FMA__)
  return __builtin_ia32_vfmaddps256(a, b, c);
#else
  return a * b + c;
#endif
}
/// \p value, in a register: keeps compilers from loading it again for each of its uses.
[[nodiscard, gnu::always_inline]] inline auto cpu_held(cpu_f32 value) noexcept -> cpu_f32 {
#if defined(__AVX__)
  __asm__("" : "+x"(value));
#endif
  return value;
}
/// The greater one in each lane, \p a where they do not compare: a NaN in \p b is passed over.
[[nodiscard, gnu::always_inline]] inline auto cpu_max(cpu_f32 a, cpu_f32 b) noexcept -> cpu_f32 {
  return b > a ? b : a;
}
/// Lanes exchanged with those that are \p Distance away, in pairs.
template <std::size_t Distance>
[[nodiscard, gnu::always_inline]] inline auto cpu_swapped(cpu_f32 v) noexcept -> cpu_f32 {
#if defined(__AVX__)
  if constexpr (Distance == 4) { return __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3); }
  if constexpr (Distance == 2) { return __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5); }
  if constexpr (Distance == 1) { return __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6); }
#else
  if constexpr (Distance == 2) { return __builtin_shufflevector(v, v, 2, 3, 0, 1); }
  if constexpr (Distance == 1) { return __builtin_shufflevector(v, v, 1, 0, 3, 2); }
#endif
}
/// Sum of the lanes.
[[nodiscard, gnu::always_inline]] inline auto cpu_sum(cpu_f32 v) noexcept -> float {
  if constexpr (cpu_lanes == 8) { v += cpu_swapped<cpu_lanes / 2>(v); }
  v += cpu_swapped<2>(v);
  v += cpu_swapped<1>(v);
  return v[0];
}
/// The greatest lane. \pre none is NaN
[[nodiscard, gnu::always_inline]] inline auto cpu_top(cpu_f32 v) noexcept -> float {
  if constexpr (cpu_lanes == 8) { v = cpu_max(v, cpu_swapped<cpu_lanes / 2>(v)); }
  v = cpu_max(v, cpu_swapped<2>(v));
  v = cpu_max(v, cpu_swapped<1>(v));
  return v[0];
}
/// Rows become columns.
[[gnu::always_inline]] inline void cpu_transpose(cpu_f32x4 (&m)[4]) noexcept {
  auto const a = __builtin_shufflevector(m[0], m[1], 0, 4, 1, 5);
  auto const b = __builtin_shufflevector(m[2], m[3], 0, 4, 1, 5);
  auto const c = __builtin_shufflevector(m[0], m[1], 2, 6, 3, 7);
  auto const d = __builtin_shufflevector(m[2], m[3], 2, 6, 3, 7);
  m[0] = __builtin_shufflevector(a, b, 0, 1, 4, 5);
  m[1] = __builtin_shufflevector(a, b, 2, 3, 6, 7);
  m[2] = __builtin_shufflevector(c, d, 0, 1, 4, 5);
  m[3] = __builtin_shufflevector(c, d, 2, 3, 6, 7);
}
/// Sums of the lanes of four vectors.
[[nodiscard, gnu::always_inline]] inline auto cpu_sums(cpu_f32 a, cpu_f32 b, cpu_f32 c, cpu_f32 d) noexcept
    -> cpu_f32x4 {
#if defined(__AVX__)
  auto const pairs = [](cpu_f32 x, cpu_f32 y) noexcept {
    return __builtin_shufflevector(x, y, 0, 2, 8, 10, 4, 6, 12, 14) +
           __builtin_shufflevector(x, y, 1, 3, 9, 11, 5, 7, 13, 15);
  };
  auto const all = pairs(pairs(a, b), pairs(c, d));
  return __builtin_shufflevector(all, all, 0, 1, 2, 3) + __builtin_shufflevector(all, all, 4, 5, 6, 7);
#else
  auto const pairs = [](cpu_f32 x, cpu_f32 y) noexcept {
    return __builtin_shufflevector(x, y, 0, 2, 4, 6) + __builtin_shufflevector(x, y, 1, 3, 5, 7);
  };
  return pairs(pairs(a, b), pairs(c, d));
#endif
}

/// e^x for x ≤ 88; 0 below −87.3 (the least normal float is e^−87.3), NaN for NaN. Relative error below 2^-22.
[[nodiscard]] inline auto cpu_exp(cpu_f32 x) noexcept -> cpu_f32 {
  constexpr auto least = -87.3F;
  auto const lost = x < least; // what comes out below for these is thrown away
  // n = ⌊x / ln 2⌉: adding 1.5 · 2^23 rounds to an integer, which then stands in the low bits
  auto const shifted = cpu_fma(x, cpu_splat(1.44269504F), cpu_splat(12582912.0F));
  auto const n = shifted - 12582912.0F;
  auto const r = cpu_fma(n, cpu_splat(2.12194440e-4F), cpu_fma(n, cpu_splat(-0.693359375F), x)); // ln 2 in two parts
  auto p = cpu_splat(1.9875691500e-4F);
  p = cpu_fma(p, r, cpu_splat(1.3981999507e-3F));
  p = cpu_fma(p, r, cpu_splat(8.3334519073e-3F));
  p = cpu_fma(p, r, cpu_splat(4.1665795894e-2F));
  p = cpu_fma(p, r, cpu_splat(1.6666665459e-1F));
  p = cpu_fma(p, r, cpu_splat(5.0000001201e-1F));
  p = cpu_fma(p, r * r, r + 1.0F);
  auto const power = std::bit_cast<cpu_f32>((std::bit_cast<cpu_u32>(shifted) - 0x4B400000U + 127U) << 23);
  return lost ? cpu_f32{} : p * power; // multiplied, not added to the exponent: NaN stays NaN
}

/// tanh x. Relative error below 2^-21.
[[nodiscard]] inline auto cpu_tanh(cpu_f32 x) noexcept -> cpu_f32 {
  auto const z = x * x;
  auto p = cpu_splat(-5.70498872745e-3F); // near 0, where the difference below would lose digits
  p = p * z + 2.06390887954e-2F;
  p = p * z + -5.37397155531e-2F;
  p = p * z + 1.33314422036e-1F;
  p = p * z + -3.33332819422e-1F;
  auto const small = p * z * x + x;
  auto const size = x < 0.0F ? -x : x;
  auto const t = cpu_exp(size * -2.0F);
  auto const large = (1.0F - t) / (1.0F + t);
  return size < 0.625F ? small : x < 0.0F ? -large : large;
}

} // namespace quire::detail
/// \endcond
