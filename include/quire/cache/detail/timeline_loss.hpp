// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Giving up a timeline whose tickets will never be reached.
///
/// ```text
///   find what it may still write ─▶ cut sequences back to before it ─▶ shorten pins that wait ─▶ take it out of
///   (allocates, may throw)          (from here on nothing fails)                                 the index
/// ```

#include <quire/cache/detail/append_cursor.hpp>
#include <quire/cache/detail/block_group.hpp>
#include <quire/cache/detail/cache_core.hpp>
#include <quire/cache/detail/index_paths.hpp>
#include <quire/cache/detail/lifetime.hpp>
#include <quire/cache/detail/step_slot.hpp>
#include <quire/core/contract.hpp>
#include <quire/core/errc.hpp>
#include <quire/core/expected.hpp>
#include <quire/core/types.hpp>
#include <quire/prefix/prefix_pin.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
/// Cuts \p r back to before the first block that is doomed, and on to where its groups have what the next query sees: to
/// nothing, if windows have moved on since. \param doomed [units] that will leave the index
template <class Policies>
auto cut_back(cache_core<Policies>& c, record_of<Policies>& r, std::vector<std::uint8_t> const& doomed) -> void {
  auto length = r.at.committed;
  auto whole = true;
  for (std::size_t g = 0; g < c.groups.size(); ++g) {
    if (auto const ready = c.groups[g].ready_length(r.tables[g])) {
      length = std::min(length, *ready);
      whole = false;
    }
  }
  for (std::uint32_t u = 0; u < r.path.size(); ++u) {
    if (doomed[r.path.units()[u].value()] == 0) { continue; }
    length = std::min(length, u * c.unit().block_tokens());
    whole = false;
    break;
  }
  if (whole) { return; }
  // A unit is kept or lost as a whole: within a private one, blocks of every group end together with what is ready.
  while (length > 0 && !c.can_resume_at(r, length)) { --length; }
  cut(c, r, length);
  c.promise(r);
  open_cursor(c, r);
}

/// \returns [blocks] given up, of all groups. \throws std::bad_alloc; nothing has changed then
template <class Policies>
auto abandon(cache_core<Policies>& c, timeline_id timeline) -> expected<block_count> {
  QUIRE_EXPECTS(timeline.value() < c.timelines);
  for (auto const& slot : c.slots) {
    if (slot.phase == step_phase::planned || slot.phase == step_phase::launched) { return refuse(errc::plan_open); }
  }
  c.reclaim();
  auto const t = timeline.value();
  auto const last = std::max(c.clock.latest()[t], c.clock.issued(timeline));
  if (c.clock.reached(t, last)) { return block_count{0}; } // nothing is in flight
  c.pins.reserve(c.pins.size() + 2 * c.registry.capacity() + c.slots.size() * c.options.max_rows.value());
  auto const paths = index_paths{c.index};
  std::vector<std::uint8_t> doomed(c.index.capacity().value());
  for (auto& record : c.registry.live()) { settle(c, record, false); }

  auto const lost_in_all = [&] {
    std::uint32_t n = 0;
    for (auto const& group : c.groups) {
      for (std::size_t i = 0; i < (group.by_path() ? 1 : group.members().size()); ++i) { n += group.lost(); }
    }
    return n;
  };
  auto const before = lost_in_all();
  for (auto& group : c.groups) {
    group.doom(t);
    group.mark_doomed(doomed);
  }
  paths.spread(doomed);
  c.clock.abandon(t, last);
  for (auto& record : c.registry.live()) { cut_back(c, record, doomed); }
  c.pins.for_each([&](prefix_pin& pin) {
    std::uint32_t back = 0;
    paths.walk(pin, [&](std::uint32_t i, unit_id unit) {
      if (doomed[unit.value()] != 0) { back = i + 1; }
    });
    if (back == 0) { return; }
    auto shorter = c.index.pin_back(pin, unit_count{back});
    c.index.release(std::move(pin));
    pin = std::move(shorter);
  });
  c.index.remove(doomed, [&](unit_id unit) { c.groups.depart(unit, leave_reason::lost); });
  c.reclaim();
  for (auto& slot : c.slots) { slot.invalidate(); }
  return block_count{lost_in_all() - before};
}
/// \endcond

} // namespace quire::detail
