// SPDX-License-Identifier: Apache-2.0
// Sequences over a pool and an index, without a cache: the numbered post-conditions of each operation.
#include <quire/block/block_pool.hpp>
#include <quire/prefix/flat_index.hpp>
#include <quire/prefix/run_tree.hpp>
#include <quire/sequence/sequence_ops.hpp>

#include "storage/storage_fixture.hpp"
#include "support/catch_compat.hpp"
#include "support/throwing_contract.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace {
using namespace quire;
using quire_test::ascending;
using quire_test::contract_violation;
using quire_test::joined;
using quire_test::numbers;
using quire_test::text;
using list = std::vector<std::uint32_t>;

template <class Index>
struct workshop {
  block_pool<> pool{block_count{32}};
  Index index{block_count{32}, token_count{4}};
  sequence_ops<block_pool<>, Index> ops{pool, index, block_geometry{token_count{4}}};
  node_id root = index.open_root({});

  auto fresh(std::uint32_t n) -> std::vector<block_id> {
    auto out = std::vector<block_id>(n);
    REQUIRE(pool.try_allocate(out) == block_count{n});
    return out;
  }
  void attach(sequence_state& s, text const& prompt, bool skip_writes = true) {
    auto const found = index.match(root, prompt, s.table.open(static_cast<std::uint32_t>(prompt.size() / 4)));
    auto const length = static_cast<std::uint32_t>(prompt.size());
    ops.attach(s, found, std::min(found.blocks.value() * ops.geometry().block_tokens(), length - 1), skip_writes);
  }
  auto reclaiming() {
    return [this](block_id b) { pool.reclaim(b); };
  }
  auto append(sequence_state& s, text const& tokens) -> settle_result {
    auto const q = static_cast<std::uint32_t>(tokens.size());
    ops.reserve(s, q, fresh(ops.blocks_for(s, q)));
    return ops.commit(s, tokens, reclaiming());
  }
};
} // namespace

#define QUIRE_TEST_WORKSHOPS workshop<run_tree<>>, workshop<flat_index<>>

TEMPLATE_TEST_CASE("S26: reserve makes room and changes no length", "", QUIRE_TEST_WORKSHOPS) {
  auto w = TestType{};
  auto s = sequence_state{};
  w.attach(s, ascending(9));
  CHECK(w.ops.blocks_for(s, 9) == 3);
  auto const before = w.pool.free_blocks();
  auto const blocks = w.fresh(3);
  w.ops.reserve(s, 9, blocks);
  CHECK(s.reserved == 9);                        // (1)
  CHECK(s.committed == 0);                       // (2)
  CHECK_FALSE(static_cast<bool>(s.copy_source)); // (3)
  CHECK(s.table.size() == 3);
  CHECK_THROWS_AS(w.ops.reserve(s, 1, {}), contract_violation); // one plan at a time
  w.ops.roll_back(s, [&](block_id b) {
    CHECK(w.pool.release(b));
    w.pool.retire_and_reclaim(b);
  });
  CHECK(s.reserved == 0);
  CHECK(s.table.size() == 0);
  CHECK(w.pool.free_blocks() == before);
  w.ops.drop(s, w.reclaiming());
}

TEMPLATE_TEST_CASE("S26: commit advances over what was reserved and publishes what is full", "", QUIRE_TEST_WORKSHOPS) {
  auto w = TestType{};
  auto s = sequence_state{};
  w.attach(s, ascending(9));
  auto const first = w.append(s, ascending(9));
  CHECK(s.committed == s.reserved); // (1)
  CHECK(s.committed == 9);
  CHECK(s.known == 9);
  CHECK(first.published == 2);
  CHECK(first.duplicates == 0);
  CHECK(s.pinned == 2);
  CHECK(w.pool.state(s.table[1]) == block_state::published);
  CHECK(w.pool.holders(s.table[1]) == 0); // the hold has become the pin
  CHECK(w.pool.state(s.table[2]) == block_state::private_);
  CHECK(w.append(s, {10, 11, 12}).published == 1);
  w.ops.drop(s, w.reclaiming());
  CHECK(w.index.evictable() == block_count{3});
}

TEMPLATE_TEST_CASE("S22: attach sets the length to at most P - 1", "", QUIRE_TEST_WORKSHOPS) {
  auto w = TestType{};
  auto s = sequence_state{};
  w.attach(s, ascending(8));
  w.append(s, ascending(8));
  w.ops.drop(s, w.reclaiming());
  for (auto const skip : {true, false}) {
    auto t = sequence_state{};
    w.attach(t, ascending(8), skip);
    CHECK(t.committed == 7); // (1)
    CHECK(t.known == 7);
    CHECK(t.reserved == 7);
    CHECK(t.table.size() == 2);
    CHECK((t.skips() == 1) == skip);
    CHECK(w.ops.must_copy(t) == !skip);
    CHECK(w.ops.blocks_for(t, 1) == (skip ? 0 : 1));
    CHECK(w.ops.blocks_for(t, 2) == (skip ? 1 : 2));
    w.ops.drop(t, w.reclaiming());
  }
}

