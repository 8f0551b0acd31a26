// SPDX-License-Identifier: Apache-2.0
// The whole cache against a toy whose KV is a hash of everything it may depend on, commands in any order, on a device
// that is late: every readable position of every step is read back and compared. See support/toy_world.hpp.
#include <quire/block/fifo_allocation.hpp>
#include <quire/block/ticket_fence.hpp>
#include <quire/cache/kv_cache.hpp>
#include <quire/identity/constant_digest.hpp>
#include <quire/prefix/fifo_eviction.hpp>
#include <quire/prefix/flat_index.hpp>
#include <quire/prefix/lfu_eviction.hpp>

#include "support/rc_prop.hpp"
#include "support/toy_commands.hpp"
#include "support/toy_world.hpp"

#include <initializer_list>
#include <iostream>

namespace {

using quire_test::prop;

// Equal digests everywhere: exactness must not rest on them.
struct flat_policies : quire::default_policies {
  using digest = quire::constant_digest;
  using eviction = quire::lfu_eviction;
  template <class Eviction, class Digest>
  using index = quire::flat_index<Eviction, Digest>;
  using admission = quire::optimistic;
  using allocation = quire::fifo_allocation;
};
// Two device queues.
struct late_policies : quire::default_policies {
  using fence = quire::ticket_fence<2>;
  using eviction = quire::fifo_eviction;
};

// A property that never meets its subject proves nothing.
void require_coverage(quire_test::toy_coverage const& coverage, std::initializer_list<char const*> wanted) {
  for (auto const& [what, times] : coverage) { std::cout << what << ' ' << times << "; "; }
  std::cout << '\n';
  for (auto const* const what : wanted) {
    INFO(what);
    CHECK(coverage.contains(what));
    if (coverage.contains(what)) { CHECK(coverage.at(what) > 0); }
  }
}

template <class Policies>
void any_commands(std::initializer_list<char const*> wanted) {
  static quire_test::toy_coverage coverage; // generators and properties outlive locals while shrinking
  static auto cases = 0;
  coverage.clear();
  cases = 0;
  prop("any commands", [] {
    auto const size = quire_test::any_toy_size();
    auto const commands = *quire_test::any_toy_commands();
    RC_LOG() << size << '\n';
    quire_test::run_toy<Policies>(size, commands, coverage);
    ++cases;
  });
  if (cases >= 40) { require_coverage(coverage, wanted); } // not when one failure is replayed
}

} // namespace

TEST_CASE("kv_cache: default policies agree with the toy", "[cache]") {
  any_commands<quire::default_policies>({"attached", "forks", "copied", "evicted", "skipped writes", "duplicates",
                                         "resolved", "stale commits", "self hits", "dropped before launch",
                                         "dropped after launch", "truncations", "moves", "epochs", "refused admissions",
                                         "ended with a plan open"});
}

TEST_CASE("kv_cache: flat index, LFU, optimistic admission and equal digests agree with the toy", "[cache]") {
  any_commands<flat_policies>(
      {"attached", "forks", "copied", "evicted", "skipped writes", "duplicates", "no blocks", "moves"});
}

TEST_CASE("kv_cache: two late timelines agree with the toy", "[cache][fence]") {
  any_commands<late_policies>({"attached", "forks", "copied", "evicted", "waits", "dropped after launch", "abandoned",
                               "cut by a lost timeline", "lost", "moves", "stale commits"});
}
