// SPDX-License-Identifier: Apache-2.0
// Runs: how they grow, split, merge and shrink, seen by their number of nodes; and the parts that the tree is built from.
#include <quire/prefix/detail/bucket_table.hpp>
#include <quire/prefix/detail/compare_tokens.hpp>
#include <quire/prefix/detail/extent_arena.hpp>
#include <quire/prefix/optimal_eviction.hpp>
#include <quire/prefix/run_tree.hpp>

#include "storage/prefix/index_fixture.hpp"
#include "support/catch_compat.hpp"

#include <cstdint>
#include <numeric>
#include <set>
#include <span>
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

auto counting(std::uint32_t n) -> list {
  auto out = list(n);
  std::iota(out.begin(), out.end(), 0U);
  return out;
}
} // namespace

TEST_CASE("B1: 600 blocks in a row are two nodes, and all of them are found") {
  auto s = shelf<run_tree<>>{700, 3};
  auto const prompt = ascending(1800);
  s.use(prompt);
  CHECK(s.index.nodes() == node_count{2}); // 512 + 88
  CHECK(s.find(prompt) == counting(600));
  for (auto const n : {1U, 511U, 512U, 513U, 599U}) { CHECK(s.find(head(prompt, n * 3)) == counting(n)); }
  auto held = s.pin(head(prompt, 3 * 512)); // ends where a node ends: nothing splits
  CHECK(s.index.nodes() == node_count{2});
  CHECK(s.index.evictable() == unit_count{88});
  s.release(std::move(held));
}

TEST_CASE("B1: one call fills a run and goes on with the next") {
  auto s = shelf<run_tree<>>{700, 3};
  auto const prompt = ascending(1800);
  s.use(head(prompt, 1500));
  s.use(prompt); // 12 blocks fill the run of 500, 88 follow
  CHECK(s.index.nodes() == node_count{2});
  CHECK(s.find(prompt) == counting(600));
}

TEST_CASE("B1: a run published block by block is one node") {
  auto s = shelf<run_tree<>>{64, 2};
  auto pin = s.publish(ascending(2));
  for (std::size_t n = 4; n <= 64; n += 2) {
    auto longer = s.publish(ascending(n));
    s.release(std::move(pin));
    pin = std::move(longer);
  }
  s.release(std::move(pin));
  CHECK(s.find(ascending(64)) == counting(32));
  CHECK(s.index.nodes() == node_count{1});
}

TEST_CASE("B1: where a pin ends inside a run the run splits, and it merges at release") {
  auto s = shelf<run_tree<>>{32, 2};
  s.use(ascending(20));
  CHECK(s.index.nodes() == node_count{1});
  auto whole = s.pin(ascending(20));
  auto const suffix = whole.node();
  auto front = s.pin(ascending(6));
  CHECK(s.index.nodes() == node_count{2});
  CHECK(whole.node() == suffix); // the suffix keeps the number: pins and children stay valid
  CHECK(s.find(ascending(20)) == counting(10));
  auto inner = s.pin(ascending(12));
  CHECK(s.index.nodes() == node_count{3});
  CHECK(whole.node() == suffix);
  CHECK(s.index.evictable() == unit_count{0});
  s.release(std::move(front)); // still busy: its descendants are pinned
  s.release(std::move(inner));
  s.release(std::move(whole));
  CHECK(s.index.nodes() == node_count{1});
  CHECK(s.find(ascending(20)) == counting(10));
}

TEST_CASE("B1: two branches share their common run, which splits where they part") {
  auto s = shelf<run_tree<>>{64, 2};
  s.use(ascending(20));
  auto const branch = joined(ascending(8), ascending(12, 100));
  s.use(branch);
  CHECK(s.index.nodes() == node_count{3});
  CHECK(s.find(ascending(20)) == counting(10));
  CHECK(s.find(branch) == list{0, 1, 2, 3, 10, 11, 12, 13, 14, 15});
  CHECK(s.index.cached() == unit_count{16}); // shared, not stored twice
}

