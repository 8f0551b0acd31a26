// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The executor without bytes.

#include <quire/core/expected.hpp>
#include <quire/view/action.hpp>
#include <quire/view/concepts.hpp>

#include <span>

namespace quire {

/// Accepts every action and does nothing: for dry runs, trace replays and planners. Null model of `executor`.
struct null_executor {
  /// Accepts \p actions. \returns success, always.
  [[nodiscard]] auto run(std::span<action const> actions) const noexcept -> expected<void> {
    static_cast<void>(actions);
    return {};
  }
};

static_assert(executor<null_executor> && executor<null_executor const>);

} // namespace quire
