// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The observer that does not look.

#include <quire/observe/concepts.hpp>
#include <quire/observe/events.hpp>

#include <type_traits>

namespace quire {

/// Ignores every event; takes no room and no time. Null model of `observer`, and the default.
struct null_observer {
  /// Ignores the event.
  constexpr void on_admit(admit_event const& /*event*/) const noexcept {}
  /// Ignores the event.
  constexpr void on_commit(commit_event const& /*event*/) const noexcept {}
  /// Ignores the event.
  constexpr void on_publish(publish_event const& /*event*/) const noexcept {}
  /// Ignores the event.
  constexpr void on_evict(evict_event const& /*event*/) const noexcept {}
  /// Ignores the event.
  constexpr void on_release(release_event const& /*event*/) const noexcept {}
  /// Ignores the event.
  constexpr void on_refuse(refuse_event const& /*event*/) const noexcept {}
};

static_assert(observer<null_observer> && std::is_empty_v<null_observer>);

} // namespace quire
