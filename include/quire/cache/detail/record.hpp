// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The record of one sequence inside a cache.

#include <quire/cache/detail/group_table.hpp>
#include <quire/core/types.hpp>
#include <quire/sequence/sequence_state.hpp>

#include <boost/intrusive/list.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
/// A record is in exactly one list: unused, live, or draining on the timeline it waits for. A released sequence whose
/// tables in-flight work may still read *drains*: it keeps its pin and blocks until that work's ticket is reached.
///
/// What a decode step inside a block touches lies in the first cache line: 40 bytes here and the lengths of `state`.
template <class Phase, std::size_t Timelines>
struct alignas(64) record {
  // The lane: positions that may be appended without looking at blocks, copies, limits or the life cycle, and the slot of
  // the first of them. Derived from everything else by `cache_core::open_lane`, closed (0) while a plan is open.
  std::int64_t lane_slot = 0;
  std::uint64_t stamp = 0;       // unique; a new one whenever table entries changed other than by appending
  std::uint32_t lane = 0;        // [tokens]
  std::uint32_t lane_blocks = 0; // [blocks] of the table while the lane is open
  std::uint32_t generation = 0;  // of the handle that may use it
  std::uint32_t epoch = 0;
  bool at_block = false; // the lane goes on in a block that is still to be taken
  bool plan_open = false;
  bool ids_known = false; // the open plan has its token ids
  bool ending = false;    // ended while its plan was open
  bool counted = false;   // its first commit was counted
  bool resumed = false;
  bool rebuilds = false; // its windows begin behind nothing: what it computes first is not exact
  bool loads = false;    // a transfer brings the open plan's positions
  bool diverges = false; // the open plan begins with another token than the one that is stored at its place

  sequence_state state; // its first 24 bytes are its lengths

  std::uint32_t limit = 0;       // [tokens] permitted
  std::uint32_t prompt = 0;      // [tokens]
  std::uint32_t covered = 0;     // [tokens] counted in the statistics; what a lane added since is counted, not noted
  std::uint32_t outstanding = 0; // [blocks] promised and not taken yet
  std::uint32_t owed = 0;        // [blocks] the same before the open plan
  std::uint32_t ready = 0;       // [tokens] known to be finished on their device
  std::uint32_t found = 0;       // [tokens] that the index had at admission
  std::uint32_t rewind = 0;      // [tokens] that may be taken back: windows keep what that needs

  std::vector<group_table> groups; // what it holds of the groups that do not keep everything

  std::array<ticket, Timelines> last{}; // of the last step that touched it, per timeline
  std::uint32_t attached = 0;           // [tokens] found at admission
  std::uint32_t matched = 0;            // [blocks] of the table that others wrote
  Phase phase{};
  scope_number scope;
  sequence_number number;
  boost::intrusive::list_member_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>> hook;
};
/// \endcond

} // namespace quire::detail
