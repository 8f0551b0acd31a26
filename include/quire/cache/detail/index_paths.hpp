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
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
class index_paths {
public:
  /// \throws std::bad_alloc \complexity O(nodes + blocks)
  template <class Index>
  index_paths(Index const& index, block_count capacity)
      : above_(std::size_t{capacity.value()} + 1), blocks_of_(above_.size()) {
    index.for_each_node([&](node_id node, node_id parent, auto blocks, std::uint32_t) {
      above_[node.value()] = parent;
      for (auto const block : blocks) { blocks_of_[node.value()].push_back(block_id{block}); }
    });
  }
  /// Visits (blocks from the end, block) of what \p pin holds, upwards.
  template <class Visit>
  auto walk(prefix_pin const& pin, Visit visit) const -> void {
    std::uint32_t i = 0;
    for (auto at = pin.node(); at && !is_root(at); at = above_[at.value()]) {
      auto const& blocks = blocks_of_[at.value()];
      std::for_each(blocks.rbegin(), blocks.rend(), [&](block_id block) { visit(i++, block); });
    }
  }

private:
  std::vector<node_id> above_; // by node
  std::vector<std::vector<block_id>> blocks_of_;
};
/// \endcond

} // namespace quire::detail
