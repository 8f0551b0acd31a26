// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The parts of a cache, wired together. No algorithm: those are functions over the parts.
///
/// ```text
///   scopes ─▶ index (units) ─▶ groups (blocks on units)         who owns what
///   registry: records = lengths + path (identity) + tables
///   clock, late pins: what work in flight may still use
///   slots: step buffers
///
///   admitter.hpp   find ─▶ price ─▶ decide ─▶ attach             who uses it
///   stepper.hpp    plan ─▶ launch ─▶ commit, or drop             append_cursor.hpp: the short way of a decode step
///   lifetime.hpp   fork, truncate, resolve, end
///   audit.hpp · timeline_loss.hpp · compact.hpp
/// ```

#include <quire/block/block_pool.hpp>
#include <quire/cache/cache_options.hpp>
#include <quire/cache/detail/batch_rows.hpp>
#include <quire/cache/detail/block_group.hpp>
#include <quire/cache/detail/fence_clock.hpp>
#include <quire/cache/detail/group_set.hpp>
#include <quire/cache/detail/late_pins.hpp>
#include <quire/cache/detail/record.hpp>
#include <quire/cache/detail/sequence_registry.hpp>
#include <quire/cache/detail/step_slot.hpp>
#include <quire/cache/preemption.hpp>
#include <quire/cache/scope_table.hpp>
#include <quire/core/config_error.hpp>
#include <quire/core/types.hpp>
#include <quire/observe/counting_observer.hpp>
#include <quire/observe/events.hpp>
#include <quire/observe/null_observer.hpp>
#include <quire/prefix/node_id.hpp>
#include <quire/sequence/block_geometry.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
template <class Policies>
struct cache_core {
  using digest_type = typename Policies::digest;
  using index_type = typename Policies::template index<typename Policies::eviction, digest_type>;
  using pool_type = block_pool<typename Policies::allocation, typename Policies::block_states>;
  using clock_type = fence_clock<typename Policies::fence>;
  using group_type = block_group<pool_type, typename Policies::eviction, typename Policies::retention, clock_type>;
  using groups_type = group_set<group_type, typename Policies::allocation>;
  using phase_type = typename Policies::request_states::state;
  using request_event_type = typename Policies::request_states::event;
  using observer_type = typename Policies::observer;
  using tickets = typename clock_type::tickets;
  using record_type = record<phase_type, clock_type::timelines>;
  using slot_type = step_slot<record_type>;
  static constexpr std::size_t timelines = clock_type::timelines;
  static constexpr bool immediate = clock_type::immediate;
  static constexpr bool shares_memory = groups_type::shares_memory;
  static constexpr bool silent = std::is_same_v<observer_type, null_observer>; // nobody wants an event per step

  /// \throws config_error if an option is impossible.
  cache_core(cache_options const& given, digest_type digest, typename Policies::admission admit, observer_type observer)
      : cache_core{checked(given), group_layout{given}, digest, std::move(admit), std::move(observer)} {}
  cache_core(cache_core const&) = delete;
  auto operator=(cache_core const&) -> cache_core& = delete;

  cache_options options;
  clock_type clock;
  groups_type groups;
  index_type index;
  scope_table scopes;
  sequence_registry<record_type> registry;
  late_pins<clock_type> pins;
  std::deque<slot_type> slots;
  [[no_unique_address]] typename Policies::admission admission;
  [[no_unique_address]] observer_type watcher;
  counting_observer stats;
  slot_type* open = nullptr;           // planned, not launched
  std::uint32_t reserved_units = 0;    // by it
  std::uint32_t reserved_by_ended = 0; // [units] of these, by sequences that have ended
  std::uint32_t owed_units = 0;        // promised to sequences, and not taken
  std::uint64_t serials = 0;
  std::uint64_t versions = 0;
  std::uint32_t epoch = 0;
  std::uint32_t restart_below = 0;
  std::vector<std::uint32_t> columns;    // by block group: of the longest table so far, or of `max_context`
  std::vector<std::uint32_t> found_idle; // by block group: [blocks] idle in what the admission at hand found

  std::vector<returned_blocks> returned; // by layer group: what the last preemption gave
  tickets returned_until{};

