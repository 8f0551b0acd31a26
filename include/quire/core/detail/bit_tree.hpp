// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A set of small integers with O(log64 n) insert, erase and minimum.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
/// Levels of 64-ary summary words: bit i of a word says that word i of the level below is not zero.
/// Six levels cover 2^36 members, so every operation touches at most six words.
class bit_tree {
public:
  explicit bit_tree(std::size_t size) {
    do {
      size = (size + 63) / 64;
      levels_[depth_++].assign(size, 0);
    } while (size > 1);
  }
  auto insert(std::size_t i) noexcept -> void {
    for (std::size_t level = 0; level < depth_; ++level, i /= 64) {
      auto& word = levels_[level][i / 64];
      auto const before = word;
      word |= bit(i);
      if (before != 0) { return; } // the summary above already says so
    }
  }
  auto erase(std::size_t i) noexcept -> void {
    for (std::size_t level = 0; level < depth_; ++level, i /= 64) {
      auto& word = levels_[level][i / 64];
      word &= ~bit(i);
      if (word != 0) { return; }
    }
  }
  [[nodiscard]] auto contains(std::size_t i) const noexcept -> bool { return (levels_[0][i / 64] & bit(i)) != 0; }
  [[nodiscard]] auto empty() const noexcept -> bool { return levels_[depth_ - 1][0] == 0; }
  /// \pre not empty
  [[nodiscard]] auto min() const noexcept -> std::size_t {
    std::size_t i = 0;
    for (std::size_t level = depth_; level-- > 0;) {
      i = i * 64 + static_cast<std::size_t>(std::countr_zero(levels_[level][i]));
    }
    return i;
  }

private:
  [[nodiscard]] static constexpr auto bit(std::size_t i) noexcept -> std::uint64_t {
    return std::uint64_t{1} << (i % 64);
  }
  std::array<std::vector<std::uint64_t>, 6> levels_;
  std::size_t depth_ = 0;
};
/// \endcond

} // namespace quire::detail
