// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A multimap from 32-bit hash to node number in buckets of one cache line:
///
/// ```text
///   tag   [ t0 t1 t2 t3 t4 t5 t6 | overflow ]    overflow: entries whose home is here or earlier and which
///   node  [ n0 n1 n2 n3 n4 n5 n6 |    -     ]    were placed further on; 0 ends a search
/// ```
///
/// Erasing clears one lane and shifts nothing. Equal hashes are allowed in any number: the caller compares content.

#include <quire/prefix/detail/aligned_vector.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace quire::detail {

/// \cond INTERNAL
class bucket_table {
public:
  /// Room for \p capacity entries (load at most 5/7).
  explicit bucket_table(std::uint32_t capacity) : buckets_(capacity / 5 + 2) {}

  auto insert(std::uint32_t hash, std::uint32_t node) noexcept -> void {
    for (auto i = home(hash);; i = after(i)) {
      auto& bucket = buckets_[i];
      if (auto const free = lanes(bucket.node, 0); free != 0) {
        auto const lane = static_cast<unsigned>(std::countr_zero(free));
        bucket.tag[lane] = hash;
        bucket.node[lane] = node;
        return;
      }
      ++bucket.tag[overflow];
    }
  }
  /// \pre the entry exists
  auto erase(std::uint32_t hash, std::uint32_t node) noexcept -> void {
    for (auto i = home(hash);; i = after(i)) {
      auto& bucket = buckets_[i];
      if (auto const found = lanes(bucket.node, node); found != 0) {
        auto const lane = static_cast<unsigned>(std::countr_zero(found));
        bucket.node[lane] = 0;
        bucket.tag[lane] = 0;
        return;
      }
      --bucket.tag[overflow];
    }
  }
  /// \pre the entry exists
  auto replace(std::uint32_t hash, std::uint32_t node, std::uint32_t by) noexcept -> void {
    for (auto i = home(hash);; i = after(i)) {
      auto& bucket = buckets_[i];
      if (auto const found = lanes(bucket.node, node); found != 0) {
        bucket.node[static_cast<unsigned>(std::countr_zero(found))] = by;
        return;
      }
    }
  }
  /// First node under \p hash for which \p equal(node) holds, 0 if none.
  template <class Equal>
  [[nodiscard]] auto find(std::uint32_t hash, Equal equal) const noexcept -> std::uint32_t {
    for (auto i = home(hash);; i = after(i)) {
      auto const& bucket = buckets_[i];
      for (auto found = lanes(bucket.tag, hash); found != 0; found &= found - 1) {
        auto const node = bucket.node[static_cast<unsigned>(std::countr_zero(found))];
        if (node != 0 && equal(node)) { return node; }
      }
      if (bucket.tag[overflow] == 0) { return 0; }
    }
  }
  auto prefetch(std::uint32_t hash) const noexcept -> void { __builtin_prefetch(&buckets_[home(hash)]); }

  /// Entries in the table. \complexity O(capacity)
  [[nodiscard]] auto count() const noexcept -> std::size_t {
    std::size_t n = 0;
    for (auto const& bucket : buckets_) {
      for (unsigned lane = 0; lane < overflow; ++lane) { n += bucket.node[lane] != 0 ? 1 : 0; }
    }
    return n;
  }
  [[nodiscard]] auto bytes() const noexcept -> std::size_t { return buckets_.size() * sizeof(line); }

private:
  static constexpr unsigned overflow = 7;
  struct alignas(cache_line) line {
    std::uint32_t tag[8] = {};
    std::uint32_t node[8] = {};
  };
  static_assert(sizeof(line) == 64);

  /// Bit i: lane i of \p words equals \p value; the overflow lane never does.
  [[nodiscard]] static auto lanes(std::uint32_t const* words, std::uint32_t value) noexcept -> std::uint32_t {
#if defined(__AVX2__)
    auto const row = _mm256_load_si256(reinterpret_cast<__m256i const*>(words));
    auto const equal = _mm256_cmpeq_epi32(row, _mm256_set1_epi32(static_cast<int>(value)));
    return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(equal))) & 0x7fU;
#else
    std::uint32_t mask = 0;
    for (unsigned lane = 0; lane < overflow; ++lane) {
      mask |= static_cast<std::uint32_t>(words[lane] == value) << lane;
    }
    return mask;
#endif
  }
  [[nodiscard]] auto home(std::uint32_t hash) const noexcept -> std::size_t {
    return static_cast<std::size_t>((std::uint64_t{hash} * buckets_.size()) >> 32);
  }
  [[nodiscard]] auto after(std::size_t i) const noexcept -> std::size_t { return i + 1 == buckets_.size() ? 0 : i + 1; }

  aligned_vector<line> buckets_;
};
/// \endcond

} // namespace quire::detail