TEMPLATE_TEST_CASE("S23: roll back after a copy was planned restores the table", "", QUIRE_TEST_WORKSHOPS) {
  auto w = TestType{};
  auto s = sequence_state{};
  auto reader = sequence_state{};
  w.attach(s, ascending(6));
  w.append(s, ascending(6));
  w.ops.fork(s, reader, 6);
  auto const table = numbers(reader.table.blocks());
  CHECK(w.ops.must_copy(reader));
  CHECK_FALSE(w.ops.must_copy(s));
  auto const own = w.fresh(1);
  w.ops.reserve(reader, 1, own);
  CHECK(reader.copy_source == block_id{table[1]}); // reserve (3)
  CHECK(reader.table[1] == own[0]);
  w.ops.roll_back(reader, [&](block_id b) {
    CHECK(b == own[0]);
    CHECK(w.pool.release(b));
    w.pool.retire_and_reclaim(b);
  });
  CHECK(numbers(reader.table.blocks()) == table);
  CHECK(w.pool.holders(block_id{table[1]}) == 2);
  w.ops.drop(reader, w.reclaiming());
  w.ops.drop(s, w.reclaiming());
}

TEMPLATE_TEST_CASE("B7: a fork has the length asked for and shares every block", "", QUIRE_TEST_WORKSHOPS) {
  for (std::uint32_t at = 0; at <= 10; ++at) {
    auto w = TestType{};
    auto s = sequence_state{};
    auto child = sequence_state{};
    w.attach(s, ascending(10));
    w.append(s, ascending(10));
    w.ops.fork(s, child, at);
    CHECK(child.committed == at); // (1)
    CHECK(child.table.size() == (at + 3) / 4);
    for (std::uint32_t j = 0; j < child.table.size(); ++j) { CHECK(child.table[j] == s.table[j]); } // (2)
    w.ops.drop(s, w.reclaiming());
    w.append(child, {99});
    CHECK(w.index.tokens(child.table[at / 4])[at % 4] == 99);
    w.ops.drop(child, w.reclaiming());
    CHECK(w.pool.free_blocks().value() + w.index.cached().value() == 32);
  }
  auto w = TestType{};
  auto s = sequence_state{};
  auto child = sequence_state{};
  w.attach(s, ascending(10));
  CHECK_THROWS_AS(w.ops.fork(s, child, 1), contract_violation); // beyond the length
  w.ops.drop(s, w.reclaiming());
}

TEMPLATE_TEST_CASE("B6: would_free foretells what a truncation gives back", "", QUIRE_TEST_WORKSHOPS) {
  for (std::uint32_t length = 0; length < 15; ++length) {
    for (auto const forked : {0U, 5U, 9U, 15U}) {
      auto w = TestType{};
      auto s = sequence_state{};
      auto other = sequence_state{};
      w.attach(s, ascending(15));
      w.append(s, ascending(15));
      w.ops.fork(s, other, forked);
      auto const available = w.pool.free_blocks().value() + w.index.evictable().value();
      auto const told = w.ops.would_free(s, length);
      auto const copies = w.ops.would_copy(s, length);
      w.ops.truncate(s, length, w.reclaiming());
      CHECK(w.pool.free_blocks().value() + w.index.evictable().value() == available + told);
      CHECK(w.ops.must_copy(s) == copies);
      CHECK(s.committed == length);
      w.append(s, {77, 78});
      w.ops.drop(s, w.reclaiming());
      w.ops.drop(other, w.reclaiming());
      CHECK(w.pool.free_blocks().value() + w.index.cached().value() == 32);
    }
  }
}

TEMPLATE_TEST_CASE("S26: drop leaves an empty state, twins and holds included", "", QUIRE_TEST_WORKSHOPS) {
  auto w = TestType{};
  auto a = sequence_state{};
  auto b = sequence_state{};
  auto c = sequence_state{};
  w.attach(a, ascending(9));
  w.attach(b, ascending(9));
  w.append(a, ascending(9));
  CHECK(w.append(b, ascending(9)).duplicates == 2); // its own copies stay private
  CHECK(b.twins == 2);
  w.ops.fork(b, c, 9);
  CHECK(c.twins == 2);
  w.ops.drop(b, w.reclaiming());
  CHECK(w.index.tokens(c.table[1])[0] == 5);
  w.ops.drop(c, w.reclaiming());
  w.ops.drop(a, w.reclaiming());
  for (auto const* s : {&a, &b, &c}) {
    CHECK(s->table.size() == 0);
    CHECK(s->pinned + s->twins + s->committed + s->known + s->reserved == 0);
    CHECK_FALSE(static_cast<bool>(s->pin));
  }
  CHECK(w.pool.free_blocks() == block_count{30});
  CHECK(w.index.evictable() == block_count{2});
}

TEMPLATE_TEST_CASE("B17: resolve writes the tokens of private blocks and publishes what is full", "",
                   QUIRE_TEST_WORKSHOPS) {
  auto w = TestType{};
  auto s = sequence_state{};
  w.attach(s, ascending(9));
  w.ops.reserve(s, 9, w.fresh(3));
  CHECK(w.ops.commit(s, {}, w.reclaiming()).published == 0);
  CHECK(s.known == 0);
  CHECK(w.ops.resolve(s, ascending(3)).published == 0);
  CHECK(w.ops.resolve(s, ascending(5, 4)).published == 2);
  CHECK_THROWS_AS(w.ops.resolve(s, ascending(2, 9)), contract_violation); // more than was committed
  CHECK(s.known == 8);
  w.ops.drop(s, w.reclaiming());
  auto t = sequence_state{};
  w.attach(t, ascending(9));
  CHECK(t.committed == 8);
  w.ops.drop(t, w.reclaiming());
}
