// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The inner loops of the CPU backend: few queries against stored rows, many queries against converted ones.
///
///     few    dots        8 keys × 1 query, 4 × 2 or 2 × 4 in registers; each stored chunk is read and
///                        converted once for all of them
///            accumulate  outputs of some chunks stay in registers while all keys of the tile pass
///     many   multiply    C[6 × 2 vectors] += A · B, the usual block of a matrix product. With B = Qᵗ the scores of a tile
///                        come out with the queries side by side, so that the softmax needs no sums across lanes

#include <quire/attention/detail/cpu_codec.hpp>
#include <quire/attention/detail/cpu_simd.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

/// \cond INTERNAL
namespace quire::detail {

/// Some rows of one head as stored, and how many elements of each count.
struct cpu_stored_rows {
  std::byte const* base;
  std::uint64_t const* at; ///< \shape [count] bytes from `base`
  std::size_t count;
  std::size_t chunks; ///< [chunks] per row
  [[nodiscard]] auto row(std::size_t k) const noexcept -> std::byte const* { return base + at[k]; }
  [[nodiscard]] auto part(std::size_t first, std::size_t rows) const noexcept -> cpu_stored_rows {
    return {base, at + first, rows, chunks};
  }
};

/// A matrix of floats with rows `stride` floats apart.
struct cpu_rows {
  float* data;
  std::size_t stride;
  [[nodiscard]] auto row(std::size_t i) const noexcept -> float* { return data + i * stride; }
};

/// Adds the products of chunk \p c of some queries and keys, in registers: the loops are ordered so that what lives at the
/// same time (the sums, and either the queries' or the keys' part of the chunk) fits sixteen of them.
template <class Codec, std::size_t Queries, std::size_t Keys>
[[gnu::always_inline]] inline void cpu_dot_chunk(float const* const (&query)[Queries],
                                                 std::byte const* const (&key)[Keys], std::size_t c,
                                                 cpu_f32 (&sum)[Queries][Keys]) noexcept {
  if constexpr (Queries < Keys) {
    cpu_f32 x[Queries];
    cpu_f32 y[Queries];
#pragma GCC unroll 8
    for (std::size_t q = 0; q < Queries; ++q) {
      x[q] = cpu_held(cpu_load(query[q] + c * cpu_chunk));
      y[q] = cpu_held(cpu_load(query[q] + c * cpu_chunk + cpu_lanes));
    }
#pragma GCC unroll 8
    for (std::size_t k = 0; k < Keys; ++k) {
      cpu_f32 a;
      cpu_f32 b;
      Codec::chunk(key[k] + c * cpu_chunk * Codec::bytes, a, b);
#pragma GCC unroll 8
      for (std::size_t q = 0; q < Queries; ++q) { sum[q][k] = cpu_fma(y[q], b, cpu_fma(x[q], a, sum[q][k])); }
    }
  } else {
    cpu_f32 a[Keys];
    cpu_f32 b[Keys];
#pragma GCC unroll 8
    for (std::size_t k = 0; k < Keys; ++k) { Codec::chunk(key[k] + c * cpu_chunk * Codec::bytes, a[k], b[k]); }
#pragma GCC unroll 8
    for (std::size_t q = 0; q < Queries; ++q) {
      auto const x = cpu_held(cpu_load(query[q] + c * cpu_chunk));
      auto const y = cpu_held(cpu_load(query[q] + c * cpu_chunk + cpu_lanes));
#pragma GCC unroll 8
      for (std::size_t k = 0; k < Keys; ++k) { sum[q][k] = cpu_fma(x, a[k], sum[q][k]); }
#pragma GCC unroll 8
      for (std::size_t k = 0; k < Keys; ++k) { sum[q][k] = cpu_fma(y, b[k], sum[q][k]); }
    }
  }
}

/// Sums of products of some queries and keys.
template <class Codec, std::size_t Queries, std::size_t Keys>
[[gnu::always_inline]] inline void cpu_dot_block(float const* const (&query)[Queries], cpu_stored_rows keys,
                                                 cpu_f32 (&sum)[Queries][Keys]) noexcept {
  std::byte const* key[Keys];
#pragma GCC unroll 8
  for (std::size_t k = 0; k < Keys; ++k) { key[k] = keys.row(k); }
  std::size_t c = 0;
  for (; c + 2 <= keys.chunks; c += 2) { // by two: of bf16 a line of memory
    cpu_dot_chunk<Codec>(query, key, c, sum);
    cpu_dot_chunk<Codec>(query, key, c + 1, sum);
  }
  if (c < keys.chunks) { cpu_dot_chunk<Codec>(query, key, c, sum); }
}

/// scores[q][k] = query q · key k, for \p Queries queries from \p first on, in the order of the codec.
template <class Codec, std::size_t Queries>
[[gnu::always_inline]] inline void cpu_dots(cpu_rows query, std::size_t first, cpu_stored_rows keys,
                                            cpu_rows scores) noexcept {
  constexpr std::size_t step = Queries == 1 ? 8 : 4; // with eight sums the latency of their chains does not show
  float const* rows[Queries];
#pragma GCC unroll 8
  for (std::size_t q = 0; q < Queries; ++q) { rows[q] = query.row(first + q); }
  std::size_t k = 0;
  for (; k + step <= keys.count; k += step) {
    if constexpr (Queries == 4) {
      cpu_f32x4 by_key[4];
#pragma GCC unroll 2
      for (std::size_t j = 0; j < 4; j += 2) {
        cpu_f32 sum[4][2] = {};
        cpu_dot_block<Codec, 4, 2>(rows, keys.part(k + j, 2), sum);
        by_key[j] = cpu_sums(sum[0][0], sum[1][0], sum[2][0], sum[3][0]);
        by_key[j + 1] = cpu_sums(sum[0][1], sum[1][1], sum[2][1], sum[3][1]);
      }
      cpu_transpose(by_key);
#pragma GCC unroll 4
      for (std::size_t q = 0; q < 4; ++q) { cpu_store(scores.row(first + q) + k, by_key[q]); }
    } else {
      cpu_f32 sum[Queries][step] = {};
      cpu_dot_block<Codec, Queries, step>(rows, keys.part(k, step), sum);
#pragma GCC unroll 8
      for (std::size_t q = 0; q < Queries; ++q) {
#pragma GCC unroll 2
        for (std::size_t j = 0; j < step; j += 4) {
          cpu_store(scores.row(first + q) + k + j, cpu_sums(sum[q][j], sum[q][j + 1], sum[q][j + 2], sum[q][j + 3]));
        }
      }
    }
  }
  for (; k < keys.count; ++k) {
    cpu_f32 sum[Queries][1] = {};
    cpu_dot_block<Codec, Queries, 1>(rows, keys.part(k, 1), sum);
#pragma GCC unroll 8
    for (std::size_t q = 0; q < Queries; ++q) { scores.row(first + q)[k] = cpu_sum(sum[q][0]); }
  }
}

template <class Codec, std::size_t Queries, std::size_t Chunks>
[[gnu::always_inline]] inline void cpu_accumulate_block(cpu_rows weights, cpu_rows output, cpu_stored_rows values,
                                                        std::size_t chunk) noexcept {
  cpu_f32 sum[Queries][2 * Chunks];
#pragma GCC unroll 8
  for (std::size_t q = 0; q < Queries; ++q) {
#pragma GCC unroll 8
    for (std::size_t v = 0; v < 2 * Chunks; ++v) {
      sum[q][v] = cpu_load(output.row(q) + chunk * cpu_chunk + v * cpu_lanes);
    }
  }
  for (std::size_t k = 0; k < values.count; ++k) {
    cpu_f32 w[Queries];
#pragma GCC unroll 8
    for (std::size_t q = 0; q < Queries; ++q) { w[q] = cpu_splat(weights.row(q)[k]); }
#pragma GCC unroll 8
    for (std::size_t c = 0; c < Chunks; ++c) {
      cpu_f32 a;
      cpu_f32 b;
      Codec::chunk(values.row(k) + (chunk + c) * cpu_chunk * Codec::bytes, a, b);
#pragma GCC unroll 8
      for (std::size_t q = 0; q < Queries; ++q) {
        sum[q][2 * c] = cpu_fma(w[q], a, sum[q][2 * c]);
        sum[q][2 * c + 1] = cpu_fma(w[q], b, sum[q][2 * c + 1]);
      }
    }
  }
#pragma GCC unroll 8
  for (std::size_t q = 0; q < Queries; ++q) {
#pragma GCC unroll 8
    for (std::size_t v = 0; v < 2 * Chunks; ++v) {
      cpu_store(output.row(q) + chunk * cpu_chunk + v * cpu_lanes, sum[q][v]);
    }
  }
}

/// output[q] += Σ weights[q][k] · value k, for \p Queries queries, in the order of the codec.
template <class Codec, std::size_t Queries>
[[gnu::always_inline]] inline void cpu_accumulate(cpu_rows weights, cpu_rows output, cpu_stored_rows values) noexcept {
  constexpr std::size_t step = 4 / Queries;
  std::size_t c = 0;
  for (; c + step <= values.chunks; c += step) {
    cpu_accumulate_block<Codec, Queries, step>(weights, output, values, c);
  }
  for (; c < values.chunks; ++c) { cpu_accumulate_block<Codec, Queries, 1>(weights, output, values, c); }
}

/// Calls `use(width, first)` for blocks of 4, 2 and 1 out of \p count, the width as an integral constant.
template <class Use>
[[gnu::always_inline]] inline void cpu_in_blocks(std::size_t count, Use&& use) {
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) { use(std::integral_constant<std::size_t, 4>{}, i); }
  if (i + 2 <= count) {
    use(std::integral_constant<std::size_t, 2>{}, i);
    i += 2;
  }
  if (i < count) { use(std::integral_constant<std::size_t, 1>{}, i); }
}

