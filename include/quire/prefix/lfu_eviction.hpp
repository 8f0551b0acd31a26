// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Least frequently used while cached; ties go to the least recently used, deepest first.
///
/// ```text
///   uses 1:  n7 → n3        uses 2:  n5        uses 9:  n1          front of the lowest non-empty list = victim
/// ```
///
/// Publishing a node is its first use; every request that is *admitted* onto it adds one to all nodes of its path. (Blocks that
/// a running sequence computes again or forks are no uses.) So a parent has at least its child's count: the order is
/// monotone like LRU and the victim is always a leaf. Counts are forgotten on eviction and saturate at 65 535 uses; beyond
/// that only recency decides.

#include <quire/core/detail/bit_tree.hpp>
#include <quire/prefix/concepts.hpp>
#include <quire/prefix/node_id.hpp>
#include <quire/prefix/order_list.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace quire {

/// One LRU list per use count. Every operation is O(1) (three words of a bitmap find the lowest count).
class lfu_eviction {
public:
  /// Idle nodes stand in the order whether they have children or not.
  static constexpr bool leaves_only = false;
  /// Every node on an attached path is counted.
  static constexpr bool counts_uses = true;
  /// Longest run of blocks that may share one place in the order.
  static constexpr std::uint32_t max_run = 512;

  /// Room for \p nodes nodes.
  explicit lfu_eviction(node_count nodes)
      : uses_(std::size_t{nodes.value()} + 1), lists_(std::size_t{max_uses} + 1), occupied_{std::size_t{max_uses} + 1} {
  }

  /// A new node has been used once, by its publisher.
  auto create(node_id node, node_id) noexcept -> void { uses_[node.value()] = 1; }
  /// One more request uses the node. \pre it is not in the order.
  auto use(node_id node) noexcept -> void {
    if (uses_[node.value()] < max_uses) { ++uses_[node.value()]; }
  }
  /// \p node becomes idle.
  template <class Nodes>
  auto enter(Nodes& nodes, node_id node) noexcept -> void {
    list_of(node).push_back(nodes, node);
    occupied_.insert(uses_[node.value()]);
  }
  /// \p node is used again or gone.
  template <class Nodes>
  auto leave(Nodes& nodes, node_id node) noexcept -> void {
    auto& list = list_of(node);
    list.erase(nodes, node);
    if (list.empty()) { occupied_.erase(uses_[node.value()]); }
  }
  /// \p prefix was cut off the front of \p suffix; both were used equally often.
  template <class Nodes>
  auto split(Nodes& nodes, node_id suffix, node_id prefix, bool idle) noexcept -> void {
    uses_[prefix.value()] = uses_[suffix.value()];
    if (idle) { list_of(suffix).insert_after(nodes, suffix, prefix); }
  }
  /// \p child takes in \p parent, which entered right after it.
  template <class Nodes>
  auto merge(Nodes& nodes, node_id parent, node_id) noexcept -> void {
    list_of(parent).erase(nodes, parent);
  }
  /// Only a publisher whose run nobody else has used may lengthen it: the new blocks have one use.
  [[nodiscard]] auto may_extend(node_id node, bool owned) const noexcept -> bool { return owned && uses(node) == 1; }
  /// Only equally used neighbours may become one run.
  [[nodiscard]] auto may_merge(node_id parent, node_id child) const noexcept -> bool {
    return uses(parent) == uses(child);
  }
  /// The node whose last blocks leave next.
  [[nodiscard]] auto victim() const noexcept -> node_id {
    return occupied_.empty() ? node_id::none() : lists_[occupied_.min()].front();
  }
  /// Requests that used \p node since it was published.
  [[nodiscard]] auto uses(node_id node) const noexcept -> std::uint32_t { return uses_[node.value()]; }

private:
  static constexpr std::uint32_t max_uses = 65535;
  [[nodiscard]] auto list_of(node_id node) noexcept -> order_list& { return lists_[uses_[node.value()]]; }

  std::vector<std::uint16_t> uses_;
  std::vector<order_list> lists_;
  detail::bit_tree occupied_;
};
static_assert(eviction_policy<lfu_eviction>);

} // namespace quire
