// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The right to a prefix: while a pin lives, none of its blocks is evicted.

#include <quire/prefix/node_id.hpp>

#include <utility>

namespace quire {

/// Move-only receipt for one pinned path of a prefix index, from the root to the end of a node. Only the index
/// that made it can use it; giving it back consumes it, so a second release cannot be written.
class prefix_pin {
public:
  /// Pins nothing.
  prefix_pin() noexcept = default;
  /// Leaves \p other empty.
  prefix_pin(prefix_pin&& other) noexcept
      : node_{std::exchange(other.node_, node_id::none())}, owned_{std::exchange(other.owned_, false)} {}
  /// Leaves \p other empty. \pre this pin is empty: release it first.
  auto operator=(prefix_pin&& other) noexcept -> prefix_pin& {
    node_ = std::exchange(other.node_, node_id::none());
    owned_ = std::exchange(other.owned_, false);
    return *this;
  }
  ~prefix_pin() = default;
  /// Node at whose end the pinned path ends; a root for the empty prefix, `none()` for an empty pin.
  [[nodiscard]] auto node() const noexcept -> node_id { return node_; }
  /// True if the holder of this pin created `node()`.
  [[nodiscard]] auto owned() const noexcept -> bool { return owned_; }
  /// True if this pins something, be it the empty prefix.
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(node_); }

private:
  friend class pin_maker;
  prefix_pin(node_id node, bool owned) noexcept : node_{node}, owned_{owned} {}

  node_id node_;
  bool owned_ = false;
};

/// What an index derives from (privately) to make, move and take back pins; nobody else can.
class pin_maker {
protected:
  pin_maker() = default;
  ~pin_maker() = default;
  /// A pin on the path that ends with \p node. \param owned the holder created the node.
  [[nodiscard]] static auto make_pin(node_id node, bool owned) noexcept -> prefix_pin { return {node, owned}; }
  /// Lets \p pin end with \p node instead.
  static auto move_pin(prefix_pin& pin, node_id node, bool owned) noexcept -> void {
    pin.node_ = node;
    pin.owned_ = owned;
  }
  /// Empties \p pin. \returns where it ended.
  static auto take_pin(prefix_pin& pin) noexcept -> node_id { return std::exchange(pin.node_, node_id::none()); }
};

} // namespace quire
