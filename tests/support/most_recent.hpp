// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The smallest model of `eviction_policy` that evicts.

#include <quire/prefix/concepts.hpp>
#include <quire/prefix/node_id.hpp>
#include <quire/prefix/order_list.hpp>

#include <cstdint>

namespace quire_test {

/// Idle leaves, the one used last first.
class most_recent {
public:
  static constexpr bool leaves_only = true;
  static constexpr bool counts_uses = false;
  static constexpr std::uint32_t max_run = 3;
  explicit most_recent(quire::node_count) {}
  auto create(quire::node_id, quire::node_id) noexcept -> void {}
  auto use(quire::node_id) noexcept -> void {}
  auto enter(auto& nodes, quire::node_id n) noexcept -> void { list_.push_front(nodes, n); }
  auto leave(auto& nodes, quire::node_id n) noexcept -> void { list_.erase(nodes, n); }
  auto split(auto&, quire::node_id, quire::node_id, bool) noexcept -> void {}
  auto merge(auto&, quire::node_id, quire::node_id) noexcept -> void {}
  [[nodiscard]] auto may_extend(quire::node_id, bool) const noexcept -> bool { return true; }
  [[nodiscard]] auto may_merge(quire::node_id, quire::node_id) const noexcept -> bool { return false; }
  [[nodiscard]] auto victim() const noexcept -> quire::node_id { return list_.front(); }

private:
  quire::order_list list_;
};
static_assert(quire::eviction_policy<most_recent>);

} // namespace quire_test
