// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Proving every invariant of a cache: everything is counted anew from the tables and paths of all sequences.

#include <quire/block/no_allocation.hpp>
#include <quire/cache/admission.hpp>
#include <quire/cache/detail/cache_core.hpp>
#include <quire/cache/detail/step_slot.hpp>
#include <quire/core/types.hpp>
#include <quire/prefix/node_id.hpp>
#include <quire/prefix/prefix_pin.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
template <class Policies>
class auditor {
  using core_type = cache_core<Policies>;
  using record_type = typename core_type::record_type;
  using slot_type = typename core_type::slot_type;
  static constexpr bool promises_hold =
      core_type::immediate && std::is_same_v<typename Policies::admission, reserve_all>;

public:
  explicit auditor(core_type const& core) noexcept : c_{&core} {}

  /// The first invariant that is broken, empty if all hold. \complexity O(pool · depth)
  [[nodiscard]] auto first_broken() -> std::string {
    auto const& c = *c_;
    in_index_.assign(c.index.capacity().value(), 0);
    node_of_.assign(in_index_.size(), 0);
    unit_holders_.assign(in_index_.size(), 0);
    pins_.assign(in_index_.size() + 1, 0);
    c.index.for_each_node([&](node_id node, node_id, auto units, std::uint32_t) {
      for (auto const unit : units) { in_index_[unit] = 1; }
      node_of_[units.back()] = node.value();
    });
    if (auto text = open_plan(); !text.empty()) { return text; }
    std::uint64_t owed = 0;
    for (auto const& record : c.registry.live()) {
      owed += record.owed_units;
      if (auto text = path_of(record); !text.empty()) { return name_of(record) + text; }
    }
    if (owed != c.owed_units) { return "units promised are miscounted"; }
    c.pins.for_each([&](prefix_pin const& pin) { pinned(pin); });
    for (auto const& slot : c.slots) { // units that copies were made of
      for (auto const& copy : launched(slot)) {
        if (copy.group == copy.unit && !copied_from_pinned(copy)) { hold(unit_id{copy.source.value()}); }
      }
    }
    for (std::uint32_t u = 0; u < in_index_.size(); ++u) {
      if (!c.index.published(unit_id{u}) && c.index.holders(unit_id{u}) != unit_holders_[u]) {
        return "unit " + std::to_string(u) + ": holders differ from the paths that name it";
      }
    }
    if (promises_hold && !core_type::shares_memory && c.promised_units() > c.available_units()) {
      return "more units are promised than can be had";
    }
    for (std::size_t g = 0; g < c.groups.size(); ++g) {
      if (auto text = group(g); !text.empty()) { return text; }
    }
    if constexpr (core_type::shares_memory && promises_hold) {
      auto& core = const_cast<core_type&>(c);
      core.count_needs();
      if (!core.groups.memory().fits()) { return "what is promised to all groups together cannot be had"; }
    }
    return c.index.audit(pins_);
  }

private:
  using copy_note = typename slot_type::copy_note;

