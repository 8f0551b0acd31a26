// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// All block groups of a cache, and the questions that concern all of them: where a hit may end, whether blocks of every
/// group can be had together, what a unit that leaves takes with it.

#include <quire/cache/cache_group.hpp>
#include <quire/cache/cache_options.hpp>
#include <quire/cache/detail/block_group.hpp>
#include <quire/cache/detail/shared_memory.hpp>
#include <quire/core/config_error.hpp>
#include <quire/core/contract.hpp>
#include <quire/core/detail/fixed_list.hpp>
#include <quire/core/types.hpp>
#include <quire/sequence/block_geometry.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric> // std::lcm
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
inline constexpr std::uint32_t max_positions = 0x7fff'ffffU; // the views carry positions as int32

/// Layer groups that keep everything in blocks of one size hold the same blocks: they are one block group. Every other
/// layer group is one of its own.
struct group_layout {
  struct part {
    cache_group spec;
    std::vector<group_id> members;
  };
  std::vector<part> parts;
  std::vector<std::uint32_t> part_of; // by layer group
  std::uint32_t unit = 1;             // [tokens] where blocks of all groups end together

  /// \throws config_error
  explicit group_layout(cache_options const& options) {
    auto specs = options.groups;
    if (specs.empty()) { specs.emplace_back(); } // one, which keeps everything
    if (options.block_tokens == token_count{}) {
      throw config_error{"block_tokens is 0: a block holds at least 1 token"};
    }
    std::uint64_t tokens = 1;
    for (std::uint32_t g = 0; g < specs.size(); ++g) {
      auto spec = specs[g];
      if (spec.block_tokens == token_count{}) { spec.block_tokens = options.block_tokens; }
      if (spec.blocks == block_count{}) { spec.blocks = options.blocks; }
      tokens = std::lcm(tokens, std::uint64_t{spec.block_tokens.value()});
      if (tokens > max_positions) {
        throw config_error{
            "kv_cache: blocks of all groups end together only beyond the longest sequence: choose block sizes with "
            "a smaller common multiple"};
      }
      auto const same = std::find_if(parts.begin(), parts.end(), [&](part const& p) {
        return p.spec.keeps.keeps_all() && spec.keeps.keeps_all() && p.spec.block_tokens == spec.block_tokens;
      });
      part_of.push_back(static_cast<std::uint32_t>(same - parts.begin()));
      if (same != parts.end()) {
        same->members.push_back(group_id{g});
        same->spec.blocks = std::min(same->spec.blocks, spec.blocks);
        same->spec.block_bytes = byte_count{same->spec.block_bytes.value() + spec.block_bytes.value()};
      } else {
        parts.push_back({spec, {group_id{g}}});
      }
    }
    unit = static_cast<std::uint32_t>(tokens);
  }
};

/// \tparam Group a `block_group`. \tparam Allocation of the cache's policies.
template <class Group, class Allocation>
class group_set {
public:
  using memory_type = shared_memory<Allocation>;
  static constexpr bool shares_memory = memory_type::shared;

  /// \throws config_error if an option is impossible.
  template <class Pool, class Clock>
  group_set(cache_options const& options, group_layout const& layout, std::type_identity<Pool>, Clock const& clock)
      : unit_{token_count{layout.unit}}, memory_{options, layout}, part_of_{layout.part_of},
        groups_{layout.parts.size()} {
    std::vector<Pool> pools;
    for (std::size_t g = 0; g < layout.parts.size(); ++g) {
      pools.push_back(memory_.template pool<Pool>(g, layout.parts[g].spec.blocks));
    }
    // Every unit in use has a block in each group that keeps everything; without such a group it is identity only.
    auto units = std::uint32_t{0};
    for (std::size_t g = 0; g < pools.size(); ++g) {
      if (!layout.parts[g].spec.keeps.keeps_all()) { continue; }
      auto const blocks = pools[g].capacity().value();
      units = units == 0 ? blocks : std::min(units, blocks);
    }
    units_ = unit_count{units != 0 ? units : options.blocks.value()};
    for (std::size_t g = 0; g < pools.size(); ++g) {
      groups_.emplace_back(layout.parts[g].members, layout.parts[g].spec, units_, unit_, std::move(pools[g]), clock);
    }
  }

