// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// How many blocks a set of pages really holds when blocks are laid end to end across page borders (case 124).

#include <quire/core/checked.hpp>
#include <quire/core/config_error.hpp>

#include <cstdint>
#include <numeric> // std::gcd

namespace quire {

/// Sizes of pages and of the blocks laid end to end over them; block b covers the bytes [b·block, (b+1)·block).
struct page_fit {
  std::uint64_t page_bytes = 0;  ///< [bytes] of a page.
  std::uint64_t block_bytes = 0; ///< [bytes] of a block.

  /// Blocks that lie wholly inside page \p page. Some pages may hold none although others hold some.
  /// \throws config_error if a size is 0 or an address exceeds 64 bits. \complexity O(1) \source case 124
  [[nodiscard]] constexpr auto blocks_in_page(std::uint64_t page) const -> std::uint64_t {
    require_sizes();
    auto const begin = checked_mul(page, page_bytes, "address of a page");
    auto const end = checked_add(begin, page_bytes, "address of a page");
    auto const first = ceil_div(begin, block_bytes);
    auto const last = end / block_bytes;
    return last > first ? last - first : 0;
  }
  /// Blocks that lie wholly inside one of the pages [0, pages). Blocks that straddle a border are not
  /// counted: pages come and go one by one.
  /// \throws config_error as `blocks_in_page`. \complexity O(min(pages, lcm(page, block) / page)) \source case 124
  [[nodiscard]] constexpr auto blocks_in_pages(std::uint64_t pages) const -> std::uint64_t {
    require_sizes();
    auto const period = block_bytes / std::gcd(page_bytes, block_bytes); // [pages] after which the pattern repeats
    std::uint64_t whole = 0;
    std::uint64_t rest = 0;
    for (std::uint64_t page = 0; page < period && page < pages; ++page) {
      auto const here = blocks_in_page(page);
      whole += here;
      rest += page < pages % period ? here : 0;
    }
    return checked_add(checked_mul(whole, pages / period, "blocks in pages"), rest, "blocks in pages");
  }

private:
  constexpr void require_sizes() const {
    if (page_bytes == 0 || block_bytes == 0) {
      throw config_error{"page_fit: a page or block of 0 bytes: use at least 1"};
    }
  }
};

} // namespace quire
