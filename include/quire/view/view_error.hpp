// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The first contradiction found in a view, and where.

#include <quire/view/view_fault.hpp>

#include <cstdint>

namespace quire {

/// Which rule a view breaks, and where it breaks it first.
struct view_error {
  /// The broken rule; `message(fault)` says it in words.
  view_fault fault;
  /// Row, or -1 if no single row is at fault.
  std::int32_t row = -1;
  /// Column for a cell, index into the array for `slot`, `position` and `delta`; else -1.
  std::int32_t index = -1;

  /// True if all three agree.
  friend constexpr auto operator==(view_error const&, view_error const&) noexcept -> bool = default;
};

} // namespace quire
