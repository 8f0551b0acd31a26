// SPDX-License-Identifier: Apache-2.0
// Who leaves first: the order of each policy on histories small enough to be worked out by hand, and on random ones
// against a naive model of single blocks. Blocks have 2 tokens and are numbered in the order of publication.
#include <quire/prefix/fifo_eviction.hpp>
#include <quire/prefix/flat_index.hpp>
#include <quire/prefix/lfu_eviction.hpp>
#include <quire/prefix/lru_eviction.hpp>
#include <quire/prefix/optimal_eviction.hpp>
#include <quire/prefix/run_tree.hpp>

#include "storage/prefix/index_fixture.hpp"
#include "support/catch_compat.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace {
using namespace quire;
using quire_test::ascending;
using quire_test::head;
using quire_test::joined;
using quire_test::shelf;
using quire_test::text;
using list = std::vector<std::uint32_t>;

auto const chain = ascending(6);                                     // blocks 0 1 2
auto const other = ascending(4, 50);                                 // blocks 3 4
auto const fork_of_chain = joined(head(chain, 2), {20, 21, 22, 23}); // behind block 0: blocks 5 6
} // namespace

TEMPLATE_TEST_CASE("case 105: of three blocks released together the deepest is evicted first", "",
                   run_tree<lru_eviction>, run_tree<fifo_eviction>, run_tree<lfu_eviction>, run_tree<optimal_eviction>,
                   flat_index<lru_eviction>, flat_index<fifo_eviction>, flat_index<lfu_eviction>,
                   flat_index<optimal_eviction>) {
  auto s = shelf<TestType>{3, 2};
  s.use(chain);
  CHECK(s.evict(1) == list{2});
  CHECK(s.find(chain) == list{0, 1}); // the next hit is 2 blocks
  CHECK(s.evict(2) == list{1, 0});
}

TEMPLATE_TEST_CASE("B4: LRU - the path released longest ago goes first, deepest first", "", run_tree<lru_eviction>,
                   flat_index<lru_eviction>) {
  auto s = shelf<TestType>{8, 2};
  s.use(chain);
  s.use(other);
  s.use(fork_of_chain); // block 0 was used last
  CHECK(s.evict(7) == list{2, 1, 4, 3, 6, 5, 0});
}

TEMPLATE_TEST_CASE("B4: LRU - a look-up moves nothing, a pin does", "", run_tree<lru_eviction>,
                   flat_index<lru_eviction>) {
  auto s = shelf<TestType>{8, 2};
  s.use(chain);
  s.use(other);
  CHECK(s.find(chain) == list{0, 1, 2});
  s.release(s.pin(head(chain, 4))); // blocks 0 1 are used again, block 2 is not
  CHECK(s.evict(5) == list{2, 4, 3, 1, 0});
}

TEMPLATE_TEST_CASE("B4: LRU - an ancestor that is exposed later keeps the time of its own last use", "",
                   run_tree<lru_eviction>, flat_index<lru_eviction>) {
  auto s = shelf<TestType>{8, 2};
  s.use(head(chain, 4));        // blocks 0 1
  s.use(other);                 // blocks 2 3
  auto held = s.publish(chain); // block 4 behind them
  s.use(ascending(4, 90));      // blocks 5 6
  s.release(std::move(held));
  s.release(s.pin(other));
  // when block 4 goes, its ancestors have the time of the same use: they do not go to the recent end
  CHECK(s.evict(7) == list{6, 5, 4, 1, 0, 3, 2});
}

TEMPLATE_TEST_CASE("B4: FIFO - the leaf published first goes first, whatever was used since", "",
                   run_tree<fifo_eviction>, flat_index<fifo_eviction>) {
  auto s = shelf<TestType>{8, 2};
  s.use(chain);
  s.use(other);
  s.release(s.pin(chain));
  CHECK(s.evict(3) == list{2, 1, 0}); // its parents are older than the other leaf
  CHECK(s.evict(2) == list{4, 3});
}

TEMPLATE_TEST_CASE("B4: FIFO - no orphans: a parent waits for its younger children", "", run_tree<fifo_eviction>,
                   flat_index<fifo_eviction>) {
  auto s = shelf<TestType>{8, 2};
  s.use(chain);
  s.use(other);
  s.use(fork_of_chain);
  // block 0 was published first, but hangs above blocks 5 6
  CHECK(s.evict(7) == list{2, 1, 4, 3, 6, 5, 0});
}

TEMPLATE_TEST_CASE("B4: LFU - the least used goes first, then the least recent", "", run_tree<lfu_eviction>,
                   flat_index<lfu_eviction>) {
  auto s = shelf<TestType>{8, 2};
  s.use(chain);
  s.use(other);
  s.release(s.pin(chain));
  s.release(s.pin(head(chain, 4)));
  s.use({90, 91, 92, 93});
  // uses: blocks 0 1 three times, 2 twice, 3 4 once, 5 6 once and last of all
  CHECK(s.evict(7) == list{4, 3, 6, 5, 2, 1, 0});
}

