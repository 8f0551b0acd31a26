// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The append cursor: the short way of a decode step, all of it.
///
/// ```text
///   block    [ . . . . . . | c → → → ]      left = 3: only a slot is needed: nothing is asked, taken or published
///                          └ committed
///            [ . . . . . . . . . . . ] c    opens: blocks are needed, and nothing else
/// ```
///
/// A step inside a block goes through three loops: `plan_cursors` (may it?), `launch_cursors` (rows), `commit_cursor` (the
/// token). At the end of a block, or of anything that the cursor knows, `leave_cursor` settles and opens it anew.

#include <quire/cache/cache_options.hpp>
#include <quire/cache/detail/cache_core.hpp>
#include <quire/cache/detail/settle.hpp>
#include <quire/core/errc.hpp>
#include <quire/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace quire::detail {

/// \cond INTERNAL
/// How far \p r may go on without anything but writing: inside its own last blocks, decoding, within its budget.
template <class Policies>
auto open_cursor(cache_core<Policies>& c, record_of<Policies>& r) noexcept -> void {
  r.left = 0;
  r.opens = false;
  r.shape = ++c.versions;
  auto const at = r.at.committed;
  if (r.at.known != at || !r.counted || r.covered < r.prompt || r.covered > at || r.at.skips() > 0) { return; }
  if (!r.path.owns_tail() || r.limit <= at) { return; }
  auto left = r.limit - at;
  auto const u = c.unit().index(at);
  if (u < r.path.size()) {
    if (u < r.path.pinned()) { return; }
    left = std::min(left, c.unit().block_tokens() - c.unit().offset(at));
    r.token_place = std::int64_t{r.path.units()[u].value()} * c.unit().block_tokens() + c.unit().offset(at);
  } else {
    left = 0;
  }
  for (std::size_t g = 0; g < c.groups.size(); ++g) { left = std::min(left, c.groups[g].room(r.tables[g], at)); }
  r.slot_shift = r.tables.front().slot_shift;
  r.left = left;
  r.opens = left == 0 && c.options.scrub != scrub_rule::on_reuse && !c.shares_memory;
}

/// Notes what a cursor has added; its commits counted it already.
template <class Policies>
auto note_cursor(cache_core<Policies>&, record_of<Policies>& r) noexcept -> void {
  // A branch: gcc makes a vector instruction of std::max here and waits for a failed store forwarding.
  if (r.counted && r.covered < r.at.committed) { r.covered = r.at.committed; }
}

/// The cursor's block is full, or the budget is used up.
template <class Policies>
[[gnu::noinline]] auto leave_cursor(cache_core<Policies>& c, record_of<Policies>& r) -> void {
  note_cursor(c, r);
  settle(c, r);
  trim(c, r);
  open_cursor(c, r);
}

/// True if a step of one position with its id, computed, may go by the cursor.
template <class Policies, class Item>
[[nodiscard]] auto decodes(cache_core<Policies> const& c, record_of<Policies> const& r, Item const& item) noexcept
    -> bool {
  return item.ids.size() == 1 && !item.loads && r.epoch >= c.restart_below;
}

/// Looks if row \p row of every group shows the tables of \p r as they are, and notes it.
template <class Policies>
[[nodiscard, gnu::noinline]] auto shows(cache_core<Policies> const& c, slot_of<Policies>& slot,
                                        record_of<Policies> const& r, std::size_t row) noexcept -> bool {
  for (std::size_t g = 0; g < c.groups.size(); ++g) {
    if (!slot.groups[g].rows.shows(row, r.tables[g])) { return false; }
  }
  slot.shown[row] = r.shape;
  return true;
}

