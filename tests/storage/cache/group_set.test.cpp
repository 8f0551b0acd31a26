// SPDX-License-Identifier: Apache-2.0
// All groups of a cache: which of them are one, how large a unit is, where a hit may end, and what a unit takes with it.
#include <quire/block/block_pool.hpp>
#include <quire/block/immediate_fence.hpp>
#include <quire/block/lifo_allocation.hpp>
#include <quire/cache/cache_options.hpp>
#include <quire/cache/detail/block_group.hpp>
#include <quire/cache/detail/fence_clock.hpp>
#include <quire/cache/detail/group_set.hpp>
#include <quire/core/config_error.hpp>
#include <quire/core/types.hpp>
#include <quire/memory/group_allocation.hpp>
#include <quire/memory/two_level_memory.hpp>
#include <quire/model/retention.hpp>
#include <quire/prefix/lru_eviction.hpp>
#include <quire/prefix/run_tree.hpp>
#include <quire/sequence/block_table.hpp>
#include <quire/sequence/standard_retention.hpp>

#include "support/catch_compat.hpp"
#include "support/texts.hpp"
#include "support/throwing_contract.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace {
using namespace quire;
using clock_type = detail::fence_clock<immediate_fence>;
using group_type = detail::block_group<block_pool<>, lru_eviction, standard_retention, clock_type>;
using set_type = detail::group_set<group_type, lifo_allocation>;
using list = std::vector<std::uint32_t>;

auto window(std::uint32_t w) -> retention { return retention::sliding_window(token_count{w}); }
auto options_of(std::vector<cache_group> groups, std::uint32_t blocks = 16) -> cache_options {
  auto out = cache_options{};
  out.blocks = block_count{blocks};
  out.block_tokens = token_count{4};
  out.groups = std::move(groups);
  return out;
}
auto group_of(retention keeps, std::uint32_t block_tokens = 0, std::uint32_t blocks = 0, std::uint64_t bytes = 0)
    -> cache_group {
  return {.keeps = keeps,
          .blocks = block_count{blocks},
          .block_tokens = token_count{block_tokens},
          .block_bytes = byte_count{bytes}};
}

// A set over an index, and one sequence at a time that fills it.
struct workshop {
  cache_options options;
  detail::group_layout layout{options};
  clock_type clock;
  set_type groups{options, layout, std::type_identity<block_pool<>>{}, clock};
  run_tree<> index{groups.units(), token_count{layout.unit}};
  node_id root = index.open_root({});

  explicit workshop(std::vector<cache_group> parts) : options{options_of(std::move(parts))} {}

  // Leaves `units` units of a text in the index, with the blocks of every group on them.
  auto keep(std::uint32_t units, token_id first = 1) -> std::vector<unit_id> {
    auto out = std::vector<unit_id>{};
    auto const tokens = quire_test::ascending(std::size_t{units} * layout.unit, first);
    for (std::uint32_t u = 0; u < units; ++u) {
      out.push_back(index.take_unit());
      auto const own = std::span{tokens}.subspan(std::size_t{u} * layout.unit, layout.unit);
      std::copy(own.begin(), own.end(), index.tokens(out.back()).begin());
    }
    auto nothing = prefix_match{};
    nothing.node = nothing.root = root;
    auto pin = index.pin(nothing);
    CHECK(index.publish(pin, out).published == unit_count{units});
    auto const request = detail::append_request{
        .committed = 0, .tokens = units * layout.unit, .skips = 0, .owns_tail = true, .copies_unit = false};
    for (auto& group : groups) {
      auto t = block_table{};
      if (!group.by_path()) { group.set_budget(t, 100); }
      group.take(t, request, [](auto...) { FAIL("nothing is copied"); });
      group.commit(t, request, 0, ticket{});
      for (std::uint32_t u = 0; u < units; ++u) { group.arrive(t, u, out[u], unit_origin::published, {}); }
      group.set_budget(t, 0);
      group.drop_all(t, units, {});
    }
    index.release(std::move(pin));
    return out;
  }
  // Takes the blocks of logical unit `unit` away from group `g`, as its own order would.
  void lose(std::size_t g, unit_id unit) { groups[g].depart(unit, detail::leave_reason::evicted); }
};
} // namespace