  [[nodiscard]] auto size() const noexcept -> std::size_t { return groups_.size(); }
  [[nodiscard]] auto operator[](std::size_t g) noexcept -> Group& { return groups_[g]; }
  [[nodiscard]] auto operator[](std::size_t g) const noexcept -> Group const& { return groups_[g]; }
  [[nodiscard]] auto begin() noexcept { return groups_.begin(); }
  [[nodiscard]] auto end() noexcept { return groups_.end(); }
  [[nodiscard]] auto begin() const noexcept { return groups_.begin(); }
  [[nodiscard]] auto end() const noexcept { return groups_.end(); }
  /// The block group of layer group \p group. \pre there is such a group
  [[nodiscard]] auto part_of(group_id group) const -> std::size_t {
    QUIRE_EXPECTS(group.value() < part_of_.size());
    return part_of_[group.value()];
  }
  /// Layer groups.
  [[nodiscard]] auto layer_groups() const noexcept -> std::uint32_t {
    return static_cast<std::uint32_t>(part_of_.size());
  }
  [[nodiscard]] auto unit() const noexcept -> block_geometry const& { return unit_; }
  [[nodiscard]] auto units() const noexcept -> unit_count { return units_; }
  [[nodiscard]] auto memory() noexcept -> memory_type& { return memory_; }

  // --- hits ---------------------------------------------------------------------------------------------------------
  /// [tokens] The longest hit that every group can serve: a fixed point, because it only shrinks. \source S29
  [[nodiscard]] auto longest_hit(std::span<unit_id const> units, std::uint32_t prompt) const -> std::uint32_t {
    auto hit = static_cast<std::uint32_t>(units.size()) * unit_.block_tokens();
    for (auto again = hit > 0; std::exchange(again, false);) {
      for (auto const& group : groups_) {
        auto const whole = group.longest_hit(units, prompt, hit);
        if (whole == hit) { continue; }
        hit = whole - unit_.offset(whole);
        again = hit > 0;
      }
    }
    return hit;
  }
  [[nodiscard]] auto has_sinks() const noexcept -> bool {
    return std::any_of(groups_.begin(), groups_.end(), [](auto const& group) { return group.has_sinks(); });
  }

  // --- room ---------------------------------------------------------------------------------------------------------
  /// [blocks] of \p group that eviction could free. \param units that the index could
  [[nodiscard]] auto evictable(Group const& group, unit_count units) const noexcept -> std::uint32_t {
    return group.by_path() ? units.value() * group.per_unit() : group.idle();
  }
  /// [blocks] that a plan could have now.
  [[nodiscard]] auto available(Group const& group, unit_count units) const noexcept -> std::uint32_t {
    auto const all = group.free() + evictable(group, units);
    return all - std::min(all, group.ledger().reserved());
  }
  /// Frees \p blocks of \p group, or more, by eviction; \p evicted(group, blocks) is told for every group. \returns how many
  template <class Index, class Evicted>
  auto evict(Index& index, Group& group, std::uint32_t blocks, Evicted evicted) -> std::uint32_t {
    if (!group.by_path()) {
      auto const n = group.evict(blocks);
      if (n > 0) { evicted(group, n); }
      return n;
    }
    auto const units = (blocks + group.per_unit() - 1) / group.per_unit();
    return evict_units(index, units, evicted) * group.per_unit();
  }
  /// Takes \p wanted units out of the index, with every group's blocks on them. \returns how many
  template <class Index, class Evicted>
  auto evict_units(Index& index, std::uint32_t wanted, Evicted evicted) -> std::uint32_t {
    std::uint32_t done = 0;
    while (done < wanted) {
      std::array<unit_id, 64> units;
      auto const batch = std::min<std::size_t>(units.size(), wanted - done);
      auto const n = index.evict(std::span{units}.first(batch)).value();
      if (n == 0) { break; }
      done += n;
      for (auto& each : groups_) {
        std::uint32_t gone = 0;
        for (std::uint32_t i = 0; i < n; ++i) { gone += each.depart(units[i], leave_reason::evicted); }
        if (gone > 0) { evicted(each, gone); }
      }
    }
    return done;
  }
  /// \p unit leaves the index.
  auto depart(unit_id unit, leave_reason why) -> void {
    for (auto& group : groups_) { group.depart(unit, why); }
  }
  auto reclaim() -> void {
    for (auto& group : groups_) { group.reclaim(); }
  }
  auto unreserve() noexcept -> void {
    for (auto& group : groups_) { group.ledger().unreserve(); }
  }

private:
  block_geometry unit_;
  memory_type memory_;
  std::vector<std::uint32_t> part_of_;
  unit_count units_;
  fixed_list<Group> groups_;
};
/// \endcond

} // namespace quire::detail