  [[nodiscard]] static auto name_of(record_type const& record) -> std::string {
    return "sequence " + std::to_string(record.number.value());
  }
  [[nodiscard]] static auto launched(slot_type const& slot) -> std::span<copy_note const> {
    return slot.phase == step_phase::launched ? std::span<copy_note const>{slot.copies} : std::span<copy_note const>{};
  }
  [[nodiscard]] static auto copied_from_pinned(copy_note const& copy) -> bool {
    return copy.at < copy.record->path.pinned();
  }
  [[nodiscard]] auto open_plan() const -> std::string {
    auto const& c = *c_;
    if (c.open != nullptr) { return c.open->phase == step_phase::planned ? "" : "the open plan is not planned"; }
    for (auto const& group : c.groups) {
      if (group.ledger().reserved() != 0) { return "blocks are reserved without a plan"; }
    }
    return c.reserved_units != 0 ? "units are reserved without a plan" : "";
  }
  auto pinned(prefix_pin const& pin) -> void {
    if (!is_root(pin.node())) { ++pins_[pin.node().value()]; }
  }
  /// A unit that is held beside the pin: counted as a holder, or, once somebody has published it, at its node.
  auto hold(unit_id unit) -> void {
    if (in_index_[unit.value()] != 0) {
      ++pins_[node_of_[unit.value()]];
    } else {
      ++unit_holders_[unit.value()];
    }
  }
  /// Length that tables cover: more than what is committed only between launch and commit.
  [[nodiscard]] auto reserved(record_type const& record) const -> std::uint32_t {
    for (auto const& slot : c_->slots) {
      if (slot.phase != step_phase::launched || !record.plan_open) { continue; }
      for (auto const& item : slot.items) {
        if (item.record == &record) { return record.at.committed + item.tokens; }
      }
    }
    return record.at.committed;
  }
  [[nodiscard]] auto path_of(record_type const& record) -> std::string {
    auto const& c = *c_;
    auto const& path = record.path;
    auto const length = reserved(record);
    if (!(record.at.known <= record.at.committed && length <= record.limit)) { return ": lengths out of order"; }
    if (path.size() != c.unit().blocks(std::max(length, record.at.skip_until))) {
      return ": its path does not cover its length";
    }
    if (path.pinned() > path.size()) { return ": its pin reaches beyond its path"; }
    if (!path.pin()) { return ": it has no pin"; }
    pinned(path.pin());
    for (std::uint32_t u = 0; u < path.size(); ++u) {
      auto const unit = path.units()[u];
      if (unit.value() >= in_index_.size()) { return ": its path names a unit that does not exist"; }
      if (u < path.pinned()) {
        auto const copied = is_copy(record, copy_note::unit, u);
        if (!copied && in_index_[unit.value()] == 0) { return ": a unit on its pinned path is not published"; }
        if (copied) { hold(unit); }
        continue;
      }
      if (in_index_[unit.value()] != 0 && node_of_[unit.value()] == 0) {
        return ": a published unit it holds does not end a node";
      }
      hold(unit);
    }
    return {};
  }
  [[nodiscard]] auto is_copy(record_type const& record, std::uint32_t group, std::uint32_t at) const -> bool {
    for (auto const& slot : c_->slots) {
      for (auto const& copy : launched(slot)) {
        if (record.plan_open && copy.record == &record && copy.group == group && copy.at == at) { return true; }
      }
    }
    return false;
  }
  [[nodiscard]] auto group(std::size_t g) const -> std::string {
    auto const& c = *c_;
    auto const& group = c.groups[g];
    std::vector<std::uint32_t> holders(group.capacity());
    std::vector<std::uint32_t> users(group.capacity());
    std::uint64_t held = 0;
    std::uint64_t budgets = 0;
    std::uint64_t owed = 0;
    auto const name = "group " + std::to_string(group.id().value());
    for (auto const& record : c.registry.live()) {
      auto const& table = record.tables[g];
      auto const of = name_of(record) + ", " + name;
      auto const covered = std::max(reserved(record), table.skip_until);
      if (table.size() != group.geometry().blocks(covered)) { return of + ": its table does not cover its length"; }
      std::uint32_t entries = 0;
      auto const count = [&](block_id block) {
        ++entries;
        ++holders[block.value()];
        users[block.value()] += table.budget > 0 ? 1U : 0U;
      };
      for (std::uint32_t j = 0; j < table.size(); ++j) {
        auto const block = table.blocks[j];
        if (!block) { continue; }
        if (block.value() >= group.capacity()) { return of + ": it names a block that does not exist"; }
        auto const by_pin = group.by_path() && j < record.path.pinned() * group.per_unit();
        // In a unit that is copied all blocks are its own: the copies, and what it takes behind them.
        if (!by_pin || is_copy(record, copy_note::unit, j / group.per_unit())) { count(block); }
      }
      for (auto const& slot : c.slots) {
        for (auto const& copy : launched(slot)) {
          if (copy.record != &record || copy.group != g || !record.plan_open) { continue; }
          if (!(group.by_path() && copy.at < record.path.pinned() * group.per_unit())) { count(copy.source); }
        }
      }
      if (entries != table.held || table.held != table.counted) { return of + ": held blocks are miscounted"; }
      held += table.held;
      budgets += table.budget;
      owed += table.owed;
      if (auto text = window(record, g); !text.empty()) { return of + text; }
    }
    if (held != group.ledger().held()) { return name + ": held blocks are miscounted"; }
    auto const in_use =
        static_cast<std::uint64_t>(std::count_if(users.begin(), users.end(), [](auto n) { return n > 0; }));
    auto const promised = group.by_path() ? owed : budgets - std::min(budgets, in_use);
    if (group.ledger().promised() != promised - std::min<std::uint64_t>(promised, group.ledger().reserved_by_live())) {
      return name + ": promised blocks are miscounted";
    }
    if (promises_hold && !core_type::shares_memory &&
        group.ledger().promised() > c.groups.available(group, c.index.evictable())) {
      return name + ": more is promised than can be had";
    }
    constexpr auto denies =
        std::is_same_v<typename Policies::allocation, no_allocation>; // has blocks, never hands one out
    return group.audit(holders, users, in_index_, core_type::shares_memory, denies);
  }
  /// What a group that gives blocks up must still have, and must not have any more.
  [[nodiscard]] auto window(record_type const& record, std::size_t g) const -> std::string {
    auto const& group = c_->groups[g];
    auto const& table = record.tables[g];
    if (group.by_path() || record.plan_open || record.ending) { return {}; }
    auto const at = record.at.committed;
    auto const block = token_count{group.geometry().block_tokens()};
    auto const oldest = at - std::min(record.rewind, at);
    if (at > 0 && record.counted && record.left == 0) {
      auto const dead = Policies::retention::resident(token_pos{oldest}, group.keeps(), block).dead;
      for (auto j = dead.begin.value(); j < std::min(dead.end.value(), table.size()); ++j) {
        if (table.blocks[j]) { return ": it holds a block that no query can see"; }
      }
    }
    auto const need = Policies::retention::resident(token_pos{at}, group.keeps(), block);
    // While windows are rebuilt they have what was computed since, and nothing before.
    auto const first = record.reuse.exact_from > 0 ? group.geometry().index(record.reuse.start) : 0U;
    auto const begin = std::max(first, need.tail_blocks(token_count{at}).begin.value());
    for (auto j = begin; j < table.size(); ++j) {
      if (!table.blocks[j]) { return ": it lacks a block that the next query sees"; }
    }
    auto const sinks = need.sink_blocks(token_count{at});
    for (auto j = sinks.begin.value(); j < sinks.end.value(); ++j) {
      if (!table.blocks[j]) { return ": it lacks a sink"; }
    }
    return {};
  }

  core_type const* c_;
  std::vector<std::uint8_t> in_index_;      // by unit
  std::vector<std::uint32_t> node_of_;      // by unit: the node that ends with it
  std::vector<std::uint32_t> unit_holders_; // by unit, private ones
  std::vector<std::uint32_t> pins_;         // by node
};
/// \endcond

} // namespace quire::detail
