// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Blocks of a group that hang on units and that nobody uses, in the group's own order of eviction.

#include <quire/core/types.hpp>
#include <quire/prefix/detail/idle_order.hpp>
#include <quire/prefix/node_id.hpp>
#include <quire/prefix/order_list.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
/// To the policy, a block is a node without children below one root. \tparam Eviction models `eviction_policy`.
template <class Eviction>
class idle_blocks {
public:
  /// \param blocks [blocks] of the group; 0 where the tree's order picks victims
  explicit idle_blocks(std::uint32_t blocks)
      : hooks_(blocks == 0 ? 0 : std::size_t{blocks} + 1), closed_marks_(hooks_.size()), order_{node_count{blocks}} {}

  /// [blocks] that are idle.
  [[nodiscard]] auto size() const noexcept -> std::uint32_t { return size_; }
  /// [blocks] of them that can be evicted.
  [[nodiscard]] auto evictable() const noexcept -> std::uint32_t { return evicts<Eviction> ? size_ : 0; }

  /// \p block begins to hang somewhere.
  auto create(block_id block) noexcept -> void { order_.policy().create(node_of(block), root); }
  /// \p block was found.
  auto use([[maybe_unused]] block_id block) noexcept -> void {
    if constexpr (Eviction::counts_uses) { order_.policy().use(node_of(block)); }
  }
  /// Nobody uses \p block any more. \param unreachable nobody can find it either: it leaves first
  auto enter(block_id block, bool unreachable) noexcept -> void {
    if (unreachable) {
      order_.enter_closed(*this, node_of(block));
    } else {
      order_.enter(*this, node_of(block));
    }
    ++size_;
  }
  auto leave(block_id block) noexcept -> void {
    order_.leave(*this, node_of(block));
    --size_;
  }
  /// Who leaves next, none if nobody can. \param goes tells if a block is idle and unreachable
  template <class Goes>
  [[nodiscard]] auto victim(Goes goes) noexcept -> block_id {
    auto const node = order_.victim(*this, static_cast<std::uint32_t>(hooks_.size()),
                                    [&](std::uint32_t n) { return goes(block_id{n - 1}); });
    return node ? block_id{node.value() - 1} : block_id::none();
  }
  /// Blocks have become unreachable that did not say so.
  auto sweep_again() noexcept -> void { order_.sweep_again(); }

  /// Takes all out and appends them to \p out, in their order; they are to `enter` again under the numbers they have then.
  /// \pre \p out has room
  auto take_all(std::vector<block_id>& out) -> void {
    while (auto const first = order_.first()) {
      out.push_back(block_id{first.value() - 1});
      leave(out.back());
    }
    if (order_.sweeping()) { order_.sweep_again(); } // they may come back behind the walk
  }

  /// For the order: the links of a node, and whether it stands among those that leave first.
  [[nodiscard]] auto hook(node_id node) noexcept -> order_hook& { return hooks_[node.value()]; }
  [[nodiscard]] auto closed_mark(node_id node) noexcept -> std::uint8_t& { return closed_marks_[node.value()]; }

private:
  static constexpr node_id root{root_bit};
  static auto node_of(block_id block) noexcept -> node_id { return node_id{block.value() + 1}; }

  std::vector<order_hook> hooks_;          // by node
  std::vector<std::uint8_t> closed_marks_; // by node
  idle_order<Eviction> order_;
  std::uint32_t size_ = 0;
};
/// \endcond

} // namespace quire::detail
