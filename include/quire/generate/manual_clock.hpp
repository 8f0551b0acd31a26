// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A clock that stands still until it is told.

#include <quire/generate/concepts.hpp>
#include <quire/generate/types.hpp>

namespace quire {

/// For tests and simulations: time is what `advance` made it.
class manual_clock {
public:
  /// Starts at the origin.
  manual_clock() noexcept = default;
  /// Starts at \p start.
  explicit manual_clock(instant start) noexcept : now_{start} {}
  /// Now.
  [[nodiscard]] auto now() const noexcept -> instant { return now_; }
  /// Goes on by \p by.
  auto advance(nanosecond_count by) noexcept -> void { now_ = now_ + by; }

private:
  instant now_{};
};

static_assert(clock<manual_clock>);

} // namespace quire
