// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Writes values of fixed width, little endian, and lists with their length in front: no two lists of values share an
/// encoding as long as each kind of list always has the same fields.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

/// \cond INTERNAL
namespace quire::detail {

/// Appends values to a byte string.
class canonical_bytes {
public:
  /// Appends 8 bytes.
  auto number(std::uint64_t value) -> canonical_bytes& {
    for (auto shift = 0U; shift < 64U; shift += 8U) {
      out_.push_back(static_cast<std::byte>((value >> shift) & 0xFFU));
    }
    return *this;
  }
  /// Appends the bits of a binary64; both zeros are one value.
  auto real(double value) -> canonical_bytes& {
    return number(std::bit_cast<std::uint64_t>(value == 0.0 ? 0.0 : value));
  }
  /// Appends length and characters.
  auto text(std::string_view value) -> canonical_bytes& {
    number(value.size());
    for (auto const c : value) { out_.push_back(static_cast<std::byte>(c)); }
    return *this;
  }
  /// Appends length and values.
  auto reals(std::vector<double> const& values) -> canonical_bytes& {
    number(values.size());
    for (auto const value : values) { real(value); }
    return *this;
  }
  /// Hands over what has been written.
  [[nodiscard]] auto take() && -> std::vector<std::byte> { return std::move(out_); }

private:
  std::vector<std::byte> out_ = {};
};

} // namespace quire::detail
/// \endcond
