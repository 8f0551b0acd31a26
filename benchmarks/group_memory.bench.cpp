// SPDX-License-Identifier: Apache-2.0

/// \file
/// Taking every block of one group and giving them back in random order, from each memory of several groups, through the same
/// pool that `allocate.bench.cpp` measures. The floor is that plain pool on a stack of its own blocks.

#include "support.hpp"

#include <quire/block/block_pool.hpp>
#include <quire/block/lifo_allocation.hpp>
#include <quire/core/types.hpp>
#include <quire/memory/group_allocation.hpp>
#include <quire/memory/partitioned_memory.hpp>
#include <quire/memory/two_level_memory.hpp>
#include <quire/memory/uniform_memory.hpp>

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace quire_bench;

constexpr std::uint32_t pool_blocks = 65'520; // a multiple of 26 · 5: whole pages of Gemma-3-27B

// [ns] of taking all blocks one by one and giving them back in `order`.
template <class Pool>
auto pair_time(Pool& pool, std::vector<quire::block_id>& taken, std::vector<std::uint32_t> const& order) -> double {
  return nanoseconds([&] {
    for (auto& block : taken) { block = pool.try_allocate(); }
    for (auto const i : order) {
      if (pool.release(taken[i])) { pool.retire_and_reclaim(taken[i]); }
    }
    benchmark::ClobberMemory();
  });
}

template <class Memory>
auto pairs(std::string goal) {
  return [=](benchmark::State& state) {
    auto const sizes = std::array{quire::byte_count{10 * 131'072}, quire::byte_count{52 * 131'072}};
    auto const budget = quire::byte_count{2ULL * pool_blocks * sizes[1].value()}; // enough in every model
    Memory memory{sizes, budget};
    quire::group_allocation<Memory> const view{memory, quire::group_id{0}};
    quire::block_pool<quire::group_allocation<Memory>> pool{view.capacity(), view};
    quire::block_pool<quire::lifo_allocation> plain{quire::block_count{pool_blocks}};
    std::mt19937_64 random{11};
    auto const order = shuffled(random, pool_blocks);
    std::vector<quire::block_id> taken(pool_blocks);
    auto const work = [&] { return pair_time(pool, taken, order); };
    auto const floor = [&] { return pair_time(plain, taken, order); };
    report(state, alternate(state, pool_blocks, work, floor), goal);
    expect(memory.usage().used == quire::byte_count{}, "all blocks came back");
  };
}

[[maybe_unused]] auto const registered =
    add("group_memory/two_level_pair", 51, pairs<quire::two_level_memory>("ratio<=2 plain pool")) &&
    add("group_memory/uniform_pair", 51, pairs<quire::uniform_memory>("")) &&
    add("group_memory/partitioned_pair", 51, pairs<quire::partitioned_memory>(""));

} // namespace
