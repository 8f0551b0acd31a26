// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The state of one step between plan and ticket.

#include <quire/cache/detail/batch_rows.hpp>
#include <quire/cache/detail/step_list.hpp>
#include <quire/cache/step.hpp>
#include <quire/core/types.hpp>
#include <quire/view/action.hpp>
#include <quire/view/batch_view.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
enum class step_phase : std::uint8_t { idle, planned, launched, in_flight };

/// Buffers are kept from step to step, so that a steady decode allocates nothing.
template <class Record>
struct step_slot {
  struct planned_item {
    static constexpr std::uint32_t most_tokens = (1U << 29U) - 1;
    Record* record;
    std::uint32_t tokens : 29;
    std::uint32_t opens : 1;     // its one position lies in blocks of its own
    std::uint32_t ids_known : 1; // its ids stand in `ids`
    std::uint32_t loads : 1;     // a transfer brings its positions
    std::uint32_t left; // [tokens] of the cursor with this position; 0 = it is no decode step that needs nothing else
  };
  /// A block, or the unit, that the launched step copied and that is given up when it commits.
  struct copy_note {
    static constexpr std::uint32_t unit = std::numeric_limits<std::uint32_t>::max();
    Record* record;
    std::uint32_t group; // block group, or `unit`
    std::uint32_t at;    // logical block or unit
    block_id source;     // block, or the number of the unit
  };
  /// Rows of one block group.
  struct group_rows {
    batch_rows rows;
    batch_view view;
  };

  std::vector<group_rows> groups;
  step_list<planned_item> items;
  step_list<step_result> results;
  std::vector<std::uint64_t> shown; // by row: the shape of tables that its rows are known to show; 0 = none
  std::size_t rows_shown = 0;       // of the step before
  std::vector<action> actions;
  std::vector<copy_note> copies; // in the order of their items
  step_list<token_id> ids;       // of all items that gave them, in order
  std::size_t copies_to_come = 0;
  std::size_t actions_to_come = 0;
  step_phase phase = step_phase::idle;
  timeline_id timeline{0};
  ticket until{};
  std::uint64_t serial = 0; // of the plan that may use the slot

  /// The view never reached a device, or blocks have moved since.
  auto invalidate() noexcept -> void {
    for (auto& group : groups) { group.rows.invalidate(); }
    std::fill(shown.begin(), shown.end(), 0U);
  }
};
/// \endcond

} // namespace quire::detail
