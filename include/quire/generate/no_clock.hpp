// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The clock of those who want no times.

#include <quire/generate/concepts.hpp>
#include <quire/generate/types.hpp>

namespace quire {

/// Always at the origin: every duration is 0 and nothing times out. Null model of `clock`.
struct no_clock {
  /// The origin.
  [[nodiscard]] auto now() const noexcept -> instant { return instant{}; }
};

static_assert(clock<no_clock>);

} // namespace quire
