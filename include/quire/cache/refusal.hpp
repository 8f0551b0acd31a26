// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Why a request was not let in, with the figures.

#include <quire/core/errc.hpp>
#include <quire/core/types.hpp>

#include <string>

namespace quire {

/// A refused admission. Nothing has changed, not even the order of eviction.
struct refusal {
  errc code = errc::no_blocks; ///< The reason.
  block_count needed{};        ///< Blocks the request needs beyond its hit.
  block_count promised{};      ///< Blocks owed to those that run.
  block_count available{};     ///< Blocks free or evictable.
  block_count capacity{};      ///< Blocks in the pool.
  group_id group{0};           ///< The layer group whose pool it is; `none()`: the prefix index, whose units they are.

  /// What was wrong, with figures, and what would work.
  [[nodiscard]] auto message() const -> std::string {
    auto text = std::string{quire::message(code)};
    if (code == errc::no_blocks || code == errc::never_fits) {
      text += " (needs " + std::to_string(needed.value()) + " blocks; " + std::to_string(available.value()) +
              " available, " + std::to_string(promised.value()) + " of them promised; the pool has " +
              std::to_string(capacity.value()) + ")";
      if (!group) {
        text += ", in the prefix index";
      } else if (group != group_id{0}) {
        text += ", in layer group " + std::to_string(group.value());
      }
    }
    return text;
  }
};

} // namespace quire
