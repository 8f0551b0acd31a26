// SPDX-License-Identifier: Apache-2.0
// What the concept takes and refuses, and one suite for every model under both indexes.
#include <quire/prefix/concepts.hpp>
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
#include <array>
#include <cstdint>
#include <set>
#include <type_traits>
#include <utility>
#include <vector>

namespace {
using namespace quire;
using quire_test::ascending;
using quire_test::joined;
using quire_test::most_recent;
using quire_test::shelf;
using quire_test::text;

// --- the concept ---------------------------------------------------------------------------------------------------
// A model in which expression number Missing is left out, Wrong returns another type, or Throws is not noexcept.
struct other {};
template <int Missing, int Wrong = -1, int Throws = -1>
struct candidate {
  template <int N, class T>
  using returns = std::conditional_t<N == Wrong, other, T>;
  static constexpr bool leaves_only = true;
  static constexpr bool counts_uses = false;
  static constexpr std::uint32_t max_run = 1;

  explicit candidate(node_count)
    requires(Missing != 0);
  auto create(node_id, node_id) noexcept(Throws != 1) -> returns<1, void>
    requires(Missing != 1);
  auto use(node_id) noexcept(Throws != 2) -> returns<2, void>
    requires(Missing != 2);
  template <class Nodes>
  auto enter(Nodes&, node_id) noexcept(Throws != 3) -> returns<3, void>
    requires(Missing != 3);
  template <class Nodes>
  auto leave(Nodes&, node_id) noexcept(Throws != 4) -> returns<4, void>
    requires(Missing != 4);
  template <class Nodes>
  auto split(Nodes&, node_id, node_id, bool) noexcept(Throws != 5) -> returns<5, void>
    requires(Missing != 5);
  template <class Nodes>
  auto merge(Nodes&, node_id, node_id) noexcept(Throws != 6) -> returns<6, void>
    requires(Missing != 6);
  auto may_extend(node_id, bool) const noexcept(Throws != 7) -> returns<7, bool>
    requires(Missing != 7);
  auto may_merge(node_id, node_id) const noexcept(Throws != 8) -> returns<8, bool>
    requires(Missing != 8);
  auto victim() const noexcept(Throws != 9) -> returns<9, node_id>
    requires(Missing != 9);
};
static_assert(eviction_policy<candidate<-1>>);
static_assert(!eviction_policy<int>);
static_assert(!eviction_policy<void>);
template <int... N>
constexpr auto all_refused(std::integer_sequence<int, N...>) -> bool {
  return !eviction_policy<candidate<0>> && (!eviction_policy<candidate<N + 1>> && ...) &&
         (!eviction_policy<candidate<-1, N + 1>> && ...) && (!eviction_policy<candidate<-1, -1, N + 1>> && ...);
}
static_assert(all_refused(std::make_integer_sequence<int, 9>{}));

struct not_const : candidate<-1> {
  auto victim() noexcept -> node_id;
};
struct leaves_as_number : candidate<-1> {
  static constexpr int leaves_only = 1;
};
struct leaves_changes : candidate<-1> {
  static bool leaves_only;
};
struct counts_as_number : candidate<-1> {
  static constexpr int counts_uses = 1;
};
struct run_as_int : candidate<-1> {
  static constexpr int max_run = 1;
};
struct run_private : candidate<-1> {
private:
  static constexpr std::uint32_t max_run = 1;
};
static_assert(!eviction_policy<not_const>);
static_assert(!eviction_policy<leaves_as_number>);
static_assert(!eviction_policy<leaves_changes>);
static_assert(!eviction_policy<counts_as_number>);
static_assert(!eviction_policy<run_as_int>);
static_assert(!eviction_policy<run_private>);

// A forest: three branches behind a common block, and one tree of its own. p_b = 2.
auto const trunk = text{1, 2};
auto const branches = std::vector<text>{joined(trunk, ascending(8, 10)), joined(trunk, ascending(6, 30)),
                                        joined(trunk, ascending(2, 50)), ascending(10, 70)};
template <class Shelf>
void plant(Shelf& s) {
  for (auto const& branch : branches) { s.use(branch); }
}
} // namespace

TEST_CASE("eviction_policy: the archetype serves both indexes") {
  auto tree = shelf<run_tree<most_recent>>{32, 2};
  plant(tree);
  CHECK(tree.evict(1) == std::vector{13U}); // the end of the tree that was used last: blocks 9 … 13
  auto flat = shelf<flat_index<most_recent>>{32, 2};
  plant(flat);
  CHECK(flat.evict(14).size() == 14);
}

