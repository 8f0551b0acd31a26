// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// How large a page must be so that blocks of several sizes cut it without a rest.
///
/// ```text
///   blocks of 4 and of 6 bytes: the least common multiple is 12
///   page   [    4    |    4    |    4    ]   or   [      6       |      6       ]
/// ```
/// The least common multiple can be absurd: blocks of 1000 and of 1001 bytes meet at a megabyte. Above a limit, blocks are
/// made a little larger instead, so that they cut a smaller page: here 1000 becomes 1001, and a page is one block.

#include <quire/core/checked.hpp>
#include <quire/core/config_error.hpp>
#include <quire/core/types.hpp>

#include <algorithm> // std::max, std::max_element, std::min
#include <cstdint>
#include <numeric> // std::gcd
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace quire {

/// One page size for groups of several block sizes. Made by `plan_pages`.
struct page_plan {
  /// How one group cuts a page. `blocks * stride` is the page.
  struct cut {
    byte_count block{};       ///< [bytes] that a block needs.
    byte_count stride{};      ///< [bytes] from one block to the next: at least `block`.
    std::uint32_t blocks = 0; ///< Blocks per page.

    /// [bytes] of padding per block.
    [[nodiscard]] constexpr auto padding() const noexcept -> byte_count { return stride - block; }
    /// Same cut.
    friend constexpr auto operator==(cut const&, cut const&) noexcept -> bool = default;
  };

  byte_count page{}; ///< [bytes] of a page.
  std::optional<byte_count> common_multiple =
      {};                    ///< [bytes] the least common multiple of the blocks; none beyond 64 bits.
  std::vector<cut> groups{}; ///< One cut per group.

  /// True if the least common multiple was too large, so that some blocks are padded.
  [[nodiscard]] auto padded() const noexcept -> bool { return common_multiple != page; }
};

/// \cond INTERNAL
namespace detail {

/// Least common multiple; nothing if it exceeds 64 bits.
[[nodiscard]] inline auto least_common_multiple(std::span<byte_count const> sizes) -> std::optional<byte_count> {
  std::uint64_t out = 1;
  for (auto const size : sizes) {
    auto const rest = size.value() / std::gcd(out, size.value());
    if (__builtin_mul_overflow(out, rest, &out)) { return std::nullopt; }
  }
  return byte_count{out};
}

/// [bytes] The alignment that blocks of \p size bytes laid end to end have, up to 256.
[[nodiscard]] constexpr auto block_alignment(std::uint64_t size) noexcept -> std::uint64_t {
  return std::min<std::uint64_t>(size & (~size + 1), 256);
}

/// The most blocks of \p size bytes and a common stride that cut \p page without a rest, if they need at least the share
/// \p least of it. The stride is aligned as \p size is.
/// \returns 0 if there is no such number
[[nodiscard]] constexpr auto most_blocks(std::uint64_t page, std::uint64_t size, double least = 0.0) noexcept
    -> std::uint64_t {
  auto const alignment = block_alignment(size);
  if (page % alignment != 0) { return 0; }
  auto const units = page / alignment;
  auto const enough = least * static_cast<double>(page);
  auto blocks = page / size;
  while (blocks > 0 && units % blocks != 0) {
    --blocks;
    if (static_cast<double>(blocks * size) < enough) { return 0; }
  }
  return blocks;
}

} // namespace detail
/// \endcond

/// The least common multiple of \p block_bytes if that is at most \p limit. Otherwise a multiple of the largest block
/// (rounded up to what any block is aligned to), at most \p limit, for which the worst padded group is padded least; the
/// smallest of equally good ones.
/// \param block_bytes one size per group \param limit [bytes] of a page
/// \throws config_error without groups, for a block of 0 bytes, if no block of the largest group fits the limit, or if a page
///   would hold more than 2^31 - 1 blocks
/// \complexity O(groups) within the limit; else O(limit / largest · groups · limit / smallest) at worst \source B3
[[nodiscard]] inline auto plan_pages(std::span<byte_count const> block_bytes, byte_count limit) -> page_plan {
  if (block_bytes.empty()) { throw config_error{"plan_pages: no groups: name the block size of at least one"}; }
  for (auto const size : block_bytes) {
    if (size == byte_count{}) { throw config_error{"plan_pages: a block of 0 bytes: use at least 1"}; }
  }
  auto out = page_plan{.common_multiple = detail::least_common_multiple(block_bytes)};
  if (out.common_multiple && *out.common_multiple <= limit) {
    out.page = *out.common_multiple;
  } else {
    auto const largest = std::max_element(block_bytes.begin(), block_bytes.end())->value();
    std::uint64_t alignment = 1;
    for (auto const size : block_bytes) { alignment = std::max(alignment, detail::block_alignment(size.value())); }
    auto const unit = checked_add(largest, alignment - 1, "largest block") / alignment * alignment;
    auto best = 0.0; // of the group with most padding, the share of a page that is none
    for (auto page = unit; page <= limit.value() && best < 1.0; page += unit) {
      auto worst = 1.0;
      for (auto const size : block_bytes) {
        auto const blocks = detail::most_blocks(page, size.value(), best); // what is no better need not be known
        worst = std::min(worst, static_cast<double>(blocks * size.value()) / static_cast<double>(page));
        if (worst <= best) { break; }
      }
      if (worst > best) {
        best = worst;
        out.page = byte_count{page};
      }
      if (page > limit.value() - unit) { break; } // the sum may exceed 64 bits
    }
    if (out.page == byte_count{}) {
      throw config_error{"plan_pages: a page of at most " + std::to_string(limit.value()) +
                         " bytes holds no block of the largest group: use a limit of at least " + std::to_string(unit)};
    }
  }
  for (auto const size : block_bytes) {
    auto const blocks = detail::most_blocks(out.page.value(), size.value());
    if (blocks > 0x7fff'ffffU) {
      throw config_error{"plan_pages: more than 2^31 - 1 blocks in a page: use larger blocks"};
    }
    out.groups.push_back(
        {.block = size, .stride = byte_count{out.page.value() / blocks}, .blocks = static_cast<std::uint32_t>(blocks)});
  }
  return out;
}

} // namespace quire