TEMPLATE_TEST_CASE("B4: LFU - counts are forgotten with the block", "", run_tree<lfu_eviction>,
                   flat_index<lfu_eviction>) {
  auto s = shelf<TestType>{8, 2};
  s.use(other); // blocks 0 1
  for (auto i = 0; i < 5; ++i) { s.release(s.pin(other)); }
  CHECK(s.evict(2) == list{1, 0});
  s.use(other); // once now
  auto const again = s.find(other);
  s.use(chain);
  s.release(s.pin(chain));
  CHECK(s.evict(2) == list{again[1], again[0]});
}

TEMPLATE_TEST_CASE("B4: optimum - the block used again farthest in the future goes first", "",
                   run_tree<optimal_eviction>, flat_index<optimal_eviction>) {
  auto s = shelf<TestType>{8, 2};
  auto const never = optimal_eviction::never;
  auto const future = [&](std::vector<std::uint32_t> const& uses, text const& tokens) {
    s.index.eviction().next_uses(uses);
    s.use(tokens);
    s.index.eviction().next_uses({});
  };
  future({5, 9, never}, chain);
  future({7, 7}, other);
  CHECK(s.evict(5) == list{2, 1, 4, 3, 0});
}

// --- against a naive model -----------------------------------------------------------------------------------------
namespace {
// Single blocks by path; what is idle and has no idle or busy child is a leaf.
struct naive_block {
  list path;
  std::uint64_t stamp = 0; // of the last release, or of the publication
  std::uint64_t uses = 0;
  std::uint32_t pins = 0; // of paths through it
};
enum class rule { lru, fifo, lfu };

struct naive {
  rule by;
  std::uint64_t clock = 0;
  std::map<text, naive_block> blocks; // by whole prefix

  auto leaf(text const& prefix) const -> bool {
    for (auto const& [key, block] : blocks) {
      if (key.size() == prefix.size() + 2 && std::equal(prefix.begin(), prefix.end(), key.begin())) { return false; }
    }
    return true;
  }
  auto victim() const -> text {
    auto const* best = static_cast<text const*>(nullptr);
    auto const key = [&](naive_block const& b) { return std::pair{by == rule::lfu ? b.uses : 0, b.stamp}; };
    for (auto const& [prefix, block] : blocks) {
      if (block.pins != 0 || !leaf(prefix)) { continue; }
      if (best == nullptr || key(block) < key(blocks.at(*best))) { best = &prefix; }
    }
    return best == nullptr ? text{} : *best;
  }
};
} // namespace

TEMPLATE_TEST_CASE("B4: victims equal a naive per-block model under concurrent pins", "",
                   (std::pair<run_tree<lru_eviction>, std::integral_constant<rule, rule::lru>>),
                   (std::pair<flat_index<lru_eviction>, std::integral_constant<rule, rule::lru>>),
                   (std::pair<run_tree<lfu_eviction>, std::integral_constant<rule, rule::lfu>>),
                   (std::pair<flat_index<lfu_eviction>, std::integral_constant<rule, rule::lfu>>),
                   (std::pair<flat_index<fifo_eviction>, std::integral_constant<rule, rule::fifo>>)) {
  using index = typename TestType::first_type;
  auto random = std::mt19937{20260101};
  auto const pick = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  for (auto round = 0; round < 30; ++round) {
    auto s = shelf<index>{64, 2};
    auto model = naive{TestType::second_type::value, 0, {}};
    auto held = std::vector<std::pair<prefix_pin, text>>{};
    auto const prefixes = [](text const& tokens) {
      auto out = std::vector<text>{};
      for (std::size_t n = 2; n <= tokens.size(); n += 2) { out.push_back(head(tokens, n)); }
      return out;
    };
    for (auto step = 0; step < 60; ++step) {
      auto const act = pick(4);
      if (act <= 1 && s.index.cached().value() < 56) { // a request: pin what is there, publish the rest
        auto tokens = text{};
        for (auto n = 1 + pick(4); n > 0; --n) { tokens = joined(tokens, {static_cast<token_id>(pick(3)), 0}); }
        for (auto const& prefix : prefixes(tokens)) {
          auto const found = model.blocks.count(prefix) != 0;
          auto& block = model.blocks[prefix];
          if (!found) { block.stamp = ++model.clock; }
          ++block.uses;
          ++block.pins;
        }
        held.emplace_back(s.publish(tokens), tokens);
      } else if (act == 2 && !held.empty()) { // an end
        auto const i = pick(static_cast<unsigned>(held.size()));
        auto one = std::move(held[i]);
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
        auto all = prefixes(one.second);
        for (auto p = all.size(); p-- > 0;) {
          auto& block = model.blocks[all[p]];
          if (--block.pins == 0 && model.by != rule::fifo) { block.stamp = ++model.clock; }
        }
        s.release(std::move(one.first));
      } else { // evictions
        for (auto n = pick(4); n > 0; --n) {
          auto const expected = model.victim();
          auto const path = s.find(expected);
          auto const got = s.evict(1);
          REQUIRE(got.empty() == expected.empty());
          if (got.empty()) { break; }
          REQUIRE(path.size() == expected.size() / 2);
          REQUIRE(got[0] == path.back());
          model.blocks.erase(expected);
        }
      }
    }
    for (auto& one : held) { s.release(std::move(one.first)); }
  }
}
