// SPDX-License-Identifier: Apache-2.0
// What hangs below a closed root is found by nobody: it leaves before everything else, whatever the order says.
// Units have 2 tokens and are numbered in the order of publication.
#include <quire/prefix/fifo_eviction.hpp>
#include <quire/prefix/flat_index.hpp>
#include <quire/prefix/lfu_eviction.hpp>
#include <quire/prefix/lru_eviction.hpp>
#include <quire/prefix/no_eviction.hpp>
#include <quire/prefix/optimal_eviction.hpp>
#include <quire/prefix/run_tree.hpp>

#include "storage/prefix/index_fixture.hpp"
#include "support/catch_compat.hpp"
#include "support/most_recent.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace {
using namespace quire;
using quire_test::ascending;
using quire_test::head;
using quire_test::joined;
using quire_test::most_recent;
using quire_test::shelf;
using list = std::vector<std::uint32_t>;

auto sorted(list a) -> list {
  std::sort(a.begin(), a.end());
  return a;
}
} // namespace

#define QUIRE_TEST_ORDERS                                                                              \
  run_tree<lru_eviction>, run_tree<fifo_eviction>, run_tree<lfu_eviction>, run_tree<optimal_eviction>, \
      run_tree<most_recent>, flat_index<lru_eviction>, flat_index<fifo_eviction>, flat_index<lfu_eviction>

TEMPLATE_TEST_CASE("close_root: what nobody can find leaves first, however often and recently it was used", "",
                   QUIRE_TEST_ORDERS) {
  auto s = shelf<TestType>{32, 2};
  auto const fresh = s.open("fresh");
  s.use(fresh, ascending(6, 100));                        // 0 1 2
  s.use(ascending(6));                                    // 3 4 5
  s.use(joined(head(ascending(6), 2), ascending(4, 50))); // 6 7 behind 3
  for (auto i = 0; i < 3; ++i) { s.release(s.pin(ascending(6))); }
  s.close(s.root);
  CHECK(s.index.evictable() == unit_count{8}); // closing moves nothing
  CHECK(sorted(s.evict(5)) == list{3, 4, 5, 6, 7});
  CHECK(s.find(fresh, ascending(6, 100)) == list{0, 1, 2});
  CHECK(s.evict(9) == list{2, 1, 0});
}

TEMPLATE_TEST_CASE("close_root: leaves of closed roots go one at a time, and the walk for them goes on", "",
                   QUIRE_TEST_ORDERS) {
  auto s = shelf<TestType>{64, 2};
  auto const fresh = s.open("fresh");
  s.use(fresh, ascending(8, 100));                                                              // 0 … 3
  for (token_id t = 0; t < 4; ++t) { s.use(joined(ascending(4), ascending(6, 200 + 10 * t))); } // 4 … 17
  s.close(s.root);
  for (auto left = 14U; left > 0; --left) {
    auto const victim = s.evict(1);
    REQUIRE(victim.size() == 1);
    CHECK(victim[0] >= 4);
    CHECK(s.index.cached() == unit_count{4 + left - 1});
  }
  CHECK(s.evict(1) == list{3});
}

TEMPLATE_TEST_CASE("close_root: pins below a closed root stay valid and publish on", "", QUIRE_TEST_ORDERS) {
  auto s = shelf<TestType>{32, 2};
  auto const fresh = s.open("fresh");
  s.use(fresh, ascending(2, 100));             // 0
  s.use(ascending(8));                         // 1 … 4
  auto running = s.pin(head(ascending(8), 4)); // 1 2
  s.close(s.root);
  CHECK(s.index.evictable() == unit_count{3});
  s.extend(running, {70, 71, 72, 73});           // 5 6
  s.extend(running, {74, 75});                   // 7
  auto fork = s.pin_back(running, 2);            // 1 2 5
  s.release(std::move(running));                 // 6 7 are idle
  CHECK(sorted(s.evict(4)) == list{3, 4, 6, 7}); // not the fork's, and not what can be found
  CHECK(s.find(fresh, ascending(2, 100)) == list{0});
  s.extend(fork, {80, 81});
  s.release(std::move(fork));
  auto const rest = s.evict(4);
  CHECK(rest.size() == 4);
  CHECK(std::count(rest.begin(), rest.end(), 0U) == 0);
  CHECK(s.evict(2) == list{0});
}

TEMPLATE_TEST_CASE("close_root: a path that is released does not leave before what hangs below it", "",
                   QUIRE_TEST_ORDERS) {
  auto s = shelf<TestType>{32, 2};
  s.use(joined(ascending(4), ascending(2, 50))); // 0 1 2
  s.use(joined(ascending(4), ascending(2, 60))); // 3 behind 1
  auto running = s.pin(joined(ascending(4), ascending(2, 50)));
  s.close(s.root);
  s.release(std::move(running)); // 2 leaves at once; 1 and 0 wait for 3, which was idle before
  auto const order = s.evict(9);
  REQUIRE(order.size() == 4);
  CHECK(sorted(list(order.begin(), order.begin() + 2)) == list{2, 3});
  CHECK(order[2] == 1);
  CHECK(order[3] == 0);
}

