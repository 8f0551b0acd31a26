// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Two observers in the place of one.

#include <quire/observe/concepts.hpp>
#include <quire/observe/events.hpp>

#include <concepts>
#include <utility> // std::move

namespace quire {

/// Tells two observers every event, the first one first. Nest it for more.
/// \tparam First is told first. \tparam Second is told second.
template <observer First, observer Second>
class observer_pair {
public:
  /// Two default observers.
  constexpr observer_pair()
    requires std::default_initializable<First> && std::default_initializable<Second>
  = default;
  /// Tells \p first, then \p second.
  constexpr observer_pair(First first, Second second) : first_{std::move(first)}, second_{std::move(second)} {}

  /// The observer that is told first.
  [[nodiscard]] constexpr auto first() noexcept -> First& { return first_; }
  /// The observer that is told first.
  [[nodiscard]] constexpr auto first() const noexcept -> First const& { return first_; }
  /// The observer that is told second.
  [[nodiscard]] constexpr auto second() noexcept -> Second& { return second_; }
  /// The observer that is told second.
  [[nodiscard]] constexpr auto second() const noexcept -> Second const& { return second_; }

  /// Passes the event on.
  constexpr void on_admit(admit_event const& event) noexcept {
    first_.on_admit(event);
    second_.on_admit(event);
  }
  /// Passes the event on.
  constexpr void on_commit(commit_event const& event) noexcept {
    first_.on_commit(event);
    second_.on_commit(event);
  }
  /// Passes the event on.
  constexpr void on_publish(publish_event const& event) noexcept {
    first_.on_publish(event);
    second_.on_publish(event);
  }
  /// Passes the event on.
  constexpr void on_evict(evict_event const& event) noexcept {
    first_.on_evict(event);
    second_.on_evict(event);
  }
  /// Passes the event on.
  constexpr void on_release(release_event const& event) noexcept {
    first_.on_release(event);
    second_.on_release(event);
  }
  /// Passes the event on.
  constexpr void on_refuse(refuse_event const& event) noexcept {
    first_.on_refuse(event);
    second_.on_refuse(event);
  }

private:
  [[no_unique_address]] First first_;
  [[no_unique_address]] Second second_;
};

} // namespace quire
