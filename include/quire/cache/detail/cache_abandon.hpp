// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Giving up a timeline whose tickets will never be reached.
///
/// ```text
///   find what is not ready   ─▶ cut sequences back to before it ─▶ shorten pins, drop waiting holds ─▶ take it out of
///   (allocates, may throw)      (from here on nothing fails)                                           the index
/// ```

#include <quire/cache/detail/cache_core.hpp>
#include <quire/cache/detail/index_paths.hpp>
#include <quire/cache/detail/step_slot.hpp>
#include <quire/cache/detail/unready_blocks.hpp>
#include <quire/core/contract.hpp>
#include <quire/core/errc.hpp>
#include <quire/core/expected.hpp>
#include <quire/core/types.hpp>
#include <quire/prefix/prefix_pin.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace quire::detail {

/// \cond INTERNAL
template <class Policies>
auto cache_core<Policies>::abandon(timeline_id timeline) -> expected<block_count> {
  QUIRE_EXPECTS(timeline.value() < timelines);
  for (auto const& slot : slots_) {
    if (slot.phase == step_phase::planned || slot.phase == step_phase::launched) { return refuse(errc::plan_open); }
  }
  reclaim();
  auto const t = timeline.value();
  auto const last = std::max(latest_[t], fence_.issued(timeline));
  if (reached(timeline, last)) { return block_count{0}; } // nothing is in flight
  reserve_retirement();
  auto const paths = index_paths{index_, pool_.capacity()};
  auto unready = find_unready(timeline, paths);

  auto const lost_before = lost_in_all();
  abandoned_[t] = last;
  for (std::uint32_t u = 0; u <= t; ++u) { // who waits for an earlier timeline would wait for this one next
    limbo_.abandon(timeline_id{u}, [&](block_id block) { lose(block); });
  }
  for (std::size_t g = 0; g < windows_.size(); ++g) {
    unready.for_each(g, [&](block_id block) { windows_[g].detach(block); });
  }
  for (auto& record : live_) {
    if (!cut_back(record, unready, paths)) { continue; }
    promise(record, owes(record));
    open_lane(record);
  }
  for (auto& list : draining_) {
    for (auto& record : list) { static_cast<void>(cut_back(record, unready, paths)); }
  }
  for (auto& pins : late_pins_) {
    pins.change_each([&](prefix_pin& pin, std::uint32_t& count) {
      std::uint32_t back = 0;
      paths.walk(pin, [&](std::uint32_t i, block_id block) {
        if (unready.has(block)) { back = i + 1; }
      });
      if (back == 0) { return; }
      auto shorter = index_.pin_back(pin, block_count{back});
      index_.release(std::move(pin));
      pin = std::move(shorter);
      count = 0;
    });
  }
  for (auto& holds : late_holds_) {
    holds.remove_if([&](std::uint32_t g, block_id block) {
      if (!unready.has(g, block)) { return false; }
      windows_[g].lose(block);
      return true;
    });
  }
  index_.remove(unready.lead(), [&](block_id block) {
    unhang(block);
    pool_.apply(block, block_event_type::retire);
    lose(block);
  });
  for (auto& slot : slots_) { distrust(slot); }
  return lost_in_all() - lost_before;
}

/// A block is not ready if a sequence whose tickets are not all reached wrote it, or may still write behind what is read of
/// it. A private block of forks may have been left by another holder that was writing. \throws std::bad_alloc
template <class Policies>
auto cache_core<Policies>::find_unready(timeline_id timeline, index_paths const& paths) const -> unready_blocks {
  auto const t = timeline.value();
  auto out = unready_blocks{pool_.capacity(), windows_};
  auto const mark = [&](record_type const& record) {
    auto const& s = record.state;
    auto const writes = !reached(timeline, record.last[t]);
    auto from = s.table.size();
    if (s.forked && geometry_.offset(s.committed) != 0) { from = std::max(geometry_.index(s.committed), s.pinned); }
    if (writes) { from = std::min(from, first_unready(record)); }
    for (auto j = from; j < s.table.size(); ++j) { out.add(s.table[j]); }
    for (std::size_t g = 0; g < windows_.size() && writes; ++g) {
      windows_[g].each_behind(record.groups[g], unready_from(record, g), [&](block_id block) { out.add(g, block); });
    }
  };
  for (auto const& record : live_) { mark(record); }
  for (auto const& list : draining_) {
    for (auto const& record : list) { mark(record); }
  }
  for (std::uint32_t u = 0; u <= t; ++u) { // who waits for an earlier timeline would wait for this one next
    late_pins_[u].for_each([&](prefix_pin const& pin, std::uint32_t count) {
      paths.walk(pin, [&](std::uint32_t i, block_id block) {
        if (i < count) { out.add(block); }
      });
    });
    late_holds_[u].for_each([&](std::uint32_t g, block_id block, bool not_ready) {
      if (not_ready) { out.add(g, block); }
    });
  }
  return out;
}

/// Cuts \p record back to before the first block that is not ready, and on to where its windows have what the next query
/// sees: to nothing, if they have moved on since. False if all of it is ready.
template <class Policies>
auto cache_core<Policies>::cut_back(record_type& record, unready_blocks const& unready, index_paths const& paths)
    -> bool {
  auto const& s = record.state;
  auto first = s.table.size();
  for (std::uint32_t j = 0; j < first; ++j) {
    if (unready.has(s.table[j])) { first = j; }
  }
  paths.walk(s.pin, [&](std::uint32_t i, block_id block) {
    if (unready.has(block)) { first = std::min(first, s.pinned - 1 - i); }
  });
  auto whole = first == s.table.size();
  auto length = std::min(first * geometry_.block_tokens(), s.committed);
  for (std::size_t g = 0; g < windows_.size(); ++g) {
    auto const ready =
        windows_[g].ready_length(record.groups[g], [&](block_id block) { return !unready.has(g, block); });
    whole = whole && !ready;
    length = std::min(length, ready.value_or(length));
  }
  if (whole) { return false; }
  auto const goes_on_there = [&] {
    for (std::size_t g = 0; g < windows_.size(); ++g) {
      if (!goes_on(record, g, length)) { return false; }
    }
    return true;
  };
  while (length > 0 && !goes_on_there()) { length = geometry_.index(length - 1) * geometry_.block_tokens(); }
  auto const rest = retire_after(record);
  auto const ready = std::min(first, s.pinned);
  if (ready > geometry_.blocks(length) && !rest.at_once()) { // another timeline may still read what is cut off here
    rest(index_.pin_back(s.pin, block_count{s.pinned - ready}));
  }
  cut(record, length, loss{this, rest, &unready});
  return true;
}
/// \endcond

} // namespace quire::detail
