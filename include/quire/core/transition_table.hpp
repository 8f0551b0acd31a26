// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A life cycle as one constexpr table of edges. Code, exhaustive tests and docs read the same table, so
/// that they cannot drift apart; whatever has no edge is refused (S25).

#include <array>
#include <cstddef>
#include <optional>

namespace quire {

/// One permitted step of a life cycle.
template <class State, class Event>
struct transition {
  State from;  ///< State before.
  Event event; ///< What happens.
  State to;    ///< State after.
};

/// A deterministic life cycle over small enums. `State` and `Event` end in an enumerator `count_`.
template <class State, class Event>
class transition_table {
public:
  /// Builds the table from its edges; a second edge for one (state, event) pair does not compile.
  template <std::size_t N>
  constexpr explicit transition_table(transition<State, Event> const (&edges)[N]) {
    for (auto& row : to_) { row.fill(State::count_); }
    for (auto const& edge : edges) {
      auto& cell = to_[index(edge.from)][index(edge.event)];
      if (cell != State::count_) { throw "two edges for one state and event"; }
      cell = edge.to;
    }
  }

  /// The state after \p event in \p from, or nothing if the table has no such edge.
  /// \source S25
  [[nodiscard]] constexpr auto next(State from, Event event) const noexcept -> std::optional<State> {
    auto const to = to_[index(from)][index(event)];
    return to == State::count_ ? std::nullopt : std::optional{to};
  }

  /// True if \p event is permitted in \p from.
  [[nodiscard]] constexpr auto allows(State from, Event event) const noexcept -> bool {
    return to_[index(from)][index(event)] != State::count_;
  }

private:
  template <class E>
  static constexpr auto index(E e) noexcept -> std::size_t {
    return static_cast<std::size_t>(e);
  }
  std::array<std::array<State, static_cast<std::size_t>(Event::count_)>, static_cast<std::size_t>(State::count_)> to_{};
};

} // namespace quire
