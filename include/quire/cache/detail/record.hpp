// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The record of one sequence inside a cache.

#include <quire/cache/detail/fence_clock.hpp>
#include <quire/core/types.hpp>
#include <quire/sequence/block_table.hpp>
#include <quire/sequence/prefix_path.hpp>
#include <quire/sequence/sequence_lengths.hpp>

#include <boost/intrusive/list.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
/// What a hit was made of.
struct reuse_plan {
  std::uint32_t found = 0;      // [tokens] that the index had
  std::uint32_t start = 0;      // [tokens] that need no compute: computing begins there
  std::uint32_t exact_from = 0; // [tokens] outputs before it are not exact: they rebuild windows from nothing (S28)
};

/// A record is in exactly one list: unused or live. What a decode step inside a block touches lies in the first cache line,
/// and in the first line of each table.
template <class Phase, std::size_t Timelines>
struct alignas(64) record {
  // The append cursor: positions that may be appended without looking at blocks, copies, limits or the life cycle, and the
  // place of the first one's token. Derived from everything else by `open_cursor`, closed while a plan is open.
  std::int64_t token_place = 0;
  std::int64_t slot_shift = 0; // [slots] as in the table of the first group
  std::uint64_t shape = 0;     // unique; another one whenever tables may have changed
  std::uint32_t left = 0;      // [tokens]
  bool opens = false;          // none is left, and the next position takes nothing but blocks

  bool plan_open = false;
  bool ending = false;  // ended while its plan was open
  bool counted = false; // its first commit was counted
  sequence_lengths at;
  std::uint32_t generation = 0; // of the handle that may use it
  std::uint32_t epoch = 0;
  std::uint32_t limit = 0;   // [tokens] permitted
  std::uint32_t prompt = 0;  // [tokens]
  std::uint32_t covered = 0; // [tokens] counted in the statistics; what a cursor added since is counted, not noted
  std::uint32_t hit = 0;     // [tokens] that the first commit will count as found

  prefix_path path;
  std::vector<block_table> tables; // by block group
  reuse_plan reuse;
  std::uint32_t owed_units = 0; // [units] promised and not taken
  std::uint32_t rewind = 0;     // [tokens] that may be taken back: windows keep what that needs
  bool resumed = false;
  use_tickets<Timelines> last{}; // of the last step that touched it
  Phase phase{};
  scope_number scope;
  sequence_number number;
  boost::intrusive::list_member_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>> hook;
};
/// \endcond

} // namespace quire::detail
