// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Doubly linked lists of nodes by 32-bit index. The links live in the node itself, so that leaving the order
/// touches the cache line that the pin has just touched; pointer hooks would make a node straddle two lines
/// (benchmarks/order.bench.cpp keeps the comparison with Boost.Intrusive).

#include <quire/prefix/node_id.hpp>

#include <cstdint>

namespace quire {

/// Neighbours of a node in an eviction order.
struct order_hook {
  std::uint32_t prev = 0; ///< Number of the node before, 0 = none.
  std::uint32_t next = 0; ///< Number of the node after, 0 = none.
};

/// Front and back of one list; the hooks belong to `Nodes`, which maps a node to its hook: `nodes.hook(node)`.
class order_list {
public:
  /// True if nothing is in the list.
  [[nodiscard]] auto empty() const noexcept -> bool { return front_ == 0; }
  /// First node, `none()` if empty.
  [[nodiscard]] auto front() const noexcept -> node_id { return front_ == 0 ? node_id::none() : node_id{front_}; }
  /// Adds \p node behind all others. \complexity O(1)
  template <class Nodes>
  auto push_back(Nodes& nodes, node_id node) noexcept -> void {
    nodes.hook(node) = {back_, 0};
    (back_ != 0 ? nodes.hook(node_id{back_}).next : front_) = node.value();
    back_ = node.value();
  }
  /// Adds \p node before all others. \complexity O(1)
  template <class Nodes>
  auto push_front(Nodes& nodes, node_id node) noexcept -> void {
    nodes.hook(node) = {0, front_};
    (front_ != 0 ? nodes.hook(node_id{front_}).prev : back_) = node.value();
    front_ = node.value();
  }
  /// Adds \p node right behind \p before, which is in the list. \complexity O(1)
  template <class Nodes>
  auto insert_after(Nodes& nodes, node_id before, node_id node) noexcept -> void {
    auto const next = nodes.hook(before).next;
    nodes.hook(node) = {before.value(), next};
    nodes.hook(before).next = node.value();
    (next != 0 ? nodes.hook(node_id{next}).prev : back_) = node.value();
  }
  /// Removes \p node, which is in the list. \complexity O(1)
  template <class Nodes>
  auto erase(Nodes& nodes, node_id node) noexcept -> void {
    auto const hook = nodes.hook(node);
    (hook.prev != 0 ? nodes.hook(node_id{hook.prev}).next : front_) = hook.next;
    (hook.next != 0 ? nodes.hook(node_id{hook.next}).prev : back_) = hook.prev;
  }

private:
  std::uint32_t front_ = 0;
  std::uint32_t back_ = 0;
};

} // namespace quire