TEST_CASE(
    "S29: layer groups that keep everything in blocks of one size are one block group, all others are their own") {
  auto const layout = detail::group_layout{
      options_of({group_of(retention::full(), 0, 9, 100), group_of(window(8)), group_of(retention::full(), 0, 7, 20),
                  group_of(window(8)), group_of(retention::full(), 8)})};
  CHECK(layout.part_of == list{0, 1, 0, 2, 3});
  REQUIRE(layout.parts.size() == 4);
  CHECK(layout.parts[0].members == std::vector{group_id{0}, group_id{2}});
  CHECK(layout.parts[0].spec.blocks == block_count{7});       // all of them must hold a block
  CHECK(layout.parts[0].spec.block_bytes == byte_count{120}); // of one block in each of them
  CHECK(layout.parts[1].spec.blocks == block_count{16});      // the cache's
  CHECK(layout.parts[1].spec.block_tokens == token_count{4});
  CHECK(layout.unit == 8);
  CHECK(detail::group_layout{options_of({})}.parts.size() == 1); // one that keeps everything
}

TEST_CASE("S29: a unit ends where blocks of all groups do") {
  auto const unit = [](std::vector<std::uint32_t> const& sizes) {
    auto groups = std::vector<cache_group>{};
    for (auto const size : sizes) { groups.push_back(group_of(window(8), size)); }
    return detail::group_layout{options_of(groups)}.unit;
  };
  CHECK(unit({4, 4}) == 4);
  CHECK(unit({4, 8, 2}) == 8);
  CHECK(unit({6, 4}) == 12);
  CHECK(unit({3, 5, 7}) == 105);
  CHECK_THROWS_AS(unit({0x7fff'ffffU, 2}), config_error);
  auto zero = options_of({});
  zero.block_tokens = token_count{0};
  CHECK_THROWS_AS(detail::group_layout{zero}, config_error);
}

TEST_CASE("S29: there are as many units as every group that keeps everything has blocks") {
  auto const units = [](std::vector<cache_group> groups) { return workshop{std::move(groups)}.groups.units(); };
  CHECK(units({}) == unit_count{16});
  CHECK(units({group_of(retention::full(), 0, 9), group_of(retention::full(), 8, 5), group_of(window(8), 0, 2)}) ==
        unit_count{5});
  CHECK(units({group_of(window(8), 0, 2)}) == unit_count{16}); // identity only
  auto const w = workshop{{group_of(retention::full(), 4), group_of(retention::full(), 8)}};
  CHECK(w.groups[0].per_unit() == 2);
  CHECK(w.groups[1].per_unit() == 1);
  CHECK(w.groups.part_of(group_id{1}) == 1);
  CHECK(w.groups.layer_groups() == 2);
  CHECK_THROWS_AS(w.groups.part_of(group_id{2}), quire_test::contract_violation);
}

TEST_CASE("S29: the longest hit is one that every group can serve, however often one of them makes it shorter") {
  auto w = workshop{{group_of(retention::full()), group_of(window(5)), group_of(window(9))}};
  auto const units = w.keep(5); // 20 positions
  CHECK(w.groups.longest_hit(units, 21) == 20);
  w.lose(1, units[4]);
  CHECK(w.groups.longest_hit(units, 21) == 16);
  w.lose(2, units[2]); // 16 needs blocks 2 and 3 there
  CHECK(w.groups.longest_hit(units, 21) == 8);
  w.lose(1, units[1]); // and 8 needs block 1 here
  CHECK(w.groups.longest_hit(units, 21) == 4);
  w.lose(2, units[0]);
  CHECK(w.groups.longest_hit(units, 21) == 0);
  CHECK(w.groups.longest_hit(std::span{units}.first(0), 21) == 0);
}

TEST_CASE("S29: with blocks of different sizes a hit ends where a unit does") {
  auto w = workshop{{group_of(retention::full(), 8), group_of(window(5), 4)}};
  auto const units = w.keep(3); // 24 positions
  CHECK(w.groups.longest_hit(units, 25) == 24);
  auto const small = w.groups[1].longest_hit(units, 25, 24);
  CHECK(small == 24);
  w.lose(1, units[2]); // 16 and 20 would do for the window; the full group ends at 16
  CHECK(w.groups.longest_hit(units, 25) == 16);
  w.lose(1, units[1]);
  CHECK(w.groups.longest_hit(units, 25) == 8);
}

TEST_CASE("S29: a hit that a window ends inside a unit ends where that unit begins") {
  auto w = workshop{{group_of(retention::full(), 8), group_of(window(5), 4)}};
  auto const units = w.keep(3);
  REQUIRE(w.groups[1].evict(1) == 1); // the deepest: positions 20 to 23
  CHECK(w.groups[1].longest_hit(units, 25, 24) == 20);
  CHECK(w.groups.longest_hit(units, 25) == 16);
}

TEST_CASE("S24: a unit that leaves takes every group's blocks with it, and each group is told") {
  auto w = workshop{{group_of(retention::full(), 4), group_of(window(8), 8), group_of(retention::full(), 8)}};
  w.keep(3);
  CHECK(w.groups.evictable(w.groups[0], w.index.evictable()) == 6);
  CHECK(w.groups.evictable(w.groups[1], w.index.evictable()) == 3);
  CHECK(w.groups.evictable(w.groups[2], w.index.evictable()) == 3);
  CHECK(w.groups.available(w.groups[0], w.index.evictable()) == 16);
  w.groups[0].ledger().reserve(5);
  CHECK(w.groups.available(w.groups[0], w.index.evictable()) == 11);
  w.groups.unreserve();
  auto told = list(3);
  auto const tell = [&](group_type const& of, std::uint32_t n) { told[of.id().value()] += n; };
  CHECK(w.groups.evict(w.index, w.groups[0], 3, tell) == 4); // two units
  CHECK(told == list{4, 2, 2});
  CHECK(w.index.cached() == unit_count{1});
  CHECK(w.groups[1].published() == 1);
  told.assign(3, 0);
  CHECK(w.groups.evict(w.index, w.groups[1], 5, tell) == 1); // its own order: the unit stays
  CHECK(told == list{0, 1, 0});
  CHECK(w.index.cached() == unit_count{1});
  CHECK(w.groups.evict(w.index, w.groups[1], 5, tell) == 0);
  CHECK(w.groups.evict_units(w.index, 9, tell) == 1);
  CHECK(told == list{2, 1, 1});
  CHECK(w.groups[0].free() == 16);
  CHECK(w.groups[2].free() == 16);
}

TEST_CASE("S24: more units leave at once than one batch takes") {
  auto groups = std::vector{group_of(retention::full(), 0, 200)};
  auto w = workshop{groups};
  w.keep(150);
  auto told = std::uint32_t{0};
  CHECK(w.groups.evict_units(w.index, 140, [&](group_type const&, std::uint32_t n) { told += n; }) == 140);
  CHECK(told == 140);
  CHECK(w.index.cached() == unit_count{10});
}

TEST_CASE("S29: groups that share one memory have sizes, and one of them keeps everything") {
  using shared = group_allocation<two_level_memory>;
  using memory = detail::shared_memory<shared>;
  auto options = options_of({group_of(retention::full(), 0, 0, 64), group_of(window(8), 0, 0, 64)});
  options.bytes = byte_count{64 * 64};
  CHECK_NOTHROW(memory{options, detail::group_layout{options}});
  options.groups[1].block_bytes = byte_count{};
  CHECK_THROWS_AS((memory{options, detail::group_layout{options}}), config_error);
  options.groups[1].block_bytes = byte_count{64};
  options.groups[0].keeps = window(4);
  CHECK_THROWS_AS((memory{options, detail::group_layout{options}}), config_error);
}
