// SPDX-License-Identifier: Apache-2.0
// The flat index against the same naive map as the run tree: the two are equal because each equals the map.
#include <quire/identity/constant_digest.hpp>
#include <quire/prefix/fifo_eviction.hpp>
#include <quire/prefix/flat_index.hpp>
#include <quire/prefix/lfu_eviction.hpp>
#include <quire/prefix/lru_eviction.hpp>

#include "support/model_prefix_commands.hpp"

namespace {
using quire_test::model_order;

struct flat_lru {
  using index = quire::flat_index<quire::lru_eviction, quire::constant_digest>;
  static constexpr auto order = model_order::lru;
  static constexpr bool runs = false;
};
struct flat_lfu {
  using index = quire::flat_index<quire::lfu_eviction>;
  static constexpr auto order = model_order::lfu;
  static constexpr bool runs = false;
};
struct flat_fifo {
  using index = quire::flat_index<quire::fifo_eviction>;
  static constexpr auto order = model_order::fifo;
  static constexpr bool runs = false;
};
} // namespace

TEMPLATE_TEST_CASE("flat_index: agrees with a naive map, victim by victim", "[prefix]", flat_lru, flat_lfu, flat_fifo) {
  quire_test::agrees_with_naive_map<TestType>();
}
