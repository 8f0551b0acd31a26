// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The adapters that are applied to the weights, each with its content and its factor.

#include <quire/core/config_error.hpp>
#include <quire/identity/identity_digest.hpp>

#include <bit> // std::bit_cast
#include <cstdint>
#include <span>
#include <utility> // std::move
#include <vector>

namespace quire {

/// Factor of one adapter. Two scales are the same if their bits are.
class adapter_scale {
public:
  /// Scale \p value. \throws config_error if it is not finite.
  explicit constexpr adapter_scale(double value) : bits_{std::bit_cast<std::uint64_t>(value)} {
    if ((bits_ & exponent_mask) == exponent_mask) {
      throw config_error{"adapter_scale: not a finite number: pass the factor that is applied"};
    }
  }

  /// IEEE 754 binary64 representation.
  [[nodiscard]] constexpr auto bits() const noexcept -> std::uint64_t { return bits_; }
  /// Equal if the bits are: 0 and -0 are two scales, which costs hits and nothing else.
  friend constexpr auto operator==(adapter_scale, adapter_scale) noexcept -> bool = default;

private:
  static constexpr std::uint64_t exponent_mask = 0x7FF0'0000'0000'0000U;

  std::uint64_t bits_;
};

/// One adapter and how strongly it is applied. Both members must be given.
struct adapter {
  adapter_digest digest; ///< Content of the adapter.
  adapter_scale scale;   ///< Factor it is applied with.

  /// Equal if both members are.
  friend constexpr auto operator==(adapter const&, adapter const&) noexcept -> bool = default;
};

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
