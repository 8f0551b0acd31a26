// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// First published, first out, without orphans: the victim is the idle *leaf* run that was published earliest.
/// (A run's time is that of its first block; a run that its own publisher lengthens keeps it.) Hits move nothing. Once a
/// leaf has gone, its parent is older than every other leaf was, so a chain leaves from its end towards the next branch.
///
/// ```text
///   stamps   0 1 2 3 4 5 6 7 …            a node's stamp = its place in a ring of stamps
///   in order . x . . x . x . …            one bit per stamp, set while the node is an idle leaf
/// ```

#include <quire/core/detail/bit_tree.hpp>
#include <quire/prefix/concepts.hpp>
#include <quire/prefix/node_id.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace quire {

/// Nodes by publication stamp. Enter and leave are O(log64 nodes); stamps are renumbered once per `nodes` publications,
/// O(1) amortised.
class fifo_eviction {
public:
  /// Only idle leaves stand in the order: a parent is older than its children.
  static constexpr bool leaves_only = true;
  /// Hits do not count.
  static constexpr bool counts_uses = false;
  /// Longest run of blocks that may share one place in the order.
  static constexpr std::uint32_t max_run = 512;

  /// Room for \p nodes nodes.
  explicit fifo_eviction(node_count nodes)
      : stamp_(std::size_t{nodes.value()} + 1, unused), holder_(2 * (std::size_t{nodes.value()} + 1)),
        idle_{holder_.size()}, rank_(holder_.size()) {}

  /// A new node gets the next stamp.
  auto create(node_id node, node_id) noexcept -> void {
    stamp_[node.value()] = unused; // a reused number has no past
    if (next_ == holder_.size()) { renumber(); }
    stamp_[node.value()] = next_++;
  }
  /// Hits do not count.
  auto use(node_id) noexcept -> void {}
  /// \p node becomes an idle leaf.
  template <class Nodes>
  auto enter(Nodes&, node_id node) noexcept -> void {
    holder_[stamp_[node.value()]] = node.value();
    idle_.insert(stamp_[node.value()]);
  }
  /// \p node is used again, gets a child or is gone.
  template <class Nodes>
  auto leave(Nodes&, node_id node) noexcept -> void {
    idle_.erase(stamp_[node.value()]);
  }
  /// \p prefix shares the stamp of \p suffix; they are never leaves at the same time.
  template <class Nodes>
  auto split(Nodes&, node_id suffix, node_id prefix, bool) noexcept -> void {
    stamp_[prefix.value()] = stamp_[suffix.value()];
  }
  /// \p parent and \p child share their stamp.
  template <class Nodes>
  auto merge(Nodes&, node_id parent, node_id) noexcept -> void {
    stamp_[parent.value()] = unused;
  }
  /// Only its publisher may lengthen a run.
  [[nodiscard]] auto may_extend(node_id, bool owned) const noexcept -> bool { return owned; }
  /// Only what was one run before may become one again.
  [[nodiscard]] auto may_merge(node_id parent, node_id child) const noexcept -> bool {
    return stamp_[parent.value()] == stamp_[child.value()];
  }
  /// The node whose last blocks leave next.
  [[nodiscard]] auto victim() const noexcept -> node_id {
    return idle_.empty() ? node_id::none() : node_id{holder_[idle_.min()]};
  }

private:
  static constexpr std::uint32_t unused = 0xffff'ffffU;

  // Closes the gaps and keeps the order. At most `nodes` stamps are in use, so at least half of the ring is free again.
  auto renumber() noexcept -> void {
    std::fill(rank_.begin(), rank_.end(), 0U);
    for (auto const stamp : stamp_) {
      if (stamp != unused) { rank_[stamp] = 1; }
    }
    next_ = 0;
    for (auto& rank : rank_) { rank = rank != 0 ? next_++ : unused; }
    for (std::size_t old = 0; old < rank_.size(); ++old) { // new <= old, so moving upwards overwrites nothing
      if (rank_[old] == unused || rank_[old] == old) { continue; }
      holder_[rank_[old]] = holder_[old];
      if (idle_.contains(old)) {
        idle_.erase(old);
        idle_.insert(rank_[old]);
      }
    }
    for (auto& stamp : stamp_) {
      if (stamp != unused) { stamp = rank_[stamp]; }
    }
  }

  std::vector<std::uint32_t> stamp_;  // of a node
  std::vector<std::uint32_t> holder_; // node of a stamp while its bit is set
  detail::bit_tree idle_;
  std::vector<std::uint32_t> rank_; // scratch of renumber()
  std::uint32_t next_ = 0;
};
static_assert(eviction_policy<fifo_eviction>);

} // namespace quire
