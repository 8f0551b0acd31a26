// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A digest of 128 bits, as the digest policies return it.

#include <array>
#include <compare> // operator<=>
#include <cstddef> // std::byte

namespace quire {

/// 16 bytes in the order in which they are written to files and events, the same on every machine.
struct digest_128 {
  /// Most significant byte of the number first, as published digests are printed.
  std::array<std::byte, 16> bytes;

  /// Orders as the numbers do; the order has no meaning beyond being total.
  friend constexpr auto operator<=>(digest_128 const&, digest_128 const&) noexcept = default;
};

} // namespace quire