  // --- small things that several algorithms share -------------------------------------------------------------------
  [[nodiscard]] auto unit() const noexcept -> block_geometry const& { return groups.unit(); }
  /// [tokens] that a step may add to a sequence.
  [[nodiscard]] auto append_limit() const noexcept -> std::uint32_t {
    return bounded_ && options.max_append != token_count{} ? options.max_append.value() : max_positions;
  }
  /// What a step of \p q positions would be to the groups.
  [[nodiscard]] auto request_of(record_type const& record, std::uint32_t q) const -> append_request {
    return {.committed = record.at.committed,
            .tokens = q,
            .skips = record.at.skips(),
            .owns_tail = record.path.owns_tail(),
            .copies_unit = record.path.must_copy(index, unit(), record.at)};
  }
  /// True if \p record, cut back to \p length, could go on there.
  [[nodiscard]] auto can_resume_at(record_type const& record, std::uint32_t length) const -> bool {
    if (length > 0 && length < record.reuse.exact_from) { return false; }
    for (std::size_t g = 0; g < groups.size(); ++g) {
      if (!groups[g].can_resume_at(record.tables[g], length, record.at.committed)) { return false; }
    }
    return true;
  }
  /// The last work in flight that may touch what \p record reads. Private units of forks are not only its own: another
  /// holder may have left while its steps were in flight.
  [[nodiscard]] auto last_use(record_type const& record) const noexcept -> tickets const& {
    return record.path.forked() ? clock.latest() : record.last;
  }
  template <class F>
  auto observe(F f) noexcept -> void {
    if constexpr (!silent) { f(watcher); }
  }
  auto evicted(group_type const& group, std::uint32_t blocks) noexcept -> void {
    for (auto const member : group.members()) {
      auto const event = evict_event{.group = member, .blocks = block_count{blocks}};
      stats.on_evict(event);
      observe([&](auto& o) { o.on_evict(event); });
    }
  }
  /// Frees \p blocks of \p group. \returns how many
  auto evict(group_type& group, std::uint32_t blocks) -> std::uint32_t {
    return groups.evict(index, group, blocks, [this](group_type const& of, std::uint32_t n) { evicted(of, n); });
  }
  /// [units] that a plan could have now.
  [[nodiscard]] auto available_units() const noexcept -> std::uint32_t {
    auto const all = index.free_units().value() + index.evictable().value();
    return all - std::min(all, reserved_units);
  }
  [[nodiscard]] auto promised_units() const noexcept -> std::uint32_t {
    return owed_units - std::min(owed_units, reserved_units - reserved_by_ended);
  }
  /// [tokens] that no sequence can be longer than.
  [[nodiscard]] auto longest() const noexcept -> std::uint32_t {
    auto const most = std::uint64_t{index.capacity().value()} * unit().block_tokens();
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(most, max_positions));
  }
  /// Root of \p scope in this epoch; what hangs below that of an older one is unreachable from now on.
  [[nodiscard]] auto root(scope_number scope) -> node_id { return scopes.root(scope, epoch, index); }

  // --- one memory for all groups ------------------------------------------------------------------------------------
  /// Notes the free blocks that running sequences will take, group by group: what is promised or reserved and not idle.
  auto count_needs() -> void {
    if constexpr (shares_memory) {
      for (std::size_t g = 0; g < groups.size(); ++g) {
        need_beside(g, groups[g].ledger().promised() + groups[g].ledger().reserved(),
                    groups.evictable(groups[g], index.evictable()));
      }
    }
  }
  auto need_beside([[maybe_unused]] std::size_t g, [[maybe_unused]] std::uint32_t wanted,
                   [[maybe_unused]] std::uint32_t idle) -> void {
    if constexpr (shares_memory) { groups.memory().need(g) = block_count{wanted - std::min(wanted, idle)}; }
  }
  /// True if all that is reserved can be taken from free blocks, and what is promised stays within reach. If not, idle
  /// blocks are taken before free ones, which others need.
  [[nodiscard]] auto free_first() -> bool {
    if constexpr (shares_memory) {
      for (std::size_t g = 0; g < groups.size(); ++g) {
        auto const idle = groups.evictable(groups[g], index.evictable());
        auto const promised = groups[g].ledger().promised();
        need_beside(g, groups[g].ledger().reserved() + promised - std::min(promised, idle), 0);
      }
      return groups.memory().fits();
    }
    return true;
  }
  /// [blocks] that \p g can take at once: its free ones, or as many as the needs of the others leave.
  [[nodiscard]] auto room(std::size_t g) -> std::uint32_t {
    if constexpr (shares_memory) { return groups.memory().beside(g).value(); }
    return groups[g].free();
  }
  /// Frees idle blocks of the group that has most of them, so that whole pages can go to others. False if there are none.
  [[nodiscard]] auto evict_for_others() -> bool {
    if constexpr (shares_memory) {
      std::size_t from = 0;
      std::uint64_t most = 0;
      for (std::size_t g = 0; g < groups.size(); ++g) {
        auto const bytes = groups.evictable(groups[g], index.evictable()) * groups.memory().block_bytes(g);
        if (bytes > most) {
          most = bytes;
          from = g;
        }
      }
      constexpr std::uint32_t batch = 32;
      return most > 0 && evict(groups[from], batch) > 0;
    }
    return false;
  }

  // --- promises -----------------------------------------------------------------------------------------------------
  /// Takes \p units out of the index. \returns how many
  auto evict_units(std::uint32_t units) -> std::uint32_t {
    return groups.evict_units(index, units, [this](group_type const& of, std::uint32_t n) { evicted(of, n); });
  }
  /// The plan at hand is over, or has taken what it counted.
  auto unreserve() noexcept -> void {
    groups.unreserve();
    reserved_units = reserved_by_ended = 0;
  }
  /// What \p record was promised and has not taken, anew: it was cut, or gave blocks back.
  auto promise(record_type& record) -> void {
    auto const next = request_of(record, 0);
    for (std::size_t g = 0; g < groups.size(); ++g) {
      if (groups[g].by_path()) {
        groups[g].ledger().owe(record.tables[g], groups[g].owes(record.tables[g], record.limit, next));
      }
    }
    owe_units(record, units_owed(record));
  }
  [[nodiscard]] auto units_owed(record_type const& record) const -> std::uint32_t {
    return record.path.units_for(index, unit(), record.at, record.limit - record.at.committed);
  }
  auto owe_units(record_type& record, std::uint32_t units) noexcept -> void {
    owed_units = owed_units - record.owed_units + units;
    record.owed_units = units;
  }
  /// Frees what waited for tickets that are reached now.
  auto reclaim() -> void {
    if constexpr (!immediate) {
      pins.reclaim(index);
      groups.reclaim();
    }
  }
  /// Room for the pin of every live sequence, and for one per row of every step. \throws std::bad_alloc
  auto reserve_pins() -> void {
    if constexpr (!immediate) { pins.reserve(registry.capacity() + slots.size() * options.max_rows.value()); }
  }
  [[nodiscard]] auto idle_slot() noexcept -> slot_type* {
    for (auto& slot : slots) {
      if (slot.phase == step_phase::in_flight && clock.reached(slot.timeline.value(), slot.until)) {
        slot.phase = step_phase::idle;
      }
      if (slot.phase == step_phase::idle) { return &slot; }
    }
    return nullptr;
  }
  /// True if a plan has been neither committed nor dropped: a handle refers to its slot.
  [[nodiscard]] auto has_open_step() const noexcept -> bool {
    return std::any_of(slots.begin(), slots.end(), [](auto const& slot) {
      return slot.phase == step_phase::planned || slot.phase == step_phase::launched;
    });
  }
  [[nodiscard]] auto slot_number(slot_type const& slot) const noexcept -> std::size_t {
    std::size_t i = 0;
    while (&slots[i] != &slot) { ++i; }
    return i;
  }