/// Adds items from \p i on while they need nothing but the next slot of blocks that their row shows already, with their
/// answers. \returns the first that needs more. Nothing is called in this loop, so that what it writes through stays in
/// registers. \pre there is room for the items, their ids and results
template <class Policies, class ItemOf>
auto plan_cursors(cache_core<Policies>& c, slot_of<Policies>& slot, std::size_t i, std::size_t count,
                  ItemOf const& item_of) -> std::size_t {
  auto* const items = slot.items.end_place();
  auto* const ids = slot.ids.end_place();
  auto* const results = slot.results.end_place();
  auto const row = static_cast<std::uint32_t>(slot.items.size());
  auto const* const shown = slot.shown.data() + row;
  std::uint32_t k = 0;
  for (; i < count; ++i, ++k) {
    auto const& item = item_of(i);
    auto& r = *item.record;
    if (r.left == 0 || !decodes(c, r, item)) { break; }
    if (shown[k] != r.shape && !shows(c, slot, r, row + k)) { break; }
    results[k] = {errc::ok, row_id{row + k}, token_count{}, item.user};
    items[k] = {&r, 1, 0, 1, 0, r.left};
    ids[k] = item.ids.front();
    r.left = 0;
    r.opens = false;
    r.plan_open = true;
  }
  slot.items.add(k); // from here on a plan that fails takes them back
  slot.ids.add(k);
  slot.results.add(k);
  for (auto& group : slot.groups) { group.rows.expect(k); }
  return i;
}

/// Writes the rows of \p count items from \p i on, which `plan_cursors` has added.
template <class Policies>
auto launch_cursors(cache_core<Policies>& c, slot_of<Policies>& slot, std::size_t i, std::uint32_t count) noexcept
    -> void {
  auto const* const items = slot.items.begin() + i;
  auto const first = slot.groups.front().rows.appender();
  for (std::uint32_t k = 0; k < count; ++k) {
    auto const& r = *items[k].record;
    first.write(k, r.at.committed, r.at.committed + r.slot_shift);
  }
  slot.groups.front().rows.take(count);
  for (std::size_t g = 1; g < c.groups.size(); ++g) {
    auto const at = slot.groups[g].rows.appender();
    for (std::uint32_t k = 0; k < count; ++k) {
      auto const& r = *items[k].record;
      at.write(k, r.at.committed, r.at.committed + r.tables[g].slot_shift);
    }
    slot.groups[g].rows.take(count);
  }
}

/// One position of \p r is there. \param left [tokens] that may follow without anything but writing
template <class Policies>
auto commit_cursor(cache_core<Policies>& c, record_of<Policies>& r, std::uint32_t left, token_id id) -> void {
  c.index.token_at(r.token_place++) = id;
  r.at.known = ++r.at.committed;
  r.left = left;
  if (left == 0) { leave_cursor(c, r); }
}

/// True if every group has blocks for one more position of \p r, whose cursor opens; they are reserved then.
template <class Policies>
[[nodiscard]] auto reserve_next(cache_core<Policies>& c, record_of<Policies>& r) -> bool {
  auto const at = r.at.committed;
  auto const opens_unit = c.unit().index(at) >= r.path.size();
  if (opens_unit && c.available_units() == 0) { return false; }
  auto const idle = c.index.evictable();
  for (std::size_t g = 0; g < c.groups.size(); ++g) {
    auto& group = c.groups[g];
    auto const needs = group.needs_next(r.tables[g], at);
    if (needs && *needs <= c.groups.available(group, idle)) {
      group.ledger().reserve(*needs);
      continue;
    }
    while (g-- > 0) { c.groups[g].ledger().return_reserved(*c.groups[g].needs_next(r.tables[g], at)); }
    return false;
  }
  c.reserved_units += opens_unit ? 1U : 0U;
  return true;
}
/// Takes them. \pre they are free \returns [tokens] that the cursor may go on with, the position at hand included
template <class Policies>
auto take_next(cache_core<Policies>& c, record_of<Policies>& r) -> std::uint32_t {
  auto const at = r.at.committed;
  auto const& unit = c.unit();
  auto left = std::min(r.limit - at, unit.block_tokens() - unit.offset(at));
  if (unit.index(at) >= r.path.size()) {
    r.path.take(c.index, unit, r.at, 1);
    c.owe_units(r, r.owed_units - std::min(r.owed_units, 1U));
  }
  r.token_place = std::int64_t{r.path.units().back().value()} * unit.block_tokens() + unit.offset(at);
  for (std::size_t g = 0; g < c.groups.size(); ++g) { left = std::min(left, c.groups[g].take_next(r.tables[g], at)); }
  r.slot_shift = r.tables.front().slot_shift;
  r.shape = ++c.versions;
  return left;
}
/// \endcond

} // namespace quire::detail
