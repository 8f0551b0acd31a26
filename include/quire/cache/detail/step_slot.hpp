// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The state of one step between plan and ticket.

#include <quire/cache/detail/batch_rows.hpp>
#include <quire/cache/detail/step_list.hpp>
#include <quire/cache/step.hpp>
#include <quire/core/types.hpp>
#include <quire/sequence/block_geometry.hpp>
#include <quire/view/action.hpp>
#include <quire/view/batch_view.hpp>

#include <cstdint>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
enum class step_phase : std::uint8_t { idle, planned, launched, in_flight };

/// Buffers are kept from step to step, so that a steady decode allocates nothing.
template <class Record>
struct step_slot {
  struct planned_item {
    Record* record;
    std::uint32_t tokens : 31;
    std::uint32_t fresh : 1; // its one position lies in a block of its own
    std::uint32_t
        lane; // [tokens] its lane with this position; 0 unless it needs nothing but a slot, or a slot and a block
  };

  /// Rows of one window group.
  struct group_rows {
    batch_rows rows;
    batch_view view;
  };

  step_slot(std::uint32_t rows_wanted, block_geometry geometry) : rows{rows_wanted, geometry} {}

  batch_rows rows;
  batch_view view;
  std::vector<group_rows> groups;
  step_list<planned_item> items;
  std::vector<step_result> results;
  std::vector<action> actions;
  step_list<token_id> ids;       // of all items that gave them, in order
  std::vector<block_id> fresh;   // blocks of the item at hand
  std::vector<block_id> claimed; // victims of the whole plan
  step_phase phase = step_phase::idle;
  timeline_id timeline{0};
  ticket until{};
  std::uint64_t serial = 0; // of the plan that may use the slot
};
/// \endcond

} // namespace quire::detail
