// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Proving the invariants of a live cache from scratch (B12).

#include <quire/block/no_allocation.hpp>
#include <quire/cache/admission.hpp>
#include <quire/cache/detail/cache_core.hpp>
#include <quire/core/types.hpp>
#include <quire/model/resident_range.hpp>
#include <quire/prefix/node_id.hpp>
#include <quire/prefix/prefix_pin.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#ifdef QUIRE_AUDIT
#include <cstdio>  // std::fprintf
#include <cstdlib> // std::abort
#endif

namespace quire::detail {

/// \cond INTERNAL
#ifdef QUIRE_AUDIT
/// Where a QUIRE_AUDIT build ends when an operation has left a broken cache behind.
[[noreturn]] inline auto audit_failed(char const* broken) noexcept -> void {
  std::fprintf(stderr, "quire audit: %s\n", broken);
  std::abort();
}
#endif

/// Recounts holders, pins, promises and states from the tables of all sequences and compares. Returns the first invariant
/// that is broken, empty if all hold.
template <class Policies>
auto cache_core<Policies>::audit() const -> std::string {
  using states = typename pool_type::state_type;
  auto const n = pool_.capacity().value();
  std::vector<std::uint32_t> holders(n);
  std::vector<std::uint32_t> pins(std::size_t{n} + 1);
  std::vector<std::uint8_t> in_index(n);
  std::vector<std::uint32_t> node_of(n); // node that ends with a block
  index_.for_each_node([&](node_id node, node_id, auto blocks, std::uint32_t) {
    for (auto const block : blocks) { in_index[block] = 1; }
    node_of[blocks.back()] = node.value();
  });
  std::uint64_t promised = 0;
  auto const check = [&](record_type const& record) {
    auto const& s = record.state;
    auto const name = "sequence " + std::to_string(record.number.value());
    if (!(s.known <= s.committed && s.committed <= s.reserved && s.reserved <= record.limit)) {
      return name + ": lengths out of order";
    }
    if (s.table.size() < geometry_.blocks(s.reserved)) { return name + ": its table does not cover its length"; }
    if (s.table.size() > std::max(geometry_.blocks(s.reserved), geometry_.blocks(s.stored))) {
      return name + ": it holds blocks beyond its length";
    }
    if (s.pinned > s.table.size()) { return name + ": its pin reaches beyond its table"; }
    if (!s.pin) { return name + ": it has no pin"; }
    if (!is_root(s.pin.node())) { ++pins[s.pin.node().value()]; }
    if (!record.plan_open && s.reserved != s.committed) { return name + ": room is reserved without a plan"; }
    std::uint32_t twins = 0;
    for (std::uint32_t j = 0; j < s.table.size(); ++j) {
      auto block = s.table[j];
      if (s.copy_source && j == geometry_.index(s.committed)) {
        holders[block.value()] += pool_.state(block) == states::condemned ? 0U : 1U;
        block = s.copy_source; // held until the plan commits
      }
      if (block.value() >= n) { return name + ": its table names a block that does not exist"; }
      auto const state = pool_.state(block);
      if (j < s.pinned && state == states::published) { continue; }
      if (state == states::free || state == states::retiring) {
        return name + ": its table names a block that is free";
      }
      if (j < s.pinned) {
        if (state != states::private_) {
          return name + ": a block on its pinned path is neither published nor private";
        }
        ++twins;
      } else if (state == states::published) {
        if (node_of[block.value()] == 0) { return name + ": a published block it holds does not end a node"; }
        ++pins[node_of[block.value()]]; // a hold that will become a pin
      }
      if (state != states::condemned) { ++holders[block.value()]; }
    }
    return twins != s.twins ? name + ": own copies on its pinned path are miscounted" : std::string{};
  };
  for (auto const& record : live_) {
    promised += record.outstanding;
    if (auto text = check(record); !text.empty()) { return text; }
  }
  for (auto const& list : draining_) {
    for (auto const& record : list) {
      if (record.outstanding != 0) { return "a released sequence is still promised blocks"; }
      if (auto text = check(record); !text.empty()) { return text; }
    }
  }
  for (auto const& late : late_pins_) {
    late.for_each([&](prefix_pin const& pin, std::uint32_t) {
      if (!is_root(pin.node())) { ++pins[pin.node().value()]; }
    });
  }
  if (promised != promised_) { return "promised blocks are miscounted"; }
  if constexpr (shares_memory && immediate && std::is_same_v<typename Policies::admission, reserve_all>) {
    auto* const self = const_cast<cache_core*>(this);
    self->count_needs();
    if (!memory_.fits()) { return "what is promised to all groups together cannot be had"; }
  }
  for (std::size_t g = 0; g < windows_.size(); ++g) {
    if (auto text = audit_group(g, in_index); !text.empty()) { return text; }
  }
  std::uint64_t free = 0;
  std::uint64_t retiring = 0;
  for (std::uint32_t b = 0; b < n; ++b) {
    auto const block = block_id{b};
    auto const state = pool_.state(block);
    auto const name = "block " + std::to_string(b);
    free += state == states::free ? 1U : 0U;
    retiring += state == states::retiring ? 1U : 0U;
    if (pool_.holders(block) != holders[b]) { return name + ": holders differ from the tables that name it"; }
    if ((state == states::published) != (in_index[b] != 0)) { return name + ": published and indexed disagree"; }
    if ((state == states::writing || state == states::private_) && holders[b] == 0) {
      return name + ": in use without a holder";
    }
    if (state == states::condemned && open_ == nullptr) { return name + ": condemned without a plan"; }
  }
  // That policy has blocks and never hands one out.
  constexpr auto denies = std::is_same_v<typename Policies::allocation, no_allocation>;
  if (shares_memory ? free < pool_.free_blocks().value() : (denies ? 0 : free) != pool_.free_blocks().value()) {
    return "free blocks are miscounted";
  }
  if (retiring != std::uint64_t{limbo_.size().value()} + lost_) {
    return "retiring blocks are neither waiting nor given up";
  }
  return index_.audit(pins);
}

/// The same for one window group. \param in_index by lead block: it is in the index
template <class Policies>
auto cache_core<Policies>::audit_group(std::size_t g, std::span<std::uint8_t const> in_index) const -> std::string {
  auto const& window = windows_[g];
  std::vector<std::uint32_t> holders(window.pool().capacity().value());
  std::uint64_t held = 0;
  std::uint64_t budgets = 0;
  std::vector<std::uint32_t> users(holders.size());
  auto const check = [&](record_type const& record) -> std::string {
    auto const& s = record.state;
    auto const& table = record.groups[g];
    auto const name =
        "sequence " + std::to_string(record.number.value()) + ", group " + std::to_string(window.id().value());
    auto const least = window.geometry().blocks(s.reserved);
    if (table.size() < least || table.size() > std::max(least, window.geometry().blocks(table.stored))) {
      return name + ": its table does not cover its length";
    }
    std::uint32_t entries = table.copy_source ? 1U : 0U;
    if (table.copy_source) { ++holders[table.copy_source.value()]; }
    for (auto const block : table.blocks) {
      if (!block) { continue; }
      ++entries;
      holders[block.value()] += window.pool().state(block) == pool_type::state_type::condemned ? 0U : 1U;
    }
    if (entries != table.held || table.held != table.counted) { return name + ": held blocks are miscounted"; }
    auto const oldest = s.committed - std::min(record.rewind, s.committed);
    auto const unit = token_count{window.geometry().block_tokens()};
    if (!record.plan_open && s.committed > 0 && record.counted && record.lane == 0) {
      auto const dead = resident_range(token_pos{oldest}, window.keeps(), unit).dead;
      for (auto j = dead.begin.value(); j < std::min(dead.end.value(), table.size()); ++j) {
        if (table.blocks[j]) { return name + ": it holds a block that no query can see"; }
      }
    }
    auto const need = resident_range(token_pos{s.committed}, window.keeps(), unit);
    // While windows are rebuilt they have what was computed since, and nothing before.
    auto const first = record.rebuilds ? window.geometry().index(record.attached) : 0U;
    auto const tail = need.tail_blocks(token_count{s.committed}).begin.value();
    for (auto j = std::max(tail, first); j < table.size(); ++j) {
      if (!table.blocks[j]) { return name + ": a block that the next query sees is gone"; }
    }
    for (std::uint32_t j = 0; j < need.sink_blocks(token_count{s.committed}).end.value(); ++j) {
      if (!table.blocks[j]) { return name + ": a block of its sinks is gone"; }
    }
    held += table.held;
    budgets += table.budget;
    if (table.budget > 0) {
      if (table.copy_source) { ++users[table.copy_source.value()]; }
      for (auto const block : table.blocks) {
        if (block) { ++users[block.value()]; }
      }
    }
    return {};
  };
  for (auto const& record : live_) {
    if (auto text = check(record); !text.empty()) { return text; }
  }
  for (auto const& list : draining_) {
    for (auto const& record : list) {
      if (auto text = check(record); !text.empty()) { return text; }
    }
  }
  for (auto const& late : late_holds_) {
    late.for_each([&](std::uint32_t of, block_id block, bool) {
      if (of == g) { ++holders[block.value()]; }
    });
  }
  auto const name = "group " + std::to_string(window.id().value());
  if (held != window.held()) { return name + ": held blocks are miscounted"; }
  auto const in_use =
      static_cast<std::uint64_t>(std::count_if(users.begin(), users.end(), [](auto n) { return n > 0; }));
  if (window.promised() != budgets - std::min(budgets, in_use)) { return name + ": promised blocks are miscounted"; }
  if (immediate && !shares_memory && std::is_same_v<typename Policies::admission, reserve_all> &&
      window.promised() > window.available().value()) {
    return name + ": more is promised than can be had";
  }
  return window.audit(holders, users, open_ != nullptr, [&](block_id lead) { // a victim of the open plan may come back
    return in_index[lead.value()] != 0 || pool_.state(lead) == pool_type::state_type::condemned;
  });
}
/// \endcond

} // namespace quire::detail