TEST_CASE("B1: a run is evicted from its end, half of it at a time") {
  auto s = shelf<run_tree<>>{32, 2};
  s.use(ascending(20));
  CHECK(s.evict(4) == list{9, 8, 7, 6});
  CHECK(s.index.nodes() == node_count{1});
  CHECK(s.find(ascending(20)) == counting(6));
  CHECK(s.evict(6) == list{5, 4, 3, 2, 1, 0});
  CHECK(s.index.nodes() == node_count{0});
}

TEST_CASE("B1: what was half evicted grows again") {
  auto s = shelf<run_tree<>>{32, 2};
  s.use(ascending(20));
  CHECK(s.evict(7).size() == 7);
  s.use(ascending(20));
  CHECK(s.find(ascending(20)).size() == 10);
  CHECK(s.index.cached() == unit_count{10});
}

TEST_CASE("B1: a digest equals the bare chain, whatever its run went through") {
  auto s = shelf<run_tree<>>{64, 2};
  auto const asked = [&](text const& tokens) {
    auto pin = s.publish(tokens);
    CHECK(s.index.digest(pin) == s.bare_digest(tokens));
    CHECK(s.index.digest(pin) == s.bare_digest(tokens)); // kept
    s.audit();
    s.release(std::move(pin));
  };
  auto const changed = [](std::size_t from) { return joined(head(ascending(20), from), ascending(20 - from, 500)); };
  CHECK(s.index.digest(s.pin({})) == s.bare_digest({}));
  asked(ascending(20));
  asked(ascending(12)); // split, and joined again
  asked(ascending(20));
  asked(ascending(24)); // grown
  auto pin = s.pin(ascending(24));
  auto const behind = ascending(4, 25);
  s.extend(pin, behind); // grown while pinned
  CHECK(s.index.digest(pin) == s.bare_digest(joined(ascending(24), behind)));
  auto front = s.pin_back(pin, 9);
  CHECK(s.index.digest(front) == s.bare_digest(ascending(10)));
  CHECK(s.index.digest(pin) == s.bare_digest(ascending(28)));
  s.release(std::move(front));
  s.release(std::move(pin));
  asked(ascending(28)); // joined
  CHECK(s.evict(9).size() == 9);
  asked(changed(10)); // half evicted, and grown again in another way
  CHECK(s.evict(5).size() == 5);
  asked(ascending(28));
  auto doomed = std::vector<std::uint8_t>(64);
  doomed[s.find(ascending(28))[6]] = 1;
  s.index.remove(doomed, [](unit_id) {});
  s.audit();
  asked(changed(12)); // cut by a removal, and grown again
  CHECK(s.evict(64).size() > 0);
  asked(ascending(6, 900)); // a node that had another number's past
  asked(joined(ascending(6, 900), ascending(4, 50)));
}

TEST_CASE("B1: the digest of a path of very many nodes needs no deep stack") {
  constexpr auto depth = 200'000U; // one node for each unit
  auto tree = run_tree<optimal_eviction>{unit_count{depth}, token_count{1}};
  auto const root = tree.open_root({});
  auto pin = tree.pin(prefix_match{{}, root, 0, root});
  auto units = std::vector<unit_id>{};
  for (auto i = 0U; i < depth; ++i) {
    units.push_back(tree.take_unit());
    tree.tokens(units.back())[0] = static_cast<token_id>(i);
  }
  CHECK(tree.publish(pin, units).published == unit_count{depth});
  CHECK(tree.nodes() == node_count{depth});
  auto const policy = xxh3_128_digest{};
  auto bare = policy.root({});
  for (auto i = 0U; i < depth; ++i) {
    auto const token = static_cast<token_id>(i);
    bare = policy.chain(bare, std::span{&token, 1});
  }
  CHECK(tree.digest(pin) == bare);
  tree.release(std::move(pin));
}

TEST_CASE("B1: metadata stays within 50 bytes a unit") {
  for (auto const n : {1'000U, 65'536U}) {
    auto const tree = run_tree<>{unit_count{n}, token_count{16}};
    CHECK(tree.metadata_bytes().value() <= std::uint64_t{50} * n + 8192);
  }
}

