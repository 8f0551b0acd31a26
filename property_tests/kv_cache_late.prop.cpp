// SPDX-License-Identifier: Apache-2.0
// The toy of kv_cache.prop.cpp on a device that is late: two timelines, tickets that are reported late, twice and out of
// order, work that reads and writes long after the host went on, and timelines that are lost.
#include <quire/block/ticket_fence.hpp>
#include <quire/cache/kv_cache.hpp>
#include <quire/prefix/fifo_eviction.hpp>

#include "support/toy_generators.hpp"

namespace {
struct late_policies : quire::default_policies {
  using fence = quire::ticket_fence<2>;
  using eviction = quire::fifo_eviction;
};
} // namespace

TEST_CASE("kv_cache: two late timelines agree with the toy", "[cache][fence]") {
  quire_test::agrees_with_toy<late_policies>({"attached", "forks", "copied", "evicted", "waits", "dropped after launch",
                                              "abandoned", "cut by a lost timeline", "lost", "moves", "stale commits"});
}
