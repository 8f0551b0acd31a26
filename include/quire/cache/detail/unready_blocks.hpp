// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Which blocks a lost device never finished, or may still write.

#include <quire/core/types.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
/// A set of blocks of the lead and of the window groups.
class unready_blocks {
public:
  /// \param windows the window groups. \throws std::bad_alloc
  template <class Windows>
  unready_blocks(block_count lead, Windows const& windows) : lead_(lead.value()), windows_(windows.size()) {
    for (std::size_t g = 0; g < windows.size(); ++g) { windows_[g].resize(windows[g].pool().capacity().value()); }
  }
  auto add(block_id block) noexcept -> void { lead_[block.value()] = 1; }
  auto add(std::size_t g, block_id block) noexcept -> void { windows_[g][block.value()] = 1; }
  [[nodiscard]] auto has(block_id block) const noexcept -> bool { return lead_[block.value()] != 0; }
  [[nodiscard]] auto has(std::size_t g, block_id block) const noexcept -> bool {
    return windows_[g][block.value()] != 0;
  }
  /// Non-zero for the blocks of the lead that are in the set.
  [[nodiscard]] auto lead() noexcept -> std::span<std::uint8_t> { return lead_; }
  /// Visits the blocks of window group \p g.
  template <class Visit>
  auto for_each(std::size_t g, Visit visit) const -> void {
    for (std::uint32_t b = 0; b < windows_[g].size(); ++b) {
      if (windows_[g][b] != 0) { visit(block_id{b}); }
    }
  }

private:
  std::vector<std::uint8_t> lead_;
  std::vector<std::vector<std::uint8_t>> windows_;
};
/// \endcond

} // namespace quire::detail
