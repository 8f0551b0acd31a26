// SPDX-License-Identifier: Apache-2.0

/// \file
/// Allocating every block of a pool and freeing them in random order, under each allocation policy. A pair takes a block
/// into `writing` with one holder, drops the holder, retires and reclaims. The floor is a bare stack of numbers.

#include "support.hpp"

#include <quire/block/block_pool.hpp>
#include <quire/block/fifo_allocation.hpp>
#include <quire/block/lifo_allocation.hpp>
#include <quire/block/lowest_allocation.hpp>
#include <quire/core/types.hpp>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace quire_bench;

constexpr std::uint32_t pool_blocks = 65'536;

template <class Allocation>
auto pairs(std::string goal) {
  return [=](benchmark::State& state) {
    quire::block_pool<Allocation> pool{quire::block_count{pool_blocks}};
    std::mt19937_64 random{11};
    auto const order = shuffled(random, pool_blocks);
    std::vector<quire::block_id> taken(pool_blocks);
    std::vector<std::uint32_t> stack(pool_blocks);
    for (std::uint32_t i = 0; i < pool_blocks; ++i) { stack[i] = i; }

    auto const work = [&] {
      return nanoseconds([&] {
        for (auto& block : taken) { block = pool.try_allocate(); }
        for (auto const i : order) {
          if (pool.release(taken[i])) { pool.retire_and_reclaim(taken[i]); }
        }
        benchmark::ClobberMemory();
      });
    };
    auto const floor = [&] {
      return nanoseconds([&] {
        auto size = pool_blocks;
        for (auto& block : taken) { block = quire::block_id{stack[--size]}; }
        benchmark::ClobberMemory();
        for (auto const i : order) { stack[size++] = taken[i].value(); }
        benchmark::ClobberMemory();
      });
    };
    report(state, alternate(state, pool_blocks, work, floor), goal);
  };
}

[[maybe_unused]] auto const registered = add("allocate/lifo_pair", 51, pairs<quire::lifo_allocation>("ns<=5")) &&
                                         add("allocate/fifo_pair", 51, pairs<quire::fifo_allocation>("")) &&
                                         add("allocate/lowest_pair", 51, pairs<quire::lowest_allocation>(""));

} // namespace
