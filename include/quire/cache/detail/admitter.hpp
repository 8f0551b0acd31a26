// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Letting sequences in.
///
/// ```text
///   find     the longest resident prefix, and how much of it every group can serve
///   price    what the request takes of every group, now and in all, beside what is free, idle and promised
///   decide   the admission policy is asked for each; where groups share memory, idle blocks of others make room first
///   attach   pins and holds; from here on nothing fails
/// ```

#include <quire/cache/admission.hpp>
#include <quire/cache/detail/cache_core.hpp>
#include <quire/cache/detail/group_set.hpp>
#include <quire/cache/detail/lifetime.hpp>
#include <quire/cache/detail/record.hpp>
#include <quire/cache/refusal.hpp>
#include <quire/cache/requests.hpp>
#include <quire/core/checked.hpp>
#include <quire/core/errc.hpp>
#include <quire/core/expected.hpp>
#include <quire/core/types.hpp>
#include <quire/observe/events.hpp>
#include <quire/prefix/prefix_pin.hpp>
#include <quire/sequence/block_geometry.hpp>
#include <quire/sequence/prefix_path.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace quire::detail {

/// \cond INTERNAL
template <class Policies>
class admitter {
  using core_type = cache_core<Policies>;
  using record_type = typename core_type::record_type;

public:
  explicit admitter(core_type& core) noexcept : c_{&core} {}

  /// \throws std::bad_alloc; nothing has changed then.
  [[nodiscard]] auto admit(admit_request const& request) -> expected<record_type*, refusal> {
    auto& c = *c_;
    c.reclaim();
    if (auto const why = check(request)) { return refuse(request, *why); }
    auto& record = c.registry.next();
    record.prompt = static_cast<std::uint32_t>(request.prompt.size());
    record.limit = record.prompt + request.max_output.value() + request.draft.value();
    record.rewind = request.draft.value();
    auto const match = find(record, request);
    auto why = decide(record, c.index.would_pin(match).value(), false);
    auto held = false;
    if (why && why->code == errc::no_blocks && core_type::shares_memory && c.open == nullptr) {
      hold(record, match);
      held = true;
      // Idle blocks of one group hold pages that another may need: they go until the price can be paid.
      while (why && why->code == errc::no_blocks && c.evict_for_others()) { why = decide(record, 0, true); }
    }
    if (why) {
      forget(record, held);
      return refuse(request, *why);
    }
    if (!held) { hold(record, match); }
    start(record, request);
    auto const event = admit_event{.scope = request.scope,
                                   .sequence = record.number,
                                   .prompt = token_count{record.prompt},
                                   .attached = token_count{record.at.committed},
                                   .promised = block_count{record.owed_units},
                                   .resumed = request.resumed};
    c.stats.on_admit(event);
    c.observe([&](auto& o) { o.on_admit(event); });
    return &record;
  }

private:
  /// A refusal, and the blocks that were missing.
  struct refused_price : refusal {
    block_count missing{};
  };

