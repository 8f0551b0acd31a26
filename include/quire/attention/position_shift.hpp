// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A change of a key's logical position.

#include <quire/core/types.hpp>

#include <cstdint>

namespace quire {

/// Whether a cache promises exactness or is a named approximate mode.
enum class position_mode : std::uint8_t {
  exact,       ///< Logical positions never change (S31).
  approximate, ///< Keys may be turned to another position, under a name in the cache's identity (S6).
};

/// From where to where. Several changes of one key are one from the first `from` to the last `to`: nothing is pending.
struct position_shift {
  /// Position the key is rotated for.
  token_pos from = {};
  /// Position it should be rotated for.
  token_pos to = {};
};

} // namespace quire
