// SPDX-License-Identifier: Apache-2.0

/// \file
/// Bytes of metadata a block, as the heap sees them: all that `run_tree`, `block_pool` and `limbo` allocate when they are
/// made for two timelines, less the tokens and the digest of each block.
///
/// ```text
///   run_tree     nodes 32 · hash buckets 12.8 · id extents 6.4 (1.5 ids of 4 bytes, 1 byte for 4 slots)
///   block_pool   state and holders 4 · free stack 4
///   limbo        one link 4, with tickets only
/// ```
///
/// Not counted is what grows with sequences: page tables (4 bytes an entry), records and rows.

#include "support.hpp"

#include <quire/block/block_pool.hpp>
#include <quire/block/limbo.hpp>
#include <quire/core/types.hpp>
#include <quire/identity/digest_128.hpp>
#include <quire/prefix/flat_index.hpp>
#include <quire/prefix/run_tree.hpp>

#include <cstdint>
#include <string>

namespace {

using namespace quire_bench;

/// [bytes] that making a `T` allocates.
template <class T, class... Args>
[[nodiscard]] auto bytes_of(Args const&... args) -> double {
  auto const before = allocated_bytes;
  T const object{args...};
  keep(&object);
  return static_cast<double>(allocated_bytes - before);
}

template <class Index>
auto bytes_a_block(std::uint32_t blocks, std::string goal) {
  return [=](benchmark::State& state) {
    auto const n = quire::block_count{blocks};
    auto const content = 16.0 * sizeof(quire::token_id) + sizeof(quire::digest_128);
    auto index = 0.0;
    auto pool = 0.0;
    auto limbo = 0.0;
    for (auto _ : state) {
      index = bytes_of<Index>(n, quire::token_count{16}) / blocks - content;
      pool = bytes_of<quire::block_pool<>>(n) / blocks;
      limbo = bytes_of<quire::limbo<2>>(n) / blocks;
      state.SetIterationTime(1e-9);
    }
    state.counters["B_index"] = index;
    state.counters["B_pool"] = pool;
    state.counters["B_limbo"] = limbo;
    state.counters["B"] = index + pool + limbo;
    set_goal(state, goal);
  };
}

[[maybe_unused]] auto const registered =
    add("metadata/run_tree_64K", 1, bytes_a_block<quire::run_tree<>>(65'536, "B<=64")) &&
    add("metadata/run_tree_1M", 1, bytes_a_block<quire::run_tree<>>(1'048'576, "B<=64")) &&
    add("metadata/flat_index_64K", 1,
        bytes_a_block<quire::flat_index<>>(65'536, "B<=64 the other index, for comparison"));

} // namespace
