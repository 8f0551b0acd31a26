// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Layers that share one page table: equal planes and equal retention.

#include <quire/core/types.hpp>
#include <quire/model/plane_spec.hpp>
#include <quire/model/retention.hpp>

#include <cstdint>
#include <vector>

namespace quire {

/// Along which sequence a group's cache grows.
enum class group_kind : std::uint8_t {
  self,  ///< The request's own positions.
  cross, ///< The positions of its source; filled once, never appended to (S5).
};

/// A layer group. One page table and one resident range serve all its layers; a physical block holds
/// `block_tokens` tokens of *every* owner layer in it. Made by `model_spec`.
struct layer_group {
  group_id id{};                      ///< Its index among the model's groups.
  group_kind kind = group_kind::self; ///< Along which sequence it grows.
  std::vector<plane_spec> planes{};   ///< The planes of one layer, equal for all.
  retention keeps{};                  ///< What stays.
  std::vector<layer_id> owners{};     ///< Layers that write and read it, in forward order.
  std::vector<layer_id> borrowers{};  ///< Layers that only read it (cases 143, 144).

  /// Owner layers: the number by which all its sizes multiply. \returns [layers]
  [[nodiscard]] auto layers() const noexcept -> std::uint32_t { return static_cast<std::uint32_t>(owners.size()); }
  /// Same group.
  friend auto operator==(layer_group const&, layer_group const&) -> bool = default;
};

} // namespace quire
