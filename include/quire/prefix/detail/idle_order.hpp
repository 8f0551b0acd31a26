// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The order in which idle nodes leave an index: first what nobody can find any more, then what the policy says.
///
/// ```text
///   close_root   everything below it is unreachable. Nothing is moved: O(1)
///   victim   1   leaves that became idle below a closed root      a list, fed by `enter_closed`
///            2   leaves that were idle already                    found by walking the nodes once
///            3   the policy's victim
/// ```
///
/// The list holds leaves only: what hangs below a node may have become idle before the root was closed, and must leave
/// before it all the same. A node with children stands in the policy's order until its last child has gone.

#include <quire/prefix/node_id.hpp>
#include <quire/prefix/order_list.hpp>

#include <cstdint>

namespace quire::detail {

/// \cond INTERNAL
/// False for policies that say so: `no_eviction`.
template <class Eviction>
inline constexpr bool evicts = !requires { requires Eviction::evicts_nothing; };

/// \tparam Eviction models `eviction_policy`. `Nodes` gives a node's hook and its mark: `closed_mark(node)`.
template <class Eviction>
class idle_order {
public:
  explicit idle_order(node_count nodes) : policy_{nodes} {}

  [[nodiscard]] auto policy() noexcept -> Eviction& { return policy_; }
  template <class Nodes>
  auto enter(Nodes& nodes, node_id node) noexcept -> void {
    policy_.enter(nodes, node);
  }
  /// \p leaf became idle below a closed root.
  template <class Nodes>
  auto enter_closed(Nodes& nodes, node_id leaf) noexcept -> void {
    nodes.closed_mark(leaf) = true;
    closed_.push_back(nodes, leaf);
  }
  /// The last child of an idle \p node below a closed root has gone.
  template <class Nodes>
  auto move_to_closed(Nodes& nodes, node_id node) noexcept -> void {
    if constexpr (!Eviction::leaves_only) { policy_.leave(nodes, node); }
    enter_closed(nodes, node);
  }
  template <class Nodes>
  auto leave(Nodes& nodes, node_id node) noexcept -> void {
    if (!nodes.closed_mark(node)) { return policy_.leave(nodes, node); }
    nodes.closed_mark(node) = false;
    closed_.erase(nodes, node);
  }
  /// \p prefix was cut off the front of \p suffix: if idle, a node with a child.
  template <class Nodes>
  auto split(Nodes& nodes, node_id suffix, node_id prefix, bool idle) noexcept -> void {
    auto const closed = nodes.closed_mark(suffix);
    policy_.split(nodes, suffix, prefix, idle && !closed);
    if constexpr (!Eviction::leaves_only) {
      if (closed) { policy_.enter(nodes, prefix); }
    }
  }
  /// \p child takes in \p parent, which became idle with it.
  template <class Nodes>
  auto merge(Nodes& nodes, node_id parent, node_id child) noexcept -> void {
    if (!nodes.closed_mark(child)) { return policy_.merge(nodes, parent, child); }
    if constexpr (!Eviction::leaves_only) { policy_.leave(nodes, parent); }
  }

  /// A root was closed: the nodes are walked once more.
  auto sweep_again() noexcept -> void { sweep_ = 1; }
  [[nodiscard]] auto sweeping() const noexcept -> bool { return sweep_ != 0; }
  /// The node whose last units leave next. \param goes tells if a node is an idle leaf below a closed root
  /// \complexity O(1), but for one walk over \p nodes_end nodes per closed root, shared by all evictions after it
  template <class Nodes, class Goes>
  [[nodiscard]] auto victim(Nodes&, std::uint32_t nodes_end, Goes goes) noexcept -> node_id {
    if constexpr (evicts<Eviction>) {
      if (!closed_.empty()) { return closed_.front(); }
      for (; sweep_ != 0; sweep_ = sweep_ + 1 < nodes_end ? sweep_ + 1 : 0) {
        if (goes(sweep_)) { return node_id{sweep_}; }
      }
    }
    return policy_.victim();
  }
  /// The victim as far as it is known without a walk.
  [[nodiscard]] auto first() const noexcept -> node_id { return closed_.empty() ? policy_.victim() : closed_.front(); }

private:
  [[no_unique_address]] Eviction policy_;
  order_list closed_;
  std::uint32_t sweep_ = 0; // next node of the walk; 0 = none is under way
};
/// \endcond

} // namespace quire::detail