// --- conformance ---------------------------------------------------------------------------------------------------
#define QUIRE_TEST_INDEXES                                                                                  \
  run_tree<lru_eviction>, run_tree<fifo_eviction>, run_tree<lfu_eviction>, run_tree<optimal_eviction>,      \
      run_tree<most_recent>, flat_index<lru_eviction>, flat_index<fifo_eviction>, flat_index<lfu_eviction>, \
      flat_index<optimal_eviction>

TEMPLATE_TEST_CASE("eviction_policy: a chain is given up from its end, and everything idle goes in the end", "",
                   QUIRE_TEST_INDEXES) {
  auto s = shelf<TestType>{32, 2};
  plant(s);
  auto const cached = s.index.cached().value();
  CHECK(cached == 1 + 4 + 3 + 1 + 5);
  CHECK(s.index.evictable().value() == cached);
  auto gone = std::set<std::uint32_t>{};
  auto const paths = [&] {
    auto out = std::vector<std::vector<std::uint32_t>>{};
    for (auto const& b : branches) { out.push_back(s.find(b)); }
    return out;
  };
  auto const before = paths();
  for (auto left = cached; left > 0; --left) {
    auto const victims = s.evict(1);
    REQUIRE(victims.size() == 1);
    REQUIRE(gone.insert(victims[0]).second);
    CHECK(s.index.cached().value() == left - 1);
    CHECK(s.index.evictable().value() == left - 1);
    auto const now = paths();
    for (std::size_t i = 0; i < now.size(); ++i) { // what is left is found: no block hangs behind a gap
      auto expected = before[i];
      expected.erase(std::find_if(expected.begin(), expected.end(), [&](auto b) { return gone.count(b) != 0; }),
                     expected.end());
      CHECK(now[i] == expected);
      CHECK(std::none_of(before[i].begin() + static_cast<std::ptrdiff_t>(expected.size()), before[i].end(),
                         [&](auto b) { return gone.count(b) == 0; }));
    }
  }
  CHECK(s.evict(1).empty());
}

TEMPLATE_TEST_CASE("S24: a pinned block and its ancestors are never victims", "", QUIRE_TEST_INDEXES) {
  auto s = shelf<TestType>{32, 2};
  plant(s);
  auto held = s.pin(branches[1]);
  auto const kept = s.find(branches[1]);
  auto const victims = s.evict(100);
  CHECK(victims.size() == 14 - 4);
  for (auto const b : kept) { CHECK(std::count(victims.begin(), victims.end(), b) == 0); }
  CHECK(s.find(branches[1]) == kept);
  CHECK(s.index.evictable() == unit_count{0});
  s.release(std::move(held));
  CHECK(s.evict(100).size() == 4);
}

TEMPLATE_TEST_CASE("eviction_policy: many at once are one after another", "", QUIRE_TEST_INDEXES) {
  auto at_once = shelf<TestType>{32, 2};
  auto single = shelf<TestType>{32, 2};
  plant(at_once);
  plant(single);
  auto one_by_one = std::vector<std::uint32_t>{};
  while (true) {
    auto const victim = single.evict(1);
    if (victim.empty()) { break; }
    one_by_one.push_back(victim[0]);
  }
  CHECK(at_once.evict(100) == one_by_one);
}

TEST_CASE("no_eviction: what is cached stays") {
  auto s = shelf<run_tree<no_eviction>>{32, 2};
  plant(s);
  CHECK(s.evict(3).empty());
  CHECK(s.index.cached().value() == 14);
  CHECK(s.index.evictable() == unit_count{0});
}

namespace {
// Hooks of a few nodes, for a policy without an index.
struct few_nodes {
  std::array<order_hook, 8> hooks{};
  auto hook(node_id n) noexcept -> order_hook& { return hooks[n.value()]; }
};
} // namespace

TEST_CASE("B4: the front of an idle run that is split was used just when its rest was") {
  auto nodes = few_nodes{};
  auto order = lru_eviction{node_count{8}};
  order.enter(nodes, node_id{1});
  order.enter(nodes, node_id{2});
  order.split(nodes, node_id{1}, node_id{3}, true);
  for (auto const expected : {1U, 3U, 2U}) { // the rest lies deeper: it goes first
    REQUIRE(order.victim() == node_id{expected});
    order.leave(nodes, node_id{expected});
  }
  CHECK_FALSE(order.victim());
}