private:
  bool bounded_ = false; // some group gives blocks up

  cache_core(cache_options const& given, group_layout const& layout, digest_type digest,
             typename Policies::admission admit, observer_type observer)
      : options{given}, groups{options, layout, std::type_identity<pool_type>{}, clock},
        index{groups.units(), token_count{layout.unit}, digest}, registry{options.max_sequences.value(), groups.size()},
        pins{clock}, admission{std::move(admit)}, watcher{std::move(observer)}, columns(groups.size(), 1),
        found_idle(groups.size()), returned(groups.layer_groups()) {
    bounded_ = std::any_of(groups.begin(), groups.end(), [](auto const& group) { return !group.by_path(); });
    for (auto i = options.batch_buffers; i > 0; --i) {
      auto& slot = slots.emplace_back();
      slot.items.reserve(options.max_rows.value());
      slot.shown.resize(options.max_rows.value());
      for (auto const& group : groups) {
        slot.groups.push_back({batch_rows{options.max_rows.value(), group.geometry()}, {}});
      }
    }
    for (std::size_t g = 0; g < groups.size() && options.max_context != token_count{}; ++g) {
      auto const most = std::min(options.max_context.value(), longest());
      auto const draft = 4 * groups[g].geometry().block_tokens();
      columns[g] = groups[g].columns(most, groups[g].budget(most, append_limit(), draft));
    }
    if (options.groups.empty()) { options.groups.emplace_back(); }
    reserve_pins();
  }
  static auto checked(cache_options given) -> cache_options {
    auto const at_least_one = [](std::uint32_t n, char const* what) {
      if (n == 0) { throw config_error{std::string{"kv_cache: "} + what + " is 0, it must be at least 1"}; }
    };
    at_least_one(given.max_sequences.value(), "max_sequences");
    at_least_one(given.max_rows.value(), "max_rows");
    at_least_one(given.batch_buffers, "batch_buffers");
    if (given.max_context.value() > max_positions) {
      throw config_error{"kv_cache: max_context is " + std::to_string(given.max_context.value()) +
                         ", views carry positions as int32: at most " + std::to_string(max_positions)};
    }
    return given;
  }
};
template <class Policies>
using record_of = typename cache_core<Policies>::record_type;
template <class Policies>
using slot_of = typename cache_core<Policies>::slot_type;
/// \endcond

} // namespace quire::detail
