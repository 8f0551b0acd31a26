// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The adapters that are applied to the weights.

#include <quire/identity/adapter.hpp>

#include <span>
#include <utility> // std::move
#include <vector>

namespace quire {

/// Adapters in the order in which they are applied; another order is another identity (S33).
class adapter_list {
public:
  /// States that the weights are used as they are.
  [[nodiscard]] static auto none() noexcept -> adapter_list { return adapter_list{{}}; }
  /// The adapters \p items, first applied first; no items is the same as `none()`.
  [[nodiscard]] static auto of(std::vector<adapter> items) noexcept -> adapter_list {
    return adapter_list{std::move(items)};
  }

  /// The adapters in order. Valid while this lives and is not assigned to.
  [[nodiscard]] auto items() const noexcept -> std::span<adapter const> { return items_; }
  /// Equal if the same adapters come in the same order with the same scales.
  friend auto operator==(adapter_list const&, adapter_list const&) noexcept -> bool = default;

private:
  explicit adapter_list(std::vector<adapter> items) noexcept : items_{std::move(items)} {}

  std::vector<adapter> items_;
};

} // namespace quire
