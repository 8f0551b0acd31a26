// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What a look-up found, the right to a prefix, and what publishing did.

#include <quire/core/types.hpp>
#include <quire/prefix/node_id.hpp>

#include <cstdint>
#include <utility>

namespace quire {

/// The longest resident prefix of a prompt. Only a number until it is pinned: any change of the index may
/// invalidate it, so pin it in the same breath.
struct prefix_match {
  unit_count units;         ///< Units found from the start of the prompt.
  node_id node;             ///< Node that holds the last of them; the root if none.
  std::uint32_t offset = 0; ///< [units] of `node` that matched.
  node_id root;             ///< Where the look-up began.
};

/// How far one call of `publish` came.
struct publish_result {
  unit_count published; ///< Leading units that are in the index now.
  unit_id existing;     ///< Equal unit that others use, in place of the next one; the pin has moved to it.
  unit_id replaced;     ///< Equal unit that nobody used: the last published one took its place, and its number is free.
};

/// Move-only receipt for one pinned path of a prefix index, from the root to the end of a node: while it lives, none of
/// its units is evicted. Only the index that made it can use it; giving it back consumes it, so a second release cannot
/// be written.
class prefix_pin {
public:
  /// Pins nothing.
  prefix_pin() noexcept = default;
  /// Leaves \p other empty.
  prefix_pin(prefix_pin&& other) noexcept
      : node_{std::exchange(other.node_, node_id::none())}, root_{other.root_},
        owned_{std::exchange(other.owned_, false)} {}
  /// Leaves \p other empty. \pre this pin is empty: release it first.
  auto operator=(prefix_pin&& other) noexcept -> prefix_pin& {
    node_ = std::exchange(other.node_, node_id::none());
    root_ = other.root_;
    owned_ = std::exchange(other.owned_, false);
    return *this;
  }
  ~prefix_pin() = default;
  /// Node at whose end the pinned path ends; a root for the empty prefix, `none()` for an empty pin.
  [[nodiscard]] auto node() const noexcept -> node_id { return node_; }
  /// Root of the pinned path.
  [[nodiscard]] auto root() const noexcept -> node_id { return root_; }
  /// True if the holder of this pin created `node()`.
  [[nodiscard]] auto owned() const noexcept -> bool { return owned_; }
  /// True if this pins something, be it the empty prefix.
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(node_); }

private:
  friend class pin_maker;
  prefix_pin(node_id node, node_id root, bool owned) noexcept : node_{node}, root_{root}, owned_{owned} {}

  node_id node_;
  node_id root_;
  bool owned_ = false;
};

/// What an index derives from (privately) to make, move and take back pins; nobody else can.
class pin_maker {
protected:
  pin_maker() = default;
  ~pin_maker() = default;
  /// A pin on the path from \p root that ends with \p node. \param owned the holder created the node.
  [[nodiscard]] static auto make_pin(node_id node, node_id root, bool owned) noexcept -> prefix_pin {
    return {node, root, owned};
  }
  /// Lets \p pin end with \p node instead.
  static auto move_pin(prefix_pin& pin, node_id node, bool owned) noexcept -> void {
    pin.node_ = node;
    pin.owned_ = owned;
  }
  /// Empties \p pin. \returns where it ended.
  static auto take_pin(prefix_pin& pin) noexcept -> node_id { return std::exchange(pin.node_, node_id::none()); }
};

} // namespace quire
