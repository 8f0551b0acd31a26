// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Comparing a prompt with stored blocks: the one loop that a look-up consists of.

#include <quire/core/types.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace quire::detail {

/// \cond INTERNAL
/// Accumulates the differences of 16 tokens (one cache line of stored tokens).
class difference_16 {
public:
#if defined(__AVX2__)
  auto add(token_id const* a, token_id const* b) noexcept -> void {
    auto const load = [](token_id const* p) { return _mm256_loadu_si256(reinterpret_cast<__m256i const*>(p)); };
    bits_ = _mm256_or_si256(bits_, _mm256_xor_si256(load(a), load(b)));
    bits_ = _mm256_or_si256(bits_, _mm256_xor_si256(load(a + 8), load(b + 8)));
  }
  [[nodiscard]] auto none() const noexcept -> bool { return _mm256_testz_si256(bits_, bits_) != 0; }

private:
  __m256i bits_ = _mm256_setzero_si256();
#else
  auto add(token_id const* a, token_id const* b) noexcept -> void {
    for (int i = 0; i < 16; ++i) { bits_[i % 8] |= static_cast<std::uint32_t>(a[i] ^ b[i]); }
  }
  [[nodiscard]] auto none() const noexcept -> bool {
    std::uint32_t all = 0;
    for (auto const word : bits_) { all |= word; }
    return all == 0;
  }

private:
  std::uint32_t bits_[8] = {};
#endif
};

/// True if \p n tokens are equal.
[[nodiscard]] inline auto equal_tokens(token_id const* a, token_id const* b, std::size_t n) noexcept -> bool {
  if (n == 16) {
    difference_16 d;
    d.add(a, b);
    return d.none();
  }
  return std::memcmp(a, b, n * sizeof(token_id)) == 0;
}

/// Number of leading blocks of \p query, out of \p count, that equal the stored blocks \p ids.
/// Stored blocks may lie anywhere, so lines are requested well ahead of their comparison: the loop runs at the speed
/// of parallel memory reads.
[[nodiscard]] inline auto equal_blocks(token_id const* query, token_id const* store, std::uint32_t const* ids,
                                       std::uint32_t count, std::size_t block_tokens) noexcept -> std::uint32_t {
  auto const stored = [=](std::uint32_t k) { return store + static_cast<std::size_t>(ids[k]) * block_tokens; };
  std::uint32_t k = 0;
  if (block_tokens == 16) {
    constexpr std::uint32_t ahead = 24;
    constexpr std::uint32_t step = 4;
    for (std::uint32_t i = 1; i < (count < ahead ? count : ahead); ++i) { __builtin_prefetch(stored(i)); }
    for (; k + step <= count; k += step) {
      if (k + ahead + step <= count) {
        for (std::uint32_t i = 0; i < step; ++i) { __builtin_prefetch(stored(k + ahead + i)); }
      }
      difference_16 d;
      for (std::uint32_t i = 0; i < step; ++i) { d.add(query + std::size_t{k + i} * 16, stored(k + i)); }
      if (!d.none()) { break; }
    }
  }
  while (k < count && equal_tokens(query + k * block_tokens, stored(k), block_tokens)) { ++k; }
  return k;
}
/// \endcond

} // namespace quire::detail
