// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Scopes that were opened, and the root of each in the prefix index.

#include <quire/core/contract.hpp>
#include <quire/core/types.hpp>
#include <quire/identity/scope_key.hpp>
#include <quire/prefix/node_id.hpp>

#include <cstdint>
#include <vector>

namespace quire {

/// Maps scope keys to small numbers by comparing their bytes: a digest decides nothing here.
class scope_table {
public:
  /// The number of \p key, new if it was never opened. \complexity O(scopes), cold path
  [[nodiscard]] auto open(scope_key const& key) -> scope_number {
    for (std::uint32_t i = 0; i < scopes_.size(); ++i) {
      if (scopes_[i].key == key) { return scope_number{i}; }
    }
    scopes_.push_back({key, node_id::none(), 0});
    return scope_number{static_cast<std::uint32_t>(scopes_.size() - 1)};
  }
  /// Root of \p scope in \p epoch; a new epoch gets a new root, so that everything older is unreachable.
  /// \pre \p scope was opened here.
  template <class Index>
  [[nodiscard]] auto root(scope_number scope, std::uint32_t epoch, Index& index) -> node_id {
    QUIRE_EXPECTS(scope.value() < scopes_.size());
    auto& entry = scopes_[scope.value()];
    if (!entry.root || entry.epoch != epoch) {
      entry.root = index.open_root(entry.key.bytes());
      entry.epoch = epoch;
    }
    return entry.root;
  }

private:
  struct opened {
    scope_key key;
    node_id root;
    std::uint32_t epoch;
  };
  std::vector<opened> scopes_;
};

} // namespace quire