TEST_CASE("B1: a tree of single blocks uses as many nodes as blocks, and no more") {
  auto s = shelf<run_tree<>>{65, 1};
  for (token_id t = 0; t < 64; ++t) {
    s.use({t, static_cast<token_id>(t + 1)});
    if (t >= 31) { break; }
  }
  CHECK(s.index.cached() == unit_count{64});
  CHECK(s.evict(64).size() == 64);
  CHECK(s.index.nodes() == node_count{0});
}

// --- parts ---------------------------------------------------------------------------------------------------------
TEST_CASE("compare_tokens: the first different block is found for every block size and place") {
  for (auto const unit : {1U, 3U, 4U, 16U, 17U}) {
    for (auto const blocks : {0U, 1U, 3U, 4U, 5U, 27U, 28U, 29U, 70U}) {
      auto store = ascending(std::size_t{unit} * 100);
      auto ids = list(blocks);
      for (std::uint32_t i = 0; i < blocks; ++i) { ids[i] = (i * 37U) % 100U; } // scattered, all different
      auto query = text{};
      for (auto const id : ids) {
        query.insert(query.end(), store.begin() + static_cast<std::ptrdiff_t>(id * unit),
                     store.begin() + static_cast<std::ptrdiff_t>((id + 1) * unit));
      }
      CHECK(detail::equal_blocks(query.data(), store.data(), ids.data(), blocks, unit) == blocks);
      auto wrong = 0;
      for (std::size_t at = 0; at < query.size(); ++at) {
        query[at] ^= 0x4000'0000;
        wrong += detail::equal_blocks(query.data(), store.data(), ids.data(), blocks, unit) != at / unit;
        query[at] ^= 0x4000'0000;
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("bucket_table: equal hashes in any number are told apart by content") {
  auto table = detail::bucket_table{100};
  for (std::uint32_t n = 1; n <= 60; ++n) { table.insert(7, n); }
  for (std::uint32_t n = 61; n <= 90; ++n) { table.insert(n * 0x0800'0001U, n); }
  CHECK(table.count() == 90);
  for (std::uint32_t n = 1; n <= 60; n += 2) { table.erase(7, n); }
  for (std::uint32_t n = 1; n <= 60; ++n) {
    CHECK(table.find(7, [&](std::uint32_t x) { return x == n; }) == (n % 2 == 1 ? 0 : n));
  }
  auto offered = 0; // entries of this hash
  CHECK(table.find(7, [&](std::uint32_t x) {
    offered += 1;
    return x == 0;
  }) == 0);
  CHECK(offered == 30);
  table.replace(7, 2, 99);
  CHECK(table.find(7, [](std::uint32_t x) { return x == 99; }) == 99);
  for (std::uint32_t n = 61; n <= 90; ++n) {
    CHECK(table.find(n * 0x0800'0001U, [&](std::uint32_t x) { return x == n; }) == n);
  }
  CHECK(table.count() == 60);
}

TEST_CASE("extent_arena: extents never overlap, and buddies join again") {
  auto arena = detail::extent_arena{2048};
  CHECK(arena.slots() == 2048);
  CHECK(arena.free_slots() == 2048);
  CHECK(detail::extent_arena::order_for(1) == 2);
  CHECK(detail::extent_arena::order_for(4) == 2);
  CHECK(detail::extent_arena::order_for(5) == 3);
  CHECK(detail::extent_arena::order_for(512) == 9);
  auto taken = std::vector<std::pair<std::uint32_t, std::uint32_t>>{};
  auto used = std::set<std::uint32_t>{};
  for (std::uint32_t i = 0;; ++i) {
    auto const order = 2 + i % 6;
    auto const place = arena.allocate(order);
    if (place == detail::extent_arena::none) { break; }
    CHECK(place % (1U << order) == 0);
    for (auto slot = place; slot < place + (1U << order); ++slot) { REQUIRE(used.insert(slot).second); }
    taken.emplace_back(place, order);
  }
  CHECK(used.size() + arena.free_slots() == 2048);
  for (auto const& [place, order] : taken) { arena.free(place, order); }
  CHECK(arena.free_slots() == 2048);
  for (auto i = 0; i < 4; ++i) { CHECK(arena.allocate(9) != detail::extent_arena::none); } // whole again
  CHECK(arena.allocate(2) == detail::extent_arena::none);
}
