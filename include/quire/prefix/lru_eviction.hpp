// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Least recently used, deepest first: the default order.
///
/// ```text
///   path released:   root ── A ── B ── C          order:  … C  B  A  →  recent end
/// ```
///
/// A release enters its nodes deepest first, so a descendant always stands before its ancestors and the front
/// is always a leaf. Interior nodes stand in the order too: when their children leave they keep the time of their own
/// last use.

#include <quire/prefix/concepts.hpp>
#include <quire/prefix/node_id.hpp>
#include <quire/prefix/order_list.hpp>

#include <cstdint>

namespace quire {

/// One list of all idle nodes by the time of their last release. Every operation is O(1).
class lru_eviction {
public:
  /// Idle nodes stand in the order whether they have children or not.
  static constexpr bool leaves_only = false;
  /// Nothing is counted per use.
  static constexpr bool counts_uses = false;
  /// Longest run of blocks that may share one place in the order.
  static constexpr std::uint32_t max_run = 512;

  /// Needs no storage of its own.
  explicit lru_eviction(node_count) noexcept {}

  /// A new busy node.
  auto create(node_id, node_id) noexcept -> void {}
  /// One more request uses the node.
  auto use(node_id) noexcept -> void {}
  /// \p node becomes idle.
  template <class Nodes>
  auto enter(Nodes& nodes, node_id node) noexcept -> void {
    list_.push_back(nodes, node);
  }
  /// \p node is used again or gone.
  template <class Nodes>
  auto leave(Nodes& nodes, node_id node) noexcept -> void {
    list_.erase(nodes, node);
  }
  /// \p prefix was cut off the front of \p suffix; both have the same last use.
  template <class Nodes>
  auto split(Nodes& nodes, node_id suffix, node_id prefix, bool idle) noexcept -> void {
    if (idle) { list_.insert_after(nodes, suffix, prefix); }
  }
  /// \p child takes in \p parent, which entered right after it.
  template <class Nodes>
  auto merge(Nodes& nodes, node_id parent, node_id) noexcept -> void {
    list_.erase(nodes, parent);
  }
  /// Any sole user may lengthen a run: all of it has one last use.
  [[nodiscard]] auto may_extend(node_id, bool) const noexcept -> bool { return true; }
  /// Neighbours in the order may become one run.
  [[nodiscard]] auto may_merge(node_id, node_id) const noexcept -> bool { return true; }
  /// The node whose last blocks leave next.
  [[nodiscard]] auto victim() const noexcept -> node_id { return list_.front(); }

private:
  order_list list_;
};
static_assert(eviction_policy<lru_eviction>);

} // namespace quire
