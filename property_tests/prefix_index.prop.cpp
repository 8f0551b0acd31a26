// SPDX-License-Identifier: Apache-2.0
// The run tree against a naive map, victim by victim, while pins come and go and roots are closed. Runs are not part of the
// model: whatever the tree does with them must not show. Digests are computed bare, from the tokens of a path.
#include <quire/identity/constant_digest.hpp>
#include <quire/prefix/fifo_eviction.hpp>
#include <quire/prefix/lfu_eviction.hpp>
#include <quire/prefix/lru_eviction.hpp>
#include <quire/prefix/run_tree.hpp>

#include "support/model_prefix_commands.hpp"

namespace {
using quire_test::model_order;

struct tree_lru {
  using index = quire::run_tree<quire::lru_eviction>;
  static constexpr auto order = model_order::lru;
  static constexpr bool runs = true;
};
struct tree_lfu {
  using index = quire::run_tree<quire::lfu_eviction, quire::constant_digest>; // everything has one digest and one place
  static constexpr auto order = model_order::lfu;
  static constexpr bool runs = true;
};
struct tree_fifo {
  using index = quire::run_tree<quire::fifo_eviction>;
  static constexpr auto order = model_order::fifo;
  static constexpr bool runs = true;
};
} // namespace

TEMPLATE_TEST_CASE("run_tree: agrees with a naive map, victim by victim", "[prefix]", tree_lru, tree_lfu, tree_fifo) {
  quire_test::agrees_with_naive_map<TestType>();
}

TEMPLATE_TEST_CASE("run_tree: runs longer than 512 units", "[prefix]", tree_lru, tree_lfu) {
  auto coverage = quire_test::index_coverage{};
  quire_test::long_index_run<TestType>(
      {.units = 1500, .unit_tokens = 2, .longest = 900, .usual = 900, .symbols = 3, .branching = 100}, 25, 1, coverage);
  CHECK(coverage["victims"] > 500);
}

TEMPLATE_TEST_CASE("run_tree: an arena of runs in pieces", "[prefix]", tree_lru, tree_lfu) {
  auto coverage = quire_test::index_coverage{};
  quire_test::long_index_run<TestType>(
      {.units = 700, .unit_tokens = 1, .longest = 300, .usual = 2, .symbols = 2000, .branching = 1}, 600, 2, coverage);
  CHECK(coverage["victims"] > 500);
}
