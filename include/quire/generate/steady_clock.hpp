// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The clock of the machine.

#include <quire/generate/concepts.hpp>
#include <quire/generate/types.hpp>

#include <chrono>
#include <cstdint>

namespace quire {

/// Reads `std::chrono::steady_clock`, which never goes back.
struct steady_clock {
  /// Now.
  [[nodiscard]] auto now() const noexcept -> instant {
    auto const since = std::chrono::steady_clock::now().time_since_epoch();
    return instant{static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count())};
  }
};

static_assert(clock<steady_clock>);

} // namespace quire