/// The left factor: element (i, k) at data[i · row + k · column].
struct cpu_factor {
  float const* data;
  std::size_t row;
  std::size_t column;
};

template <std::size_t Rows>
[[gnu::always_inline]] inline void cpu_multiply_block(cpu_factor a, cpu_rows b, cpu_rows c, std::size_t depth,
                                                      float const* keep) noexcept {
  cpu_f32 sum[Rows][2] = {};
  if (keep != nullptr) {
#pragma GCC unroll 8
    for (std::size_t i = 0; i < Rows; ++i) {
      sum[i][0] = cpu_load(c.row(i)) * keep[i];
      sum[i][1] = cpu_load(c.row(i) + cpu_lanes) * keep[i];
    }
  }
  for (std::size_t k = 0; k < depth; ++k) {
    auto const x = cpu_load(b.row(k));
    auto const y = cpu_load(b.row(k) + cpu_lanes);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < Rows; ++i) {
      auto const w = cpu_splat(a.data[i * a.row + k * a.column]);
      sum[i][0] = cpu_fma(w, x, sum[i][0]);
      sum[i][1] = cpu_fma(w, y, sum[i][1]);
    }
  }
#pragma GCC unroll 8
  for (std::size_t i = 0; i < Rows; ++i) {
    cpu_store(c.row(i), sum[i][0]);
    cpu_store(c.row(i) + cpu_lanes, sum[i][1]);
  }
}

