// SPDX-License-Identifier: Apache-2.0
// The whole cache against a toy whose KV is a hash of everything it may depend on, commands in any order: every readable
// position of every step, and of every sequence after every command, is read back and compared. See support/toy_world.hpp.
#include <quire/cache/kv_cache.hpp>

#include "support/toy_generators.hpp"

TEST_CASE("kv_cache: default policies agree with the toy", "[cache]") {
  quire_test::agrees_with_toy<quire::default_policies>(
      {"attached", "forks", "copied", "evicted", "skipped writes", "duplicates", "resolved", "stale commits",
       "self hits", "dropped before launch", "dropped after launch", "truncations", "refused truncations", "moves",
       "epochs", "refused admissions", "ended with a plan open"});
}
