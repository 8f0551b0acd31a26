// SPDX-License-Identifier: Apache-2.0
// Caches with several layer groups: whatever is admitted, shared, forked, cut, dropped and moved, every query of every
// group reads exactly what its attention rule lets it see (S27, S29, S30, B8).
#include <quire/block/fifo_allocation.hpp>
#include <quire/block/lowest_allocation.hpp>
#include <quire/block/ticket_fence.hpp>
#include <quire/cache/kv_cache.hpp>
#include <quire/identity/constant_digest.hpp>
#include <quire/memory/group_allocation.hpp>
#include <quire/memory/partitioned_memory.hpp>
#include <quire/memory/two_level_memory.hpp>
#include <quire/memory/uniform_memory.hpp>
#include <quire/model/retention.hpp>
#include <quire/prefix/fifo_eviction.hpp>
#include <quire/prefix/flat_index.hpp>
#include <quire/prefix/lfu_eviction.hpp>

#include "support/group_world.hpp"
#include "support/rc_prop.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

namespace {

using quire::retention;
using quire::token_count;

struct late_policies : quire::default_policies {
  using fence = quire::ticket_fence<2>;
  using allocation = quire::fifo_allocation;
  using eviction = quire::fifo_eviction;
};
struct flat_policies : quire::default_policies {
  template <class Eviction, class Digest>
  using index = quire::flat_index<Eviction, Digest>;
  using allocation = quire::lowest_allocation;
  using eviction = quire::lfu_eviction;
};
template <class Policies>
struct colliding : Policies {
  using digest = quire::constant_digest;
};

auto size_below(std::uint32_t n) -> rc::Gen<std::uint32_t> { return rc::gen::inRange<std::uint32_t>(0, n); }

/// \param rebuilds windows are small and have no sinks, so that what they lose can be rebuilt
auto some_group(bool rebuilds) -> rc::Gen<quire::cache_group> {
  return rc::gen::exec([rebuilds] {
    auto const extent = token_count{1 + *size_below(rebuilds ? 4 : 20)};
    auto const sinks = token_count{rebuilds ? 0 : *size_below(6)};
    quire::cache_group group;
    switch (*size_below(7)) {
    case 0:
    case 1: group.keeps = retention::sliding_window(extent); break;
    case 2:
    case 3: group.keeps = retention::sink_window({.sinks = sinks, .window = extent}); break;
    case 4:
    case 5: group.keeps = retention::chunked(extent); break;
    default:
      group.keeps = retention::ring({.capacity = extent + sinks + token_count{3}, .window = extent, .sinks = sinks});
    }
    group.block_tokens = token_count{*rc::gen::element(0U, 1U, 2U, 3U, 4U, 5U, 8U)};
    group.blocks = quire::block_count{rebuilds ? 4 + *size_below(12) : 6 + *size_below(40)};
    return group;
  });
}

auto some_case() -> rc::Gen<quire_test::group_case> {
  return rc::gen::exec([] {
    quire_test::group_case c;
    if (*size_below(5) != 0) { c.groups.emplace_back(); }
    auto const rebuilds = *size_below(2) == 0;
    auto const windows = *rc::gen::container<std::vector<quire::cache_group>>(1 + *size_below(3), some_group(rebuilds));
    for (auto const& group : windows) {
      c.rebuild = std::max(c.rebuild, rebuilds ? group.keeps.extent.value() - 1 : 0U);
    }
    c.rebuild *= 1 + *size_below(3); // that many layers
    c.groups.insert(c.groups.end(), windows.begin(), windows.end());
    if (*size_below(3) == 0) { // two groups that keep everything share one table, or have blocks of two sizes
      c.groups.emplace_back().block_tokens = token_count{*rc::gen::element(0U, 0U, 1U, 2U, 3U, 4U, 6U)};
    }
    c.block_tokens = *rc::gen::element(1U, 2U, 3U, 4U, 5U, 8U);
    c.blocks = 8 + *size_below(40);
    c.max_append = *size_below(3) == 0 ? 0U : 1 + *size_below(10);
    c.skip_writes = *size_below(4) != 0;
    c.scrub = *size_below(5) == 0;
    c.seed = *rc::gen::arbitrary<std::uint32_t>();
    c.commands = *rc::gen::inRange<std::uint32_t>(1, 250);
    return c;
  });
}

template <class Policies>
void agrees() {
  quire_test::prop("every query reads what it may see", [] {
    auto const c = *some_case();
    auto world = quire_test::group_world<Policies>{c};
    world.run();
    for (auto const& [name, count] : world.seen) {
      if (count > 0) { RC_TAG(name); }
    }
  });
}

} // namespace

