// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The record of one sequence inside a cache.

#include <quire/core/types.hpp>
#include <quire/observe/event_ids.hpp>
#include <quire/sequence/sequence_state.hpp>

#include <boost/intrusive/list.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace quire::detail {

/// \cond INTERNAL
/// A record is in exactly one list: unused, live, or draining on the timeline it waits for. A released sequence whose
/// tables in-flight work may still read *drains*: it keeps its pin and blocks until that work's ticket is reached.
template <class Phase, std::size_t Timelines>
struct record : boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>> {
  sequence_state state;
  std::uint32_t generation = 0;  // of the handle that may use it
  std::uint32_t version = 0;     // changes whenever table entries changed other than by appending
  std::uint32_t limit = 0;       // [tokens] permitted
  std::uint32_t outstanding = 0; // [blocks] promised and not taken yet
  bool plan_open = false;
  bool ending = false;  // ended while its plan was open
  bool counted = false; // its first commit was counted
  bool resumed = false;
  Phase phase{};
  std::uint32_t prompt = 0;   // [tokens]
  std::uint32_t attached = 0; // [tokens] found at admission
  std::uint32_t covered = 0;  // [tokens] counted in the statistics
  std::uint32_t epoch = 0;
  std::uint32_t ready = 0; // [tokens] known to be finished on their device
  scope_number scope;
  sequence_number number;
  std::array<ticket, Timelines> last{}; // of the last step that touched it, per timeline
};
/// \endcond

} // namespace quire::detail
