// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The first field in which two layouts disagree.

#include <cstdint>
#include <string_view>

namespace quire {

/// Where two layouts part: what an import refuses with.
struct layout_difference {
  /// Plane, from 0; the number of common planes if one layout has more.
  std::uint32_t plane;
  /// Name of the field.
  std::string_view field;
  /// Value on the left.
  std::uint64_t left;
  /// Value on the right.
  std::uint64_t right;

  /// True if all fields agree.
  friend constexpr auto operator==(layout_difference const&, layout_difference const&) noexcept -> bool = default;
};

} // namespace quire
