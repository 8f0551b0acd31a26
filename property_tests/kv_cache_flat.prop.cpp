// SPDX-License-Identifier: Apache-2.0
// The toy of kv_cache.prop.cpp with every policy replaced that can be, and one digest for everything: exactness must not rest
// on digests.
#include <quire/block/fifo_allocation.hpp>
#include <quire/cache/kv_cache.hpp>
#include <quire/identity/constant_digest.hpp>
#include <quire/prefix/flat_index.hpp>
#include <quire/prefix/lfu_eviction.hpp>

#include "support/toy_generators.hpp"

namespace {
struct flat_policies : quire::default_policies {
  using digest = quire::constant_digest;
  using eviction = quire::lfu_eviction;
  template <class Eviction, class Digest>
  using index = quire::flat_index<Eviction, Digest>;
  using admission = quire::optimistic;
  using allocation = quire::fifo_allocation;
};
} // namespace

TEST_CASE("kv_cache: flat index, LFU, optimistic admission and equal digests agree with the toy", "[cache]") {
  quire_test::agrees_with_toy<flat_policies>(
      {"attached", "forks", "copied", "evicted", "skipped writes", "duplicates", "no blocks", "self hits", "moves"});
}
