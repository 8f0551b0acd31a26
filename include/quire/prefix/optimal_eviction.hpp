// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The offline optimum (Belady) as an oracle for tests and benchmarks: the victim is the block that is used again
/// farthest in the future, deepest first. Whoever uses a block uses its ancestors, so a parent is never needed later than
/// its child and the order keeps the cache prefix-closed by itself.
///
/// The future must be told: before a request releases its path, `next_uses(span)` gives, for each depth on that path, the
/// number of the next request that uses the block at that depth (`never` if none).

#include <quire/prefix/concepts.hpp>
#include <quire/prefix/node_id.hpp>

#include <boost/intrusive/set.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace quire {

/// Nodes of one block ordered by next use. O(log nodes) per operation: an oracle, not a policy for serving.
class optimal_eviction {
public:
  /// Idle nodes stand in the order whether they have children or not.
  static constexpr bool leaves_only = false;
  /// Nothing is counted per use.
  static constexpr bool counts_uses = false;
  /// Every block has its own next use, so every block is a node.
  static constexpr std::uint32_t max_run = 1;
  /// Next use of a block that no later request uses.
  static constexpr std::uint32_t never = std::numeric_limits<std::uint32_t>::max();

  /// Room for \p nodes nodes.
  explicit optimal_eviction(node_count nodes) : items_(std::size_t{nodes.value()} + 1) {}
  optimal_eviction(optimal_eviction const&) = delete;
  auto operator=(optimal_eviction const&) -> optimal_eviction& = delete;
  ~optimal_eviction() { order_.clear(); }

  /// Tells when the blocks at depth 0, 1, … of the path that is released next are used again; deeper blocks never are.
  /// The span must stay valid until that release.
  auto next_uses(std::span<std::uint32_t const> by_depth) noexcept -> void { future_ = by_depth; }

  /// Notes the depth.
  auto create(node_id node, node_id parent) noexcept -> void {
    items_[node.value()].depth = is_root(parent) ? 0 : items_[parent.value()].depth + 1;
  }
  /// Nothing is counted.
  auto use(node_id) noexcept -> void {}
  /// \p node becomes idle with the next use told for its depth.
  template <class Nodes>
  auto enter(Nodes&, node_id node) noexcept -> void {
    auto& item = items_[node.value()];
    item.next_use = item.depth < future_.size() ? future_[item.depth] : never;
    order_.insert(item);
  }
  /// \p node is used again or gone.
  template <class Nodes>
  auto leave(Nodes&, node_id node) noexcept -> void {
    order_.erase(order_.iterator_to(items_[node.value()]));
  }
  /// Never called: nodes have one block.
  template <class Nodes>
  auto split(Nodes&, node_id, node_id, bool) noexcept -> void {}
  /// Never called: nodes have one block.
  template <class Nodes>
  auto merge(Nodes&, node_id, node_id) noexcept -> void {}
  /// One block per node.
  [[nodiscard]] auto may_extend(node_id, bool) const noexcept -> bool { return false; }
  /// One block per node.
  [[nodiscard]] auto may_merge(node_id, node_id) const noexcept -> bool { return false; }
  /// The node whose block leaves next.
  [[nodiscard]] auto victim() const noexcept -> node_id {
    return order_.empty() ? node_id::none() : node_id{static_cast<std::uint32_t>(&*order_.begin() - items_.data())};
  }

private:
  struct entry : boost::intrusive::set_base_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>> {
    std::uint32_t next_use = 0;
    std::uint32_t depth = 0;
    // First = farthest next use; then deepest; then any fixed order.
    friend auto operator<(entry const& a, entry const& b) noexcept -> bool {
      if (a.next_use != b.next_use) { return a.next_use > b.next_use; }
      if (a.depth != b.depth) { return a.depth > b.depth; }
      return &a < &b;
    }
  };
  std::vector<entry> items_;
  boost::intrusive::set<entry> order_;
  std::span<std::uint32_t const> future_;
};
static_assert(eviction_policy<optimal_eviction>);

} // namespace quire
