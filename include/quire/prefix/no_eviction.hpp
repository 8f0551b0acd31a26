// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The null eviction policy.

#include <quire/prefix/concepts.hpp>
#include <quire/prefix/node_id.hpp>

#include <cstdint>

namespace quire {

/// Never gives up a cached block: the pool fills and then refuses. For engines that flush by hand.
struct no_eviction {
  /// What it is for: an index counts nothing as evictable.
  static constexpr bool evicts_nothing = true;
  /// Not relevant without an order.
  static constexpr bool leaves_only = false;
  /// Nothing is counted.
  static constexpr bool counts_uses = false;
  /// Longest run of blocks.
  static constexpr std::uint32_t max_run = 512;
  /// Needs no storage.
  explicit no_eviction(node_count) noexcept {}
  /// Nothing to note.
  auto create(node_id, node_id) noexcept -> void {}
  /// Nothing to note.
  auto use(node_id) noexcept -> void {}
  /// Nothing to note.
  template <class Nodes>
  auto enter(Nodes&, node_id) noexcept -> void {}
  /// Nothing to note.
  template <class Nodes>
  auto leave(Nodes&, node_id) noexcept -> void {}
  /// Nothing to note.
  template <class Nodes>
  auto split(Nodes&, node_id, node_id, bool) noexcept -> void {}
  /// Nothing to note.
  template <class Nodes>
  auto merge(Nodes&, node_id, node_id) noexcept -> void {}
  /// Runs may grow.
  [[nodiscard]] auto may_extend(node_id, bool) const noexcept -> bool { return true; }
  /// Runs may merge.
  [[nodiscard]] auto may_merge(node_id, node_id) const noexcept -> bool { return true; }
  /// Never a victim.
  [[nodiscard]] auto victim() const noexcept -> node_id { return node_id::none(); }
};
static_assert(eviction_policy<no_eviction>);

} // namespace quire
