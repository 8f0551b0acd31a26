// SPDX-License-Identifier: Apache-2.0
// A cache under each order of eviction.
#include <quire/prefix/fifo_eviction.hpp>
#include <quire/prefix/lfu_eviction.hpp>
#include <quire/prefix/lru_eviction.hpp>
#include <quire/prefix/no_eviction.hpp>
#include <quire/prefix/optimal_eviction.hpp>

#include "storage/storage_fixture.hpp"
#include "support/catch_compat.hpp"
#include "support/most_recent.hpp"

namespace {
using namespace quire;
using quire_test::ascending;
using quire_test::engine;
using quire_test::joined;
using quire_test::most_recent;
using quire_test::pool_of;

template <class Eviction>
struct evicting : default_policies {
  using eviction = Eviction;
};
} // namespace

TEST_CASE("eviction_policy: the archetype serves a cache") {
  auto e = engine<evicting<most_recent>>{pool_of(6)};
  for (auto round = 0; round < 8; ++round) { e.keep(ascending(13, 1000 * round)); }
  CHECK(e.cache.statistics().evicted_blocks > 0);
}

TEMPLATE_TEST_CASE("eviction_policy: a cache under pressure reads back every byte", "", lru_eviction, fifo_eviction,
                   lfu_eviction, optimal_eviction, most_recent) {
  auto e = engine<evicting<TestType>>{pool_of(9)};
  for (auto round = 0; round < 40; ++round) {
    auto a = e.serve(joined(ascending(8, 1), ascending(5, 100 * (round % 5))), 4);
    auto b = e.serve(ascending(9 + static_cast<std::size_t>(round % 3), 1000 * (round % 3)), 2);
    e.step({{&a, {7}}, {&b, {8}}});
    e.read(a);
    e.read(b);
    e.release(b);
    e.step({{&a, {9}}});
    e.release(a);
  }
  CHECK(e.cache.statistics().evicted_blocks > 0);
}

TEST_CASE("no_eviction: a full pool refuses") {
  auto e = engine<evicting<no_eviction>>{pool_of(4)};
  e.keep(ascending(12));
  CHECK(e.now().available == block_count{1});
  auto const refused = e.ask(ascending(8, 50));
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == errc::no_blocks);
  CHECK(e.hit(ascending(13)) == 12);
}