  // --- find ---------------------------------------------------------------------------------------------------------
  /// What is wrong with the request itself.
  [[nodiscard]] auto check(admit_request const& request) const -> std::optional<refused_price> {
    auto const& c = *c_;
    auto const limit =
        std::uint64_t{request.prompt.size()} + request.max_output.value() + std::uint64_t{request.draft.value()};
    auto why = refused_price{};
    if (request.prompt.empty()) {
      why.code = errc::empty_prompt;
    } else if (request.max_output == token_count{}) {
      why.code = errc::zero_output;
    } else if (c.options.max_context != token_count{} && limit > c.options.max_context.value()) {
      why.code = errc::beyond_context;
    } else if (auto const never = never_fits(limit)) {
      return never;
    } else if (c.registry.full()) {
      why.code = errc::too_many_sequences;
    } else {
      return std::nullopt;
    }
    return why;
  }
  /// Whether some group that keeps everything, or the index, can never hold \p limit positions.
  [[nodiscard]] auto never_fits(std::uint64_t limit) const -> std::optional<refused_price> {
    auto const& c = *c_;
    auto why = refused_price{};
    why.code = errc::never_fits;
    auto const exceeds = [&](block_geometry const& geometry, std::uint32_t capacity) {
      auto const blocks = ceil_div<std::uint64_t>(limit, geometry.block_tokens());
      why.needed = block_count{static_cast<std::uint32_t>(std::min<std::uint64_t>(blocks, 0xffff'ffffU))};
      why.capacity = block_count{capacity};
      return blocks > capacity || limit > max_positions;
    };
    for (auto const& group : c.groups) {
      if (!group.by_path() || !exceeds(group.geometry(), group.capacity())) { continue; }
      why.group = group.id();
      why.promised = block_count{group.ledger().promised()};
      why.available = block_count{c.groups.available(group, c.index.evictable())};
      return why;
    }
    if (!exceeds(c.unit(), c.index.capacity().value())) { return std::nullopt; }
    why.group = group_id::none();
    why.promised = block_count{c.promised_units()};
    why.available = block_count{c.available_units()};
    return why;
  }
  /// Finds what is there and writes it into the tables of \p record, which holds nothing of it yet.
  [[nodiscard]] auto find(record_type& record, admit_request const& request) -> prefix_match {
    auto& c = *c_;
    auto const& unit = c.unit();
    auto const most = std::min(record.limit, c.longest());
    c.reserve_pins();
    record.path.reserve(unit.blocks(most) + 1);
    for (std::size_t g = 0; g < c.groups.size(); ++g) {
      record.tables[g].blocks.reserve(c.groups[g].geometry().blocks(most) + c.groups[g].per_unit());
    }
    auto const root = c.root(request.scope);
    auto match = prefix_match{unit_count{0}, root, 0, root};
    // Without skipped writes the last unit is attached to copy its front: of a unit of one token there is none.
    auto const last =
        !c.options.skip_writes && unit.block_tokens() == 1 ? record.prompt - 1 : unit.index(record.prompt);
    if (request.reuse == reuse_rule::read_and_write) {
      match = c.index.match(root, request.prompt, record.path.open(std::min(last, c.index.capacity().value())));
    }
    record.path.shrink(match.units.value());
    record.reuse = match.units != unit_count{} ? usable(record) : reuse_plan{};
    if (auto const units = unit.index(record.reuse.start);
        !c.options.skip_writes && units < match.units.value()) { // what lies behind would be written
      match = c.index.match(root, request.prompt.first(record.reuse.start), record.path.open(units));
      record.path.shrink(units);
      record.reuse.found = units * unit.block_tokens();
    }
    for (std::size_t g = 0; g < c.groups.size(); ++g) { c.found_idle[g] = map_hit(record, g); }
    return match;
  }
  /// How much of a hit is of use.
  [[nodiscard]] auto usable(record_type const& record) const -> reuse_plan {
    auto const& c = *c_;
    auto const found = record.path.size() * c.unit().block_tokens();
    auto const whole = c.groups.longest_hit(record.path.units(), record.prompt);
    if (c.options.rebuild == token_count{} || !c.options.skip_writes || c.groups.has_sinks()) {
      return {found, whole, 0};
    }
    // Exact again where new positions begin; of a hit of the whole prompt the last position's output is one of them.
    auto const exact = std::min(found, record.prompt - 1);
    auto const back = exact - std::min(exact, c.options.rebuild.value());
    auto const start = back - c.unit().offset(back);
    return start > whole ? reuse_plan{found, start, exact} : reuse_plan{found, whole, 0};
  }
  /// Writes what group \p g has of the hit. \returns [blocks] of it that are idle
  auto map_hit(record_type& record, std::size_t g) -> std::uint32_t {
    auto const& c = *c_;
    auto& group = c_->groups[g];
    auto& table = record.tables[g];
    // Where writes are not skipped, the last position of a whole hit is written into a copy.
    auto const writes = c.options.skip_writes ? record.prompt : record.prompt - 1;
    std::uint32_t idle = 0;
    if (group.by_path()) {
      group.map_hit(table, record.path.units(), record.prompt, std::min(record.reuse.found, writes));
    } else if (record.reuse.exact_from > 0) {
      group.begin_at(table, record.reuse.start);
    } else {
      idle = group.map_hit(table, record.path.units(), record.prompt, std::min(record.reuse.start, writes));
    }
    if (!c.options.skip_writes) { table.skip_until = 0; }
    return idle;
  }

  // --- price --------------------------------------------------------------------------------------------------------
  /// What the request takes in one account.
  struct price {
    std::uint32_t now;      // to compute the prompt
    std::uint32_t in_total; // until the last permitted position
    std::uint32_t most;     // at once, what it found included
    std::uint32_t takes;    // idle ones that attaching takes out of what is available
  };
  /// The last position of a whole hit is written into a copy of its unit.
  [[nodiscard]] auto copies_unit(record_type const& record) const noexcept -> bool {
    return !c_->options.skip_writes && record.path.size() > 0 && record.reuse.start == record.prompt;
  }
  [[nodiscard]] auto price_units(record_type const& record, std::uint32_t pinned) const -> price {
    auto const& unit = c_->unit();
    auto const copies = copies_unit(record) ? 1U : 0U;
    auto const found = record.path.size();
    return {unit.blocks(record.prompt) - found + copies, unit.blocks(record.limit) - found + copies,
            unit.blocks(record.limit) + copies, pinned};
  }
  [[nodiscard]] auto price_of(record_type const& record, std::size_t g, std::uint32_t pinned, bool held) const
      -> price {
    auto const& group = c_->groups[g];
    auto const found = record.tables[g].size();
    auto const budget = group.budget(record.limit, c_->append_limit(), record.rewind);
    auto const prompt = std::min(budget, group.geometry().blocks(record.prompt));
    if (!group.by_path()) {
      auto const idle = c_->found_idle[g];
      return {prompt - std::min(idle, prompt), budget - std::min(idle, budget), budget, held ? 0 : idle};
    }
    auto const at = record.prompt - 1;
    auto const copies =
        copies_unit(record) ? group.geometry().blocks(at) - c_->unit().index(at) * group.per_unit() : 0U;
    return {prompt - found + copies, budget - found + copies, budget + copies, pinned * group.per_unit()};
  }

  // --- decide -------------------------------------------------------------------------------------------------------
  /// Asks the admission policy about every account. \param pinned [units] idle ones that the hit would pin
  /// \param held the hit is held already \returns why not; nothing has changed then
  [[nodiscard]] auto decide(record_type const& record, std::uint32_t pinned, bool held)
      -> std::optional<refused_price> {
    auto& c = *c_;
    auto const idle_units = c.index.evictable();
    c.count_needs();
    for (std::size_t g = 0; g < c.groups.size(); ++g) {
      auto const& group = c.groups[g];
      auto const it = price_of(record, g, pinned, held);
      auto const idle = c.groups.evictable(group, idle_units);
      auto const room = std::uint64_t{c.room(g)} + idle - std::min(idle, it.takes);
      auto refused = weigh(it, group.ledger().promised(), room, group.ledger().reserved(), group.capacity());
      if (refused) {
        refused->group = group.id();
        return refused;
      }
      c.need_beside(g, group.ledger().promised() + group.ledger().reserved() + it.in_total,
                    idle - std::min(idle, it.takes));
    }
    auto const units = price_units(record, pinned);
    auto const room =
        std::uint64_t{c.index.free_units().value()} + idle_units.value() - std::min(idle_units.value(), units.takes);
    return weigh(units, c.promised_units(), room, c.reserved_units, c.index.capacity().value());
  }
  [[nodiscard]] auto weigh(price const& it, std::uint32_t promised, std::uint64_t room, std::uint32_t reserved,
                           std::uint32_t capacity) const -> std::optional<refused_price> {
    auto const spare = room - std::min<std::uint64_t>(room, reserved);
    auto const query = admission_query{.now = block_count{it.now},
                                       .in_total = block_count{it.in_total},
                                       .promised = block_count{promised},
                                       .available = block_count{static_cast<std::uint32_t>(spare)},
                                       .capacity = block_count{capacity}};
    auto why = refused_price{};
    why.code = errc::no_blocks;
    why.needed = query.in_total;
    why.promised = query.promised;
    why.available = query.available;
    why.capacity = query.capacity;
    why.group = group_id::none(); // the index, unless the caller says otherwise
    if (it.most > capacity) {
      why.code = errc::never_fits;
      why.needed = block_count{it.most};
      return why;
    }
    // What a plan has reserved it gets, whatever the policy says.
    if (room >= reserved && c_->admission.admits(query)) { return std::nullopt; }
    auto const free = query.available - std::min(query.available, query.promised);
    why.missing = query.in_total - std::min(free, query.in_total);
    return why;
  }

  // --- attach -------------------------------------------------------------------------------------------------------
  auto hold(record_type& record, prefix_match const& match) -> void {
    record.path.attach(c_->index, match);
    for (std::size_t g = 0; g < c_->groups.size(); ++g) { c_->groups[g].attach(record.tables[g]); }
  }
  auto forget(record_type& record, bool held) -> void {
    auto& c = *c_;
    for (std::size_t g = 0; g < c.groups.size(); ++g) {
      if (held) { c.groups[g].drop_all(record.tables[g], record.path.pinned(), {}); }
      c.groups[g].reset(record.tables[g]);
    }
    if (held) { c.index.release(record.path.drop(c.index)); }
    record.path.shrink(0);
  }
  auto start(record_type& record, admit_request const& request) -> void {
    auto& c = *c_;
    record.path.publish_until(publish_end(request));
    record.at.committed = record.at.known = std::min(record.reuse.start, record.prompt - 1);
    record.at.skip_until = c.options.skip_writes ? record.reuse.found : 0;
    record.resumed = request.resumed;
    record.counted = false;
    record.covered = 0;
    record.hit = record.at.committed;
    record.last = {};
    if (record.path.size() > 0) { record.last = c.clock.latest(); } // what it found may be anybody's work in flight
    record.epoch = c.epoch;
    record.scope = request.scope;
    record.phase = core_type::phase_type::waiting;
    begin(c, record);
  }
  [[nodiscard]] static auto publish_end(admit_request const& request) noexcept -> std::uint32_t {
    if (request.reuse == reuse_rule::none || request.publish == publish_rule::none) { return 0; }
    if (request.publish == publish_rule::prompt) { return static_cast<std::uint32_t>(request.prompt.size()); }
    return prefix_path::publish_all;
  }

  // --- refuse -------------------------------------------------------------------------------------------------------
  [[nodiscard]] auto refuse(admit_request const& request, refused_price const& why) -> tl::unexpected<refusal> {
    auto const event = refuse_event{.scope = request.scope, .sequence = {}, .reason = why.code, .missing = why.missing};
    c_->stats.on_refuse(event);
    c_->observe([&](auto& o) { o.on_refuse(event); });
    return tl::unexpected<refusal>{static_cast<refusal const&>(why)};
  }

  core_type* c_;
};
/// \endcond

} // namespace quire::detail
