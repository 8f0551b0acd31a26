// SPDX-License-Identifier: Apache-2.0

/// \file
/// Bytes of metadata a unit, as the heap sees them: all that an index allocates when it is made, less the tokens.
///
/// ```text
///   run_tree     nodes 32 · hash buckets 7.1 · id extents 6.4 (1.5 ids of 4 bytes, 1 byte for 4 slots)
///   units        word 4
/// ```
///
/// Not counted are digests, which are kept once somebody asks for one, and what a cache keeps for each group.

#include "support.hpp"

#include <quire/cache/cache_options.hpp>
#include <quire/cache/kv_cache.hpp>
#include <quire/core/types.hpp>
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
auto bytes_a_unit(std::uint32_t units, std::string goal) {
  return [=](benchmark::State& state) {
    auto bytes = 0.0;
    for (auto _ : state) {
      bytes =
          bytes_of<Index>(quire::unit_count{units}, quire::token_count{16}) / units - 16.0 * sizeof(quire::token_id);
      state.SetIterationTime(1e-9);
    }
    state.counters["B"] = bytes;
    set_goal(state, goal);
  };
}

/// Index, group and pool of a cache, whatever its sequences and steps take.
auto bytes_of_a_cache(std::uint32_t blocks, std::string goal) {
  return [=](benchmark::State& state) {
    auto const options = quire::cache_options{.blocks = quire::block_count{blocks},
                                              .max_sequences = quire::sequence_count{1},
                                              .max_rows = quire::row_count{1},
                                              .batch_buffers = 1};
    auto bytes = 0.0;
    for (auto _ : state) {
      bytes = bytes_of<quire::kv_cache<>>(options) / blocks - 16.0 * sizeof(quire::token_id);
      state.SetIterationTime(1e-9);
    }
    state.counters["B"] = bytes;
    set_goal(state, goal);
  };
}

[[maybe_unused]] auto const registered =
    add("metadata/cache_1M", 1, bytes_of_a_cache(1'048'576, "B<=56")) &&
    add("metadata/cache_8M", 1, bytes_of_a_cache(8'388'608, "B<=56")) &&
    add("metadata/run_tree_64K", 1, bytes_a_unit<quire::run_tree<>>(65'536, "B<=50")) &&
    add("metadata/run_tree_1M", 1, bytes_a_unit<quire::run_tree<>>(1'048'576, "B<=50")) &&
    add("metadata/flat_index_64K", 1, bytes_a_unit<quire::flat_index<>>(65'536, ""));

} // namespace
