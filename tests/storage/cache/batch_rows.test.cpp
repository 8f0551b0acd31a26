// SPDX-License-Identifier: Apache-2.0
// The persistent buffer of a batch view: what it shows against the tables, and what a device copy that applies only the
// changes ends up with.
#include <quire/cache/detail/batch_rows.hpp>
#include <quire/core/types.hpp>
#include <quire/sequence/block_geometry.hpp>
#include <quire/sequence/block_table.hpp>
#include <quire/view/batch_view.hpp>
#include <quire/view/validate.hpp>

#include "support/catch_compat.hpp"
#include "support/counting_allocator.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace {
using namespace quire;
using detail::batch_rows;
constexpr std::uint32_t p_b = 4;
auto const geometry = block_geometry{token_count{p_b}};

struct item {
  block_table const* table;
  std::uint32_t committed;
  std::uint32_t q = 1;
  std::uint32_t skips = 0;
};
// A device's copy of the padded table.
struct mirror {
  std::vector<std::int32_t> table;
  std::int32_t columns = 0;
  void apply(batch_view const& v) {
    if (v.whole_table || columns != v.max_blocks) {
      table.assign(v.block_table.begin(), v.block_table.end());
      columns = v.max_blocks;
      return;
    }
    for (auto const& d : v.delta) { table[static_cast<std::size_t>(d.row * columns + d.column)] = d.block; }
  }
};
auto table_of(std::vector<std::uint32_t> const& blocks, std::uint64_t version) -> block_table {
  auto t = block_table{};
  t.version = version;
  for (auto const b : blocks) { t.blocks.emplace_back(b); }
  return t;
}
auto columns_of(std::vector<item> const& items) -> std::uint32_t {
  std::uint32_t out = 1;
  for (auto const& i : items) { out = std::max(out, i.table->size() - i.table->view_begin); }
  return out;
}
// One step of \p items, whose tables stand as the step leaves them.
auto step(batch_rows& rows, std::vector<item> const& items, std::uint32_t columns = 0) -> batch_view {
  rows.begin(std::max(columns, columns_of(items)));
  for (auto const& i : items) {
    rows.make_ready(i.q);
    rows.expect(i.q);
  }
  for (auto const& i : items) { rows.add(*i.table, i.committed, i.q, i.skips); }
  rows.end();
  return rows.view(0);
}
void check(batch_view const& v, std::vector<item> const& items, mirror& device) {
  REQUIRE(validate(v, {.pool = block_count{100'000}, .holes = true}).has_value());
  REQUIRE(v.rows == static_cast<std::int32_t>(items.size()));
  device.apply(v);
  REQUIRE(std::equal(device.table.begin(), device.table.end(), v.block_table.begin(), v.block_table.end()));
  std::size_t at = 0;
  for (std::size_t r = 0; r < items.size(); ++r) {
    auto const& [t, committed, q, skips] = items[r];
    CAPTURE(r);
    REQUIRE(v.length[r] == static_cast<std::int32_t>(committed + q));
    REQUIRE(v.first_position[r] == static_cast<std::int32_t>(t->view_begin * p_b));
    auto const* cells = &v.block_table[r * static_cast<std::size_t>(v.max_blocks)];
    for (std::uint32_t c = 0; c < static_cast<std::uint32_t>(v.max_blocks); ++c) {
      auto const j = t->view_begin + c;
      auto const block = j < t->size() && t->blocks[j] ? static_cast<std::int32_t>(t->blocks[j].value()) : -1;
      REQUIRE(cells[c] == block);
    }
    REQUIRE(v.query_start[r] == static_cast<std::int32_t>(at));
    for (std::uint32_t i = 0; i < q; ++i, ++at) {
      REQUIRE(v.position[at] == static_cast<std::int32_t>(committed + i));
      REQUIRE(v.slot[at] == (i < skips ? -1 : t->slot(geometry, token_pos{committed + i})));
    }
  }
  REQUIRE(v.query_start[items.size()] == static_cast<std::int32_t>(at));
  REQUIRE(v.slot.size() == at);
  for (auto c = items.size() * static_cast<std::size_t>(v.max_blocks); c < v.block_table.size(); ++c) {
    REQUIRE(v.block_table[c] == -1); // rows beyond the step show nothing
  }
}
} // namespace

TEST_CASE("S19: a row shows its table, its new positions and their slots, block by block") {
  auto rows = batch_rows{4, geometry};
  auto device = mirror{};
  auto const a = table_of({7, 2, 9}, 1);
  auto const b = table_of({5}, 2);
  auto const items = std::vector<item>{{&a, 3, 7}, {&b, 1, 3, 2}};
  auto const v = step(rows, items);
  CHECK(v.whole_table);
  CHECK(v.slot[0] == 7 * 4 + 3);
  CHECK(v.slot[1] == 2 * 4);
  CHECK(v.slot[7] == -1); // stored already
  CHECK(v.slot[9] == 5 * 4 + 3);
  check(v, items, device);
}

TEST_CASE("S19: the same sequence in the same row costs its new blocks only") {
  auto rows = batch_rows{4, geometry};
  auto device = mirror{};
  auto a = table_of({7, 2}, 1);
  auto b = table_of({5}, 2);
  check(step(rows, {{&a, 7}, {&b, 2}}, 8), {{&a, 7}, {&b, 2}}, device);
  auto v = step(rows, {{&a, 6}, {&b, 3}}, 8);
  CHECK_FALSE(v.whole_table);
  CHECK(v.delta.empty());
  a.blocks.emplace_back(9U);
  v = step(rows, {{&a, 8}, {&b, 3}}, 8);
  CHECK(v.delta.size() == 1);
  check(v, {{&a, 8}, {&b, 3}}, device);
  std::swap(a, b); // they change rows
  v = step(rows, {{&a, 3}, {&b, 8}}, 8);
  CHECK(v.delta.size() == 6);
  check(v, {{&a, 3}, {&b, 8}}, device);
  v = step(rows, {{&a, 3}}, 8); // the other one is not in the step
  CHECK(v.delta.size() == 3);
  check(v, {{&a, 3}}, device);
}

TEST_CASE("S19: a block that was released or exchanged is shown, whatever stood there before") {
  auto rows = batch_rows{2, geometry};
  auto device = mirror{};
  auto a = table_of({7, 2, 9}, 1);
  check(step(rows, {{&a, 11}}, 8), {{&a, 11}}, device);
  a.blocks[0] = block_id::none();
  a.released_end = 1;
  a.blocks.emplace_back(4U);
  auto v = step(rows, {{&a, 12}}, 8);
  CHECK(v.delta.size() == 2);
  check(v, {{&a, 12}}, device);
  a.blocks[1] = block_id::none();
  a.released_end = a.view_begin = 2; // the view moves on: all cells may change
  a.version = 0;
  v = step(rows, {{&a, 13}}, 8);
  check(v, {{&a, 13}}, device);
  a.version = 5; // told anew
  check(step(rows, {{&a, 13}}, 8), {{&a, 13}}, device);
  a.blocks[3] = block_id{11}; // a copy
  a.version = 6;
  v = step(rows, {{&a, 14}}, 8);
  CHECK(v.delta.size() == 1);
  check(v, {{&a, 14}}, device);
}

TEST_CASE("S19: a table that grows wider than the buffer, or a view that no device has seen, is sent whole") {
  auto rows = batch_rows{2, geometry};
  auto device = mirror{};
  auto a = table_of({7}, 1);
  check(step(rows, {{&a, 3}}), {{&a, 3}}, device);
  for (auto const b : {8U, 9U, 10U}) { a.blocks.emplace_back(b); }
  auto v = step(rows, {{&a, 15}});
  CHECK(v.whole_table);
  CHECK(v.max_blocks >= 4);
  check(v, {{&a, 15}}, device);
  CHECK_FALSE(step(rows, {{&a, 15}}).whole_table);
  rows.invalidate(); // dropped after its launch, or blocks have moved
  for (auto& block : a.blocks) { block = block_id{block.value() + 20}; }
  v = step(rows, {{&a, 15}});
  CHECK(v.whole_table);
  check(v, {{&a, 15}}, device);
}

TEST_CASE("S19: the short path of one position writes what the general one would") {
  auto a = table_of({7, 2}, 1);
  auto b = table_of({5, 6}, 2);
  for (auto* const t : {&a, &b}) { t->slot_shift = (std::int64_t{t->blocks[1].value()} - 1) * p_b; }
  auto rows = batch_rows{4, geometry};
  auto device = mirror{};
  check(step(rows, {{&a, 5}, {&b, 4}}, 4), {{&a, 5}, {&b, 4}}, device);
  rows.begin(4); // each shown already
  REQUIRE(rows.shows(0, a));
  REQUIRE(rows.shows(1, b));
  CHECK_FALSE(rows.shows(1, a));
  rows.expect(2);
  auto const writer = rows.appender();
  writer.write(0, 6, 6 + a.slot_shift);
  writer.write(1, 5, 5 + b.slot_shift);
  rows.take(2);
  rows.end();
  CHECK(rows.view(0).delta.empty());
  check(rows.view(0), {{&a, 6}, {&b, 5}}, device);
  rows.begin(4); // one opens a block
  rows.make_ready(1);
  rows.expect(1);
  rows.expect(1);
  a.blocks.emplace_back(9U);
  a.slot_shift = (9 - 2) * std::int64_t{p_b};
  rows.add_next(a, 8);
  rows.add_next(b, 6);
  rows.end();
  CHECK(rows.view(0).delta.size() == 1);
  check(rows.view(0), {{&a, 8}, {&b, 6}}, device);
}

TEST_CASE("S19: what a plan made ready a launch writes without memory") {
  auto rows = batch_rows{4, geometry};
  auto a = table_of({7}, 1);
  auto b = table_of({1, 2, 3, 4, 5, 6, 7, 8}, 2);
  rows.begin(8);
  for (auto const q : {1U, 30U}) {
    rows.make_ready(q);
    rows.expect(q);
  }
  CHECK(quire_test::allocations_of([&] {
          rows.add(a, 3, 1, 0);
          rows.add(b, 2, 30, 0);
          rows.end();
        }) == 0);
  CHECK(rows.capacity() == 4);
}

TEST_CASE("S19: where more has changed than a list is worth, the whole table is sent, and no memory is taken") {
  auto rows = batch_rows{4, geometry};
  auto device = mirror{};
  auto versions = std::uint64_t{0};
  auto const tables_from = [&](std::uint32_t first) {
    auto out = std::vector<block_table>(4);
    for (auto& t : out) {
      for (auto i = 0; i < 400; ++i) { t.blocks.emplace_back(first++); }
      t.version = ++versions;
    }
    return out;
  };
  auto const items_of = [](std::vector<block_table> const& tables) {
    auto out = std::vector<item>{};
    for (auto const& t : tables) { out.push_back({&t, 400 * p_b - 1}); }
    return out;
  };
  auto const before = tables_from(0);
  check(step(rows, items_of(before), 400), items_of(before), device);
  auto const after = tables_from(5000);
  auto const items = items_of(after);
  CHECK(quire_test::allocations_of([&] { static_cast<void>(step(rows, items, 400)); }) == 0);
  auto const v = rows.view(0);
  CHECK(v.whole_table);
  CHECK(v.delta.size() == 1024); // of 1600 changes
  check(v, items, device);
  auto const same = step(rows, items, 400);
  CHECK_FALSE(same.whole_table);
  CHECK(same.delta.empty());
}

TEST_CASE("S19: memory that fails leaves what a view shows") {
  auto rows = batch_rows{2, geometry};
  auto device = mirror{};
  auto const a = table_of({7, 3}, 1);
  auto const items = std::vector<item>{{&a, 5}};
  check(step(rows, items), items, device);
  {
    auto const guard = quire_test::failing_allocation{1};
    CHECK_THROWS_AS(rows.begin(1000), std::bad_alloc);
  }
  auto const v = rows.view(0);
  CHECK(v.block_table[0] == 7);
  CHECK(v.block_table[1] == 3);
  check(step(rows, items), items, device);
}

TEST_CASE("S19: a device that applies only the changes never differs, whatever sequences do") {
  for (auto seed = 1U; seed <= 30; ++seed) {
    auto random = std::mt19937{seed};
    auto const below = [&](std::size_t n) { return static_cast<std::uint32_t>(random() % n); };
    auto rows = batch_rows{3, geometry};
    auto device = mirror{};
    auto versions = std::uint64_t{0};
    auto blocks = std::uint32_t{0}; // never twice
    auto tables = std::vector<block_table>(5);
    auto lengths = std::vector<std::uint32_t>(5);
    for (auto& t : tables) { t.version = ++versions; }
    for (auto round = 0; round < 100; ++round) {
      CAPTURE(seed, round);
      auto order = std::vector<std::uint32_t>{0, 1, 2, 3, 4};
      if (below(3) == 0) { std::shuffle(order.begin(), order.end(), random); }
      auto items = std::vector<item>{};
      for (std::uint32_t r = 0, n = 1 + below(3); r < n; ++r) {
        auto const s = order[r];
        auto& t = tables[s];
        if (below(12) == 0) { // another sequence
          t = {};
          t.version = ++versions;
          lengths[s] = 0;
        }
        auto const q = 1 + below(6);
        while (t.size() < geometry.blocks(lengths[s] + q)) { t.blocks.emplace_back(blocks++); }
        auto const free_end = std::min(geometry.index(lengths[s]), t.released_end + below(3));
        for (auto j = t.released_end; j < free_end; ++j) { t.blocks[j] = block_id::none(); }
        t.released_end = free_end;
        if (below(6) == 0) {
          t.view_begin = t.released_end;
          t.version = ++versions;
        }
        if (below(6) == 0) { // a copy
          t.blocks[geometry.index(lengths[s])] = block_id{blocks++};
          t.version = ++versions;
        }
        items.push_back({&t, lengths[s], q, below(2) * below(q + 1)});
      }
      check(step(rows, items), items, device);
      for (std::uint32_t r = 0; r < items.size(); ++r) { lengths[order[r]] += below(4) == 0 ? 0 : items[r].q; }
      if (below(15) == 0) { rows.invalidate(); }
    }
  }
}
