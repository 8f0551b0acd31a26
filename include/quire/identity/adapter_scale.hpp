// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The factor with which an adapter is applied.

#include <quire/core/config_error.hpp>

#include <bit> // std::bit_cast
#include <cstdint>

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

} // namespace quire
