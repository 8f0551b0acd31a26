// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What a validator may assume about a view beyond the view itself.

#include <quire/core/types.hpp>

#include <cstdint>
#include <limits>

namespace quire {

/// Facts that a view does not carry and a validator needs.
struct view_rules {
  /// Blocks of the pool: ids are below it. By default any id is taken.
  block_count pool = block_count{static_cast<std::uint32_t>(std::numeric_limits<std::int32_t>::max())};
  /// True where positions between the kept ones may have no block (sinks + window). A block that
  /// the step writes must be there all the same.
  bool holes = false;
};

} // namespace quire