/// C = keep · C + A · B with C of \p rows × \p width; \p keep has a factor per row, null = 0.
/// \pre \p width is a multiple of a chunk
inline void cpu_multiply(cpu_factor a, cpu_rows b, cpu_rows c, std::size_t rows, std::size_t depth, std::size_t width,
                         float const* keep) noexcept {
  constexpr std::size_t tall = 6;
  for (std::size_t j = 0; j < width; j += cpu_chunk) {
    auto const right = cpu_rows{b.data + j, b.stride};
    std::size_t i = 0;
    auto const block = [&]<std::size_t Rows>(std::integral_constant<std::size_t, Rows>) {
      cpu_multiply_block<Rows>({a.data + i * a.row, a.row, a.column}, right, {c.row(i) + j, c.stride}, depth,
                               keep == nullptr ? nullptr : keep + i);
      i += Rows;
    };
    while (i + tall <= rows) { block(std::integral_constant<std::size_t, tall>{}); }
    if (i + 4 <= rows) { block(std::integral_constant<std::size_t, 4>{}); }
    if (i + 2 <= rows) { block(std::integral_constant<std::size_t, 2>{}); }
    if (i < rows) { block(std::integral_constant<std::size_t, 1>{}); }
  }
}

} // namespace quire::detail
/// \endcond
