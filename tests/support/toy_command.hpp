// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What a toy engine is told to do.

#include <cstddef>
#include <cstdint>
#include <ostream>

namespace quire_test {

/// What a toy engine can be told to do.
enum class toy_verb : std::uint8_t {
  step,          ///< Plan, launch and commit.
  admit,         ///< Let a request in.
  decode,        ///< One token for every sequence.
  release,       ///< End a sequence, one way or another.
  fork,          ///< Twin of a sequence, at any length.
  truncate,      ///< Cut a sequence back, or try to.
  resolve,       ///< Tell token ids.
  plan,          ///< Plan only.
  launch,        ///< Launch the plan.
  commit,        ///< Commit a launched plan.
  drop,          ///< Drop a plan, launched or not.
  plan_and_drop, ///< Plan and drop: nothing may have happened.
  preempt,       ///< Take a sequence's blocks away.
  resume,        ///< Let a preempted one in again.
  run,           ///< Let the device do some work.
  complete,      ///< Report tickets, late, doubled, out of order.
  drain,         ///< Let the device do all its work and report it.
  compact,       ///< Move blocks together.
  epoch,         ///< New weights.
  abandon,       ///< Lose a timeline.
  count_
};

/// Names of the verbs.
inline constexpr char const* toy_verbs[] = {
    "step", "admit",         "decode",  "release", "fork", "truncate", "resolve", "plan",    "launch", "commit",
    "drop", "plan_and_drop", "preempt", "resume",  "run",  "complete", "drain",   "compact", "epoch",  "abandon"};

/// One command; what its numbers mean is up to the verb.
struct toy_command {
  toy_verb verb = toy_verb::step;
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  std::uint32_t c = 0;
  friend auto operator<<(std::ostream& out, toy_command const& command) -> std::ostream& {
    return out << toy_verbs[static_cast<std::size_t>(command.verb)] << '(' << command.a << ", " << command.b << ", "
               << command.c << ')';
  }
};

} // namespace quire_test
