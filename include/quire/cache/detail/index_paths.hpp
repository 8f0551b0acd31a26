// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The paths of a prefix index as they are at one moment, for pins that name only the end of theirs.

#include <quire/core/types.hpp>
#include <quire/prefix/node_id.hpp>
#include <quire/prefix/prefix_pin.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
class index_paths {
public:
  /// \throws std::bad_alloc \complexity O(nodes + units)
  template <class Index>
  explicit index_paths(Index const& index)
      : above_(std::size_t{index.capacity().value()} + 1), units_of_(above_.size()) {
    index.for_each_node([&](node_id node, node_id parent, auto units, std::uint32_t) {
      above_[node.value()] = parent;
      for (auto const unit : units) { units_of_[node.value()].push_back(unit_id{unit}); }
    });
  }
  /// Visits (units from the end, unit) of what \p pin holds, upwards. \pre the index is as it was
  template <class Visit>
  auto walk(prefix_pin const& pin, Visit visit) const -> void {
    std::uint32_t i = 0;
    for (auto at = pin.node(); at && !is_root(at); at = above_[at.value()]) {
      auto const& units = units_of_[at.value()];
      std::for_each(units.rbegin(), units.rend(), [&](unit_id unit) { visit(i++, unit); });
    }
  }
  /// Marks what hangs below a marked unit.
  auto spread(std::span<std::uint8_t> marked) const -> void {
    for (auto again = true; std::exchange(again, false);) {
      for (std::size_t n = 1; n < units_of_.size(); ++n) {
        if (units_of_[n].empty()) { continue; }
        auto const parent = above_[n];
        auto above = !is_root(parent) && marked[units_of_[parent.value()].back().value()] != 0;
        for (auto const unit : units_of_[n]) {
          auto& mark = marked[unit.value()];
          again = again || (above && mark == 0);
          above = above || mark != 0;
          mark = above ? 1 : 0;
        }
      }
    }
  }

private:
  std::vector<node_id> above_; // by node
  std::vector<std::vector<unit_id>> units_of_;
};
/// \endcond

} // namespace quire::detail