TEST_CASE("S29: layer groups agree with the toy", "[cache][groups]") { agrees<quire::default_policies>(); }
TEST_CASE("S29: layer groups agree with the toy on two late timelines", "[cache][groups][fence]") {
  agrees<late_policies>();
}
TEST_CASE("S18: layer groups agree with the toy where timelines are lost in every way", "[cache][groups][fence]") {
  std::map<std::string, std::uint64_t> seen;
  for (std::uint32_t seed = 1; seed <= 40; ++seed) { // a case with room, so that much goes on at once
    auto c = quire_test::group_case{.groups = {{},
                                               {.keeps = retention::sliding_window(token_count{5}),
                                                .blocks = quire::block_count{60},
                                                .block_tokens = {}}}};
    c.blocks = 60;
    c.max_append = 8;
    c.seed = seed;
    c.commands = 250;
    auto world = quire_test::group_world<late_policies>{c};
    world.run();
    for (auto const& [name, count] : world.seen) { seen[name] += count; }
  }
  for (auto const* happens : {"timelines lost", "in flight beside a lost one", "cut back", "cut to nothing", "kept"}) {
    CAPTURE(happens);
    CHECK(seen[happens] > 0);
  }
}
TEST_CASE("S29: layer groups agree with the toy over a flat index", "[cache][groups]") { agrees<flat_policies>(); }

TEST_CASE("S21: layer groups agree with the toy where every digest is the same", "[cache][groups]") {
  agrees<colliding<quire::default_policies>>();
  agrees<colliding<flat_policies>>();
}

namespace {

template <class Memory>
struct shared_policies : quire::default_policies {
  using allocation = quire::group_allocation<Memory>;
};
struct late_shared_policies : shared_policies<quire::two_level_memory> {
  using fence = quire::ticket_fence<2>;
};

/// The same out of one memory: blocks of different sizes, and a group that keeps everything.
auto some_shared_case() -> rc::Gen<quire_test::group_case> {
  return rc::gen::exec([] {
    auto c = *some_case();
    c.groups.insert(c.groups.begin(), quire::cache_group{});
    std::uint32_t all = 0;
    for (auto& group : c.groups) {
      auto const tokens = group.block_tokens == token_count{} ? c.block_tokens : group.block_tokens.value();
      group.block_bytes = quire::byte_count{tokens * 8 * (1 + *size_below(3))};
      all += static_cast<std::uint32_t>(group.block_bytes.value());
    }
    c.bytes = all * (20 + *size_below(60));
    return c;
  });
}

template <class Policies>
void agrees_in_one_memory() {
  quire_test::prop("every query reads what it may see", [] {
    auto world = quire_test::group_world<Policies>{*some_shared_case()};
    world.run();
    for (auto const& [name, count] : world.seen) {
      if (count > 0) { RC_TAG(name); }
    }
  });
}

} // namespace

TEST_CASE("B3: layer groups in two-level memory agree with the toy", "[cache][groups]") {
  agrees_in_one_memory<shared_policies<quire::two_level_memory>>();
}
TEST_CASE("B3: layer groups in two-level memory agree with the toy on two late timelines", "[cache][groups][fence]") {
  agrees_in_one_memory<late_shared_policies>();
}
TEST_CASE("B3: layer groups in uniform memory agree with the toy", "[cache][groups]") {
  agrees_in_one_memory<shared_policies<quire::uniform_memory>>();
}
TEST_CASE("B3: layer groups in partitioned memory agree with the toy", "[cache][groups]") {
  agrees_in_one_memory<shared_policies<quire::partitioned_memory>>();
}
