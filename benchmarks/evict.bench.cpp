// SPDX-License-Identifier: Apache-2.0

/// \file
/// Allocating when every free block is cached: choosing victims, making it final, and their new life in the pool, as
/// `plan_step` and `launch` do it. The floor is popping a bare stack of free blocks.

#include "prefix_fixture.hpp"
#include "support.hpp"

#include <quire/core/types.hpp>

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace quire_bench;

constexpr std::uint32_t pool_blocks = 65'536;

/// How the cached content looks.
struct content {
  std::uint32_t run = 0;     ///< [blocks] of one prefix
  bool random_order = false; ///< last uses in random order and blocks scattered, or both in order
};

/// Evicts a whole pool, \p batch blocks a time.
auto evicting(content what, std::uint32_t batch, std::string goal) {
  return [=](benchmark::State& state) {
    prefix_fixture<> fixture{pool_blocks, what.random_order ? block_order::scattered : block_order::consecutive};
    std::mt19937_64 random{1};
    std::vector<quire::block_id> out(pool_blocks);
    std::vector<std::uint32_t> stack(pool_blocks);

    auto const fill = [&] {
      auto const tokens = random_tokens(random, std::size_t{pool_blocks} * block_tokens);
      auto const prefixes = pool_blocks / what.run;
      auto const prefix = [&](std::uint32_t i) {
        return std::span{tokens}.subspan(std::size_t{i} * what.run * block_tokens,
                                         std::size_t{what.run} * block_tokens);
      };
      for (std::uint32_t i = 0; i < prefixes; ++i) { fixture.cache(prefix(i)); }
      if (!what.random_order) { return; }
      for (auto const i : shuffled(random, prefixes)) { fixture.cache(prefix(i)); }
    };
    auto const work = [&] {
      fill();
      expect(fixture.pool.free_blocks().value() == 0 && fixture.index.evictable().value() == pool_blocks,
             "the pool is not full of cached blocks");
      auto const time = nanoseconds([&] {
        for (std::size_t i = 0; i < pool_blocks; i += batch) { fixture.allocate(std::span{out}.subspan(i, batch)); }
      });
      for (auto i = out.size(); i-- > 0;) { fixture.give_back(out[i]); }
      if (what.random_order) { fixture.scatter(); }
      return time;
    };
    auto const floor = [&] {
      for (std::uint32_t i = 0; i < pool_blocks; ++i) { stack[i] = i; }
      auto size = stack.size();
      return nanoseconds([&] {
        for (auto& block : out) {
          block = quire::block_id{stack[--size]};
          benchmark::ClobberMemory();
        }
      });
    };
    report(state, alternate(state, pool_blocks, work, floor), goal);
  };
}

[[maybe_unused]] auto const registered = [] {
  for (auto const batch : {1U, 16U, 512U}) {
    auto const suffix = std::string{"/"}.append(std::to_string(batch)).append("_a_time"); // gcc 12 warns falsely of a +
    add("evict/runs_of_512" + suffix, 11, evicting({512, false}, batch, "ns<=15"));
    add("evict/runs_of_8_random_order" + suffix, 11, evicting({8, true}, batch, ""));
    add("evict/leaves_in_order" + suffix, 11, evicting({1, false}, batch, ""));
    add("evict/leaves_random_order" + suffix, 11, evicting({1, true}, batch, "ns<=50"));
  }
  return true;
}();

} // namespace
