// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A multimap from 32-bit hash to node number in buckets of one cache line:
///
/// ```text
///   tag   [ t0 t1 … t11 ]  bytes of the hashes      overflow   entries whose home is here or earlier and which were
///   node  [ n0 n1 … n11 ]  0 = the lane is free                placed further on; 0 ends a search
/// ```
///
/// Erasing clears one lane and shifts nothing. A tag is a hint: the caller compares hash and content. Equal hashes are
/// allowed in any number.

#include <quire/prefix/detail/aligned_vector.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace quire::detail {

/// \cond INTERNAL
class bucket_table {
public:
  /// Room for \p capacity entries (load at most 3/4).
  explicit bucket_table(std::uint32_t capacity) : buckets_(capacity / 9 + 2) {}

  auto insert(std::uint32_t hash, std::uint32_t node) noexcept -> void {
    for (auto i = home(hash);; i = after(i)) {
      auto& bucket = buckets_[i];
      if (auto const free = lanes(bucket, 0); free != 0) {
        auto const lane = static_cast<unsigned>(std::countr_zero(free));
        bucket.tag[lane] = tag_of(hash);
        bucket.node[lane] = node;
        return;
      }
      ++bucket.overflow;
    }
  }
  /// \pre the entry exists
  auto erase(std::uint32_t hash, std::uint32_t node) noexcept -> void {
    for (auto i = home(hash);; i = after(i)) {
      auto& bucket = buckets_[i];
      if (auto const lane = lane_of(bucket, hash, node); lane < width) {
        bucket.tag[lane] = 0;
        bucket.node[lane] = 0;
        return;
      }
      --bucket.overflow;
    }
  }
  /// \pre the entry exists
  auto replace(std::uint32_t hash, std::uint32_t node, std::uint32_t by) noexcept -> void {
    for (auto i = home(hash);; i = after(i)) {
      auto& bucket = buckets_[i];
      if (auto const lane = lane_of(bucket, hash, node); lane < width) {
        bucket.node[lane] = by;
        return;
      }
    }
  }
  /// First node under \p hash, or under one with the same tag, for which \p equal(node) holds; 0 if none.
  template <class Equal>
  [[nodiscard]] auto find(std::uint32_t hash, Equal equal) const noexcept -> std::uint32_t {
    for (auto i = home(hash);; i = after(i)) {
      auto const& bucket = buckets_[i];
      for (auto found = lanes(bucket, tag_of(hash)); found != 0; found &= found - 1) {
        auto const node = bucket.node[static_cast<unsigned>(std::countr_zero(found))];
        if (equal(node)) { return node; }
      }
      if (bucket.overflow == 0) { return 0; }
    }
  }
  auto prefetch(std::uint32_t hash) const noexcept -> void { __builtin_prefetch(&buckets_[home(hash)]); }

  /// Entries in the table. \complexity O(capacity)
  [[nodiscard]] auto count() const noexcept -> std::size_t {
    std::size_t n = 0;
    for (auto const& bucket : buckets_) {
      for (auto const node : bucket.node) { n += node != 0 ? 1 : 0; }
    }
    return n;
  }
  [[nodiscard]] auto bytes() const noexcept -> std::size_t { return buckets_.size() * sizeof(line); }

private:
  static constexpr unsigned width = 12;
  struct alignas(cache_line) line {
    std::uint8_t tag[width] = {}; // 0 where the lane is free
    std::uint32_t overflow = 0;
    std::uint32_t node[width] = {};
  };
  static_assert(sizeof(line) == 64);

  /// Never 0. `home` reads the high bits, so that the low ones tell the entries of a bucket apart.
  [[nodiscard]] static auto tag_of(std::uint32_t hash) noexcept -> std::uint8_t {
    return static_cast<std::uint8_t>(hash % 255 + 1);
  }
  /// Bit i: lane i of \p bucket has \p tag.
  [[nodiscard]] static auto lanes(line const& bucket, std::uint8_t tag) noexcept -> std::uint32_t {
#if defined(__SSE2__)
    auto const row = _mm_load_si128(reinterpret_cast<__m128i const*>(bucket.tag)); // tags and overflow
    auto const equal = _mm_cmpeq_epi8(row, _mm_set1_epi8(static_cast<char>(tag)));
    return static_cast<std::uint32_t>(_mm_movemask_epi8(equal)) & ((1U << width) - 1);
#else
    std::uint32_t mask = 0;
    for (unsigned lane = 0; lane < width; ++lane) {
      mask |= static_cast<std::uint32_t>(bucket.tag[lane] == tag) << lane;
    }
    return mask;
#endif
  }
  /// Lane that holds \p node under \p hash, `width` if none.
  [[nodiscard]] static auto lane_of(line const& bucket, std::uint32_t hash, std::uint32_t node) noexcept -> unsigned {
    for (auto found = lanes(bucket, tag_of(hash)); found != 0; found &= found - 1) {
      auto const lane = static_cast<unsigned>(std::countr_zero(found));
      if (bucket.node[lane] == node) { return lane; }
    }
    return width;
  }
  [[nodiscard]] auto home(std::uint32_t hash) const noexcept -> std::size_t {
    return static_cast<std::size_t>((std::uint64_t{hash} * buckets_.size()) >> 32);
  }
  [[nodiscard]] auto after(std::size_t i) const noexcept -> std::size_t { return i + 1 == buckets_.size() ? 0 : i + 1; }

  aligned_vector<line> buckets_;
};
/// \endcond

} // namespace quire::detail
