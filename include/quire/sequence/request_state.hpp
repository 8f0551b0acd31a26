// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The life cycle of a request (S25).
///
/// ```text
///   waiting ──start──▶ prefilling ──decode──▶ decoding
///      │  ▲                │   ▲                │
///      │  │ resume         │   │                │           preempted ◀──preempt── (prefilling, decoding)
///      ▼  │                ▼   │                ▼
///     finished | cancelled | timed_out | failed  ──release──▶ released
/// ```
///
/// Cancel and time-out are legal wherever the request is alive and take the same release path.

#include <quire/core/transition_table.hpp>
#include <quire/sequence/concepts.hpp>

#include <cstdint>

namespace quire {

/// State of a request.
enum class request_state : std::uint8_t {
  waiting,    ///< Admitted, nothing computed yet.
  prefilling, ///< Part of the prompt is computed.
  decoding,   ///< The whole prompt is computed.
  preempted,  ///< Its blocks were given up; it may resume.
  finished,   ///< Ended as it should.
  cancelled,  ///< Ended by its client.
  timed_out,  ///< Ended by the clock of the engine.
  failed,     ///< Ended by an error.
  released,   ///< Holds nothing any more.
  count_      ///< Number of states.
};

/// What can happen to a request.
enum class request_event : std::uint8_t {
  start,    ///< Its first positions are committed, the prompt is not covered yet.
  decode,   ///< Its prompt is covered.
  preempt,  ///< Its blocks are taken away.
  resume,   ///< It is admitted again.
  finish,   ///< A stop rule holds.
  cancel,   ///< The client gives up.
  time_out, ///< It took too long.
  fail,     ///< Something broke.
  release,  ///< Its blocks are given back.
  count_    ///< Number of events.
};

/// The default life cycle of requests; an engine may supply its own table with more states (S44).
struct standard_request_lifecycle {
  /// States of this life cycle.
  using state = request_state;
  /// Events of this life cycle.
  using event = request_event;
  /// Every permitted edge.
  static constexpr transition<state, event> edges[] = {
      {state::waiting, event::start, state::prefilling},     {state::waiting, event::decode, state::decoding},
      {state::waiting, event::finish, state::finished},      {state::waiting, event::cancel, state::cancelled},
      {state::waiting, event::time_out, state::timed_out},   {state::waiting, event::fail, state::failed},
      {state::prefilling, event::start, state::prefilling},  {state::prefilling, event::decode, state::decoding},
      {state::prefilling, event::preempt, state::preempted}, {state::prefilling, event::finish, state::finished},
      {state::prefilling, event::cancel, state::cancelled},  {state::prefilling, event::time_out, state::timed_out},
      {state::prefilling, event::fail, state::failed},       {state::decoding, event::decode, state::decoding},
      {state::decoding, event::preempt, state::preempted},   {state::decoding, event::finish, state::finished},
      {state::decoding, event::cancel, state::cancelled},    {state::decoding, event::time_out, state::timed_out},
      {state::decoding, event::fail, state::failed},         {state::preempted, event::resume, state::waiting},
      {state::preempted, event::cancel, state::cancelled},   {state::preempted, event::time_out, state::timed_out},
      {state::preempted, event::fail, state::failed},        {state::finished, event::release, state::released},
      {state::cancelled, event::release, state::released},   {state::timed_out, event::release, state::released},
      {state::failed, event::release, state::released},
  };
  /// The edges as a table.
  static constexpr transition_table<state, event> table{edges};
};

static_assert(request_lifecycle<standard_request_lifecycle>);

} // namespace quire