TEMPLATE_TEST_CASE("close_root: what is idle below a closed root is used again by a running one", "",
                   QUIRE_TEST_ORDERS) {
  auto s = shelf<TestType>{32, 2};
  auto const fresh = s.open("fresh");
  s.use(fresh, ascending(2, 100));    // 0
  s.use(ascending(8));                // 1 2 3 4
  auto running = s.pin(ascending(2)); // 1
  auto other = s.pin_back(running, 0);
  s.close(s.root);
  s.release(s.pin_back(running, 0));
  s.extend(running, {3, 4});     // lands on 2: 5 takes its place
  s.release(std::move(running)); // 5 becomes idle below the closed root now, above 3 4 that were so before
  s.extend(other, {3, 4, 5, 6}); // lands on 5 3, which leave their lists: 2 and 6 take their places
  CHECK(s.evict(9) == list{4, 0});
  s.release(std::move(other));
  CHECK(s.evict(9) == list{6, 2, 1});
}

TEMPLATE_TEST_CASE("close_root: when the walk is over, a parent still leaves right behind its last child", "",
                   QUIRE_TEST_ORDERS) {
  auto s = shelf<TestType>{32, 2};
  auto const fresh = s.open("fresh");
  s.use(fresh, ascending(4, 100));              // 0 1
  auto one = s.publish(joined({1, 2}, {3, 4})); // 2 3
  auto two = s.publish(joined({1, 2}, {5, 6})); // 4 behind 2
  s.close(s.root);
  CHECK(s.evict(1) == list{1}); // nothing else is idle: the walk is over
  s.release(std::move(one));
  s.release(std::move(two));
  CHECK(sorted(s.evict(2)) == list{3, 4});
  CHECK(s.evict(1) == list{2});
  CHECK(s.evict(1) == list{0});
}

TEMPLATE_TEST_CASE("close_root: a leaf that leaves first is cut where a running one needs its front", "",
                   QUIRE_TEST_ORDERS) {
  auto s = shelf<TestType>{32, 2};
  auto const fresh = s.open("fresh");
  s.use(fresh, ascending(4, 100));      // 0 1
  auto whole = s.publish(ascending(8)); // 2 3 4 5
  auto running = s.pin_back(whole, 3);  // 2
  s.close(s.root);
  s.release(std::move(whole));
  s.extend(running, {3, 4}); // lands on 3: 6 takes its place
  CHECK(s.index.evictable() == unit_count{4});
  CHECK(s.evict(3) == list{5, 4, 1});
  s.release(std::move(running));
  CHECK(s.evict(3) == list{6, 2, 0});
}

TEMPLATE_TEST_CASE("close_root: several roots are closed one after another", "", QUIRE_TEST_ORDERS) {
  auto s = shelf<TestType>{64, 2};
  auto roots = std::vector<node_id>{};
  for (auto const* name : {"a", "b", "c", "d"}) { roots.push_back(s.open(name)); }
  for (auto const root : roots) { s.use(root, ascending(8)); } // 4 units each
  for (auto const i : {2U, 0U, 3U}) {
    s.close(roots[i]);
    auto const gone = s.evict(3); // one unit is left of each
    REQUIRE(gone.size() == 3);
  }
  CHECK(s.find(roots[1], ascending(8)).size() == 4);
  CHECK(s.evict(3).size() == 3);
  CHECK(s.find(roots[1], ascending(8)).size() == 4);
  CHECK(s.evict(9).size() == 4);
}

TEMPLATE_TEST_CASE("close_root: units below a closed root can be removed for good", "", QUIRE_TEST_ORDERS) {
  auto s = shelf<TestType>{32, 2};
  auto held = s.publish(ascending(8)); // 0 1 2 3
  s.close(s.root);
  s.release(std::move(held));
  auto doomed = std::vector<std::uint8_t>(32);
  doomed[2] = 1;
  auto gone = list{};
  s.index.remove(doomed, [&](unit_id u) { gone.push_back(u.value()); });
  s.audit();
  CHECK(sorted(gone) == list{2, 3});
  CHECK(s.evict(9) == list{1, 0});
}

TEMPLATE_TEST_CASE("close_root: an order that evicts nothing keeps what nobody can find, too", "",
                   run_tree<no_eviction>, flat_index<no_eviction>) {
  auto s = shelf<TestType>{32, 2};
  auto held = s.publish(ascending(8));
  s.use(joined(ascending(4), {7, 7}));
  s.close(s.root);
  s.release(std::move(held));
  CHECK(s.index.evictable() == unit_count{0});
  CHECK(s.evict(9).empty());
  CHECK(s.index.cached() == unit_count{5});
}
