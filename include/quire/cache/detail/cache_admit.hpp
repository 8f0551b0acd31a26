// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Letting sequences in, forking them, cutting them back and ending them.

#include <quire/cache/admission.hpp>
#include <quire/cache/detail/cache_core.hpp>
#include <quire/cache/refusal.hpp>
#include <quire/cache/requests.hpp>
#include <quire/core/checked.hpp>
#include <quire/core/errc.hpp>
#include <quire/core/expected.hpp>
#include <quire/core/types.hpp>
#include <quire/observe/events.hpp>
#include <quire/prefix/prefix_match.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace quire::detail {

/// \cond INTERNAL
template <class Policies>
auto cache_core<Policies>::admit(admit_request const& request) -> expected<record_type*, refusal> {
  reclaim();
  refuse_event why;
  auto one = try_admit(request, why);
  // Where groups share memory, idle blocks of one hold pages that another may need.
  while (!one && one.error().code == errc::no_blocks && evict_for_others()) { one = try_admit(request, why); }
  if (!one) {
    stats_.on_refuse(why);
    observe([&](auto& o) { o.on_refuse(why); });
  }
  return one;
}

/// One attempt; \p why is the event of a refusal, which nobody has been told of.
template <class Policies>
auto cache_core<Policies>::try_admit(admit_request const& request, refuse_event& why)
    -> expected<record_type*, refusal> {
  auto const prompt = request.prompt.size();
  auto const refuse_with = [&](errc code, block_count needed = {}, block_count missing = {},
                               window_type const* of = nullptr) {
    why = refuse_event{.scope = request.scope, .reason = code, .missing = missing};
    if (of == nullptr) {
      return tl::unexpected<refusal>{refusal{code, needed, block_count{promised_}, available(), pool_.capacity()}};
    }
    return tl::unexpected<refusal>{
        refusal{code, needed, block_count{of->promised()}, of->available(), of->pool().capacity(), of->id()}};
  };
  if (prompt == 0) { return refuse_with(errc::empty_prompt); }
  if (request.max_output.value() == 0) { return refuse_with(errc::zero_output); }
  auto const limit = prompt + request.max_output.value() + std::uint64_t{request.draft.value()};
  auto const most = std::uint64_t{pool_.capacity().value()} * geometry_.block_tokens();
  if (options_.max_context.value() != 0 && limit > options_.max_context.value()) {
    return refuse_with(errc::beyond_context);
  }
  if (limit > most || limit > max_positions) {
    return refuse_with(errc::never_fits, block_count{static_cast<std::uint32_t>(std::min<std::uint64_t>(
                                             ceil_div<std::uint64_t>(limit, geometry_.block_tokens()), 0xffff'ffffU))});
  }
  auto const root = scopes_.root(request.scope, epoch_, index_);
  if (unused_.empty()) { return refuse_with(errc::too_many_sequences); }

  auto& record = unused_.front();
  auto& s = record.state;
  auto const p = static_cast<std::uint32_t>(prompt);
  auto const budget = geometry_.blocks(static_cast<std::uint32_t>(limit));
  s.table.reserve(budget + 1);
  reserve_tables(record, static_cast<std::uint32_t>(limit));
  auto found = prefix_match{block_count{0}, root, 0};
  if (request.reuse == reuse_rule::read_and_write) {
    // Without skipped writes the last block is attached to copy its front: of a block of one token there is none.
    auto const last = !options_.skip_writes && geometry_.block_tokens() == 1 ? p - 1 : geometry_.index(p);
    found = index_.match(root, request.prompt, s.table.open(last));
  }
  auto from = reuse{found.blocks.value() * geometry_.block_tokens(), false};
  if (!windows_.empty() && found.blocks != block_count{}) {
    from = usable(s.table.blocks().first(found.blocks.value()), p);
    if (auto const blocks = geometry_.index(from.tokens); !options_.skip_writes && blocks < found.blocks.value()) {
      found = index_.match(root, request.prompt.first(from.tokens), s.table.open(blocks));
    }
  }
  auto const hit = found.blocks.value();
  auto const copies = !options_.skip_writes && hit * geometry_.block_tokens() == p ? 1U : 0U;
  if (budget + copies > pool_.capacity().value()) {
    s.table.shrink(0);
    return refuse_with(errc::never_fits, block_count{budget + copies});
  }
  auto const pins = index_.would_pin(found);
  count_needs();
  auto const idle = evictable().value() - std::min(pins.value(), evictable().value());
  auto const query =
      admission_query{block_count{geometry_.blocks(p) - hit + copies}, block_count{budget - hit + copies},
                      block_count{promised_}, room(0, pool_.free_blocks(), idle), pool_.capacity()};
  if (!admission_.admits(query)) {
    s.table.shrink(0);
    auto const spare = query.available - std::min(query.available, query.promised);
    return refuse_with(errc::no_blocks, query.in_total, query.in_total - std::min(spare, query.in_total));
  }

  need_beside(0, promised_ + query.in_total.value(), idle);
  for (std::size_t g = 0; g < windows_.size(); ++g) {
    auto& table = record.groups[g];
    auto& window = windows_[g];
    auto here = typename window_type::finding{};
    if (from.rebuilds) {
      window.begin_at(table, from.tokens);
    } else {
      here = window.find(table, s.table.blocks(), p, attached_to(window, p, from.tokens));
    }
    auto const reach = table.planned = window.budget(limit, append_limit(), request.draft.value());
    auto const prompt_blocks = std::min(reach, window.geometry().blocks(p));
    auto const wanted = admission_query{block_count{prompt_blocks - std::min(here.idle, prompt_blocks)},
                                        block_count{reach - std::min(here.idle, reach)}, block_count{window.promised()},
                                        room(g + 1, window.pool().free_blocks(), window.idle().value() - here.idle),
                                        window.pool().capacity()};
    auto const fits = reach <= window.pool().capacity().value();
    if (fits && admission_.admits(wanted)) {
      need_beside(g + 1, window.promised() + wanted.in_total.value(), window.idle().value() - here.idle);
      continue;
    }
    s.table.shrink(0);
    for (auto& any : record.groups) { window_type::forget(any); }
    auto const spare = wanted.available - std::min(wanted.available, wanted.promised);
    return fits ? refuse_with(errc::no_blocks, wanted.in_total, wanted.in_total - std::min(spare, wanted.in_total),
                              &window)
                : refuse_with(errc::never_fits, block_count{reach}, {}, &window);
  }

  for (std::size_t g = 0; g < windows_.size(); ++g) {
    if (!from.rebuilds) { windows_[g].attach(record.groups[g]); }
    windows_[g].allow(record.groups[g], record.groups[g].planned);
  }
  ops_.attach(s, found, std::min(from.tokens, p - 1), options_.skip_writes);
  s.publishes = request.reuse != reuse_rule::none;
  s.writer = false;
  start(record, p, static_cast<std::uint32_t>(limit), request.scope);
  record.resumed = request.resumed;
  record.rewind = request.draft.value();
  record.found = hit * geometry_.block_tokens();
  record.rebuilds = from.rebuilds;
  record.attached = s.committed;
  record.matched = hit;
  record.ready = all_quiet() ? s.committed : 0;
  if (hit > 0) { record.last = latest_; } // what it found may be anybody's work in flight
  stats_.on_admit(admitted(record));
  observe([&](auto& o) { o.on_admit(admitted(record)); });
  return &record;
}

template <class Policies>
auto cache_core<Policies>::fork(record_type& parent, std::uint32_t length) -> expected<record_type*> {
  reclaim();
  if (parent.plan_open) { return refuse(errc::plan_open); }
  if (length > parent.state.committed) { return refuse(errc::out_of_range); }
  if (unused_.empty()) { return refuse(errc::too_many_sequences); }
  auto& child = unused_.front();
  for (std::size_t g = 0; g < windows_.size(); ++g) {
    if (!goes_on(parent, g, length)) { return refuse(errc::not_resident); }
  }
  child.state.table.reserve(geometry_.blocks(parent.limit) + 1);
  reserve_tables(child, parent.limit);
  ops_.fork(parent.state, child.state, length);
  auto fits = true;
  count_needs();
  for (std::size_t g = 0; g < windows_.size(); ++g) {
    auto& table = child.groups[g];
    auto const promised = block_count{windows_[g].promised()};
    windows_[g].fork(parent.groups[g], table, length);
    windows_[g].allow(table, parent.groups[g].budget);
    auto const copies = windows_[g].must_copy(table, length, false, false);
    fits = fits && admission_.admits({block_count{copies ? 1U : 0U}, block_count{table.budget}, promised,
                                      room(g + 1, windows_[g].pool().free_blocks(), windows_[g].idle().value()),
                                      windows_[g].pool().capacity()});
    need_beside(g + 1, windows_[g].promised(), windows_[g].idle().value());
  }
  child.limit = parent.limit;
  auto const owed = owes(child);
  if (!fits ||
      !admission_.admits({block_count{ops_.must_copy(child.state) ? 1U : 0U}, block_count{owed}, block_count{promised_},
                          room(0, pool_.free_blocks(), evictable().value()), pool_.capacity()})) {
    ops_.drop(child.state, [](block_id) {}); // the parent holds every block: nothing retires
    for (std::size_t g = 0; g < windows_.size(); ++g) {
      windows_[g].drop(child.groups[g], [&](block_id block, std::uint32_t) { windows_[g].let_go(block); });
    }
    return refuse(errc::no_blocks);
  }
  start(child, parent.prompt, parent.limit, parent.scope);
  child.epoch = parent.epoch;
  child.phase = parent.phase;
  child.last = parent.last;
  child.rewind = parent.rewind;
  child.found = parent.found;
  child.rebuilds = parent.rebuilds;
  child.ready = std::min(parent.ready, length);
  child.counted = true;
  child.covered = std::max(length, parent.prompt);
  child.attached = length;
  child.matched = std::min(parent.matched, child.state.table.size());
  return &child;
}

template <class Policies>
auto cache_core<Policies>::truncate(record_type& record, std::uint32_t length) -> expected<void> {
  if (record.plan_open) { return refuse(errc::plan_open); }
  if (length > record.state.committed) { return refuse(errc::out_of_range); }
  if (length == record.state.committed) { return {}; }
  for (std::size_t g = 0; g < windows_.size(); ++g) {
    if (!goes_on(record, g, length)) { return refuse(errc::not_resident); }
  }
  reserve_retirement();
  // What was shared is promised again, beside what comes back.
  auto const retire = retire_after(record);
  auto const settled = record.outstanding + ops_.would_free(record.state, length, retire.at_once());
  auto const owed =
      geometry_.blocks(record.limit) - geometry_.blocks(length) + (ops_.would_copy(record.state, length) ? 1U : 0U);
  count_needs();
  auto const query =
      admission_query{block_count{0}, block_count{owed - std::min(owed, settled)}, block_count{promised_},
                      room(0, pool_.free_blocks(), evictable().value()), pool_.capacity()};
  if (owed > settled && !admission_.admits(query)) { return refuse(errc::no_blocks); }
  cut(record, length, retire);
  give_up(record, retire);
  promise(record, owes(record));
  open_lane(record);
  return {};
}

template <class Policies>
auto cache_core<Policies>::resolve(record_type& record, std::span<token_id const> tokens) -> expected<void> {
  if (record.plan_open) { return refuse(errc::plan_open); }
  if (record.state.known + tokens.size() > record.state.committed) { return refuse(errc::out_of_range); }
  if (record.epoch != epoch_) { record.state.publishes = false; }
  auto const settled = ops_.resolve(record.state, tokens, hanger{this, &record});
  if (settled.published + settled.duplicates > 0) { published(record, settled); }
  open_lane(record);
  return {};
}

template <class Policies>
auto cache_core<Policies>::end(record_type& record, request_event_type why) -> expected<void> {
  auto const to = Policies::request_states::table.next(record.phase, why);
  if (!to) { return refuse(errc::illegal_transition); }
  record.phase = *to;
  ++record.generation;
  promise(record, 0);
  for (std::size_t g = 0; g < windows_.size(); ++g) { windows_[g].allow(record.groups[g], 0); }
  auto const event =
      release_event{.scope = record.scope,
                    .sequence = record.number,
                    .length = token_count{record.state.committed},
                    .returned = block_count{record.state.table.size() - record.state.pinned + record.state.twins},
                    .kept = block_count{record.state.pinned - record.state.twins},
                    .preempted = why == request_event_type::preempt};
  stats_.on_release(event);
  observe([&](auto& o) { o.on_release(event); });
  if (record.plan_open) {
    record.ending = true;
  } else {
    finish(record);
  }
  return {};
}

template <class Policies>
auto cache_core<Policies>::finish(record_type& record) -> void {
  record.ending = false;
  live_.erase(live_.iterator_to(record));
  for (std::uint32_t t = 0; t < timelines; ++t) {
    if (!immediate && !reached(timeline_id{t}, record.last[t])) {
      draining_[t].push_back(record);
      return;
    }
  }
  if (!immediate && record.state.forked) {
    auto const retire = retire_after(record); // another holder's step may still read what this one gives up
    drop_groups(record, retire);
    ops_.drop(record.state, retire);
  } else {
    drop_groups(record, retirement{this, timeline_id{0}, ticket{}});
    ops_.drop(record.state);
  }
  if (auto const to = Policies::request_states::table.next(record.phase, request_event_type::release)) {
    record.phase = *to;
  }
  unused_.push_front(record);
}

template <class Policies>
auto cache_core<Policies>::start(record_type& record, std::uint32_t prompt, std::uint32_t limit, scope_number scope)
    -> void {
  unused_.erase(unused_.iterator_to(record));
  live_.push_back(record);
  record.limit = limit;
  record.outstanding = 0;
  record.prompt = prompt;
  record.attached = record.covered = record.ready = 0;
  record.epoch = epoch_;
  record.scope = scope;
  record.number = sequence_number{++numbers_};
  record.last = {};
  record.plan_open = record.ending = record.counted = record.resumed = false;
  record.phase = phase_type::waiting;
  record.lane = 0;
  record.at_block = false;
  record.stamp = ++stamps_;
  promise(record, owes(record));
  columns_ = std::max(columns_, geometry_.blocks(limit));
  for (std::size_t g = 0; g < windows_.size(); ++g) {
    group_columns_[g] = std::max(group_columns_[g], windows_[g].columns(limit, record.groups[g].budget));
  }
}
/// \endcond

} // namespace quire::detail
