// SPDX-License-Identifier: Apache-2.0
// Rows follow the request and never identify it (S19); padded, compressed and plain tables say the same (S20).
#include <quire/cache/kv_cache.hpp>
#include <quire/view/csr.hpp>
#include <quire/view/mirror.hpp>

#include "storage/storage_fixture.hpp"
#include "support/catch_compat.hpp"
#include "support/throwing_contract.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

namespace {
using namespace quire;
using quire_test::ascending;
using quire_test::engine;
using quire_test::joined;
using quire_test::pool_of;
using quire_test::text;

// A device copy per buffer, kept up to date with deltas only.
struct mirrors {
  std::map<std::int32_t, std::vector<std::int32_t>> tables;
  std::size_t whole = 0;

  void follow(batch_view const& view) {
    auto& copy = tables[view.buffer];
    whole += view.whole_table ? 1U : 0U;
    if (view.whole_table) { copy.assign(view.block_table.size(), 12345); }
    update_mirror(view, copy);
    CHECK(std::equal(copy.begin(), copy.end(), view.block_table.begin(), view.block_table.end()));
  }
};

// The table of a view: rows in use are their requests' tables, and nothing else is in it.
template <class Requests>
void compare(batch_view const& view, Requests const& rows) {
  REQUIRE(view.rows == static_cast<std::int32_t>(rows.size()));
  auto expected = std::vector<std::int32_t>(view.block_table.size(), -1);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    auto const blocks = rows[r]->seq.blocks();
    for (std::size_t j = 0; j < blocks.size(); ++j) {
      expected[r * static_cast<std::size_t>(view.max_blocks) + j] = static_cast<std::int32_t>(blocks[j].value());
    }
  }
  CHECK(std::equal(expected.begin(), expected.end(), view.block_table.begin(), view.block_table.end()));
}
} // namespace

TEST_CASE("S19: rows that are permuted, swapped, joined and left keep their caches, deltas rebuild the table") {
  auto e = engine<>{pool_of(256)};
  auto random = std::mt19937{20260101};
  auto copies = mirrors{};
  auto requests = std::vector<std::unique_ptr<engine<>::request>>{};
  token_id fresh = 1000;
  auto const run = [&](std::vector<engine<>::work> const& work, std::vector<engine<>::request*> const& rows) {
    auto planned = e.plan(work);
    e.execute(planned, work);
    compare(planned.view(), rows);
    copies.follow(planned.view());
    e.commit(std::move(planned), work);
  };
  for (auto step = 0; step < 120; ++step) {
    if (requests.size() < 6 && random() % 3 == 0) { // join
      fresh += 100;
      requests.push_back(std::make_unique<engine<>::request>(e.admit(ascending(1 + random() % 9, fresh), 40)));
      run({{requests.back().get(), ascending(3, fresh)}}, {requests.back().get()});
    }
    if (requests.size() > 1 && random() % 5 == 0) { // leave
      auto const i = random() % requests.size();
      e.release(*requests[i]);
      requests.erase(requests.begin() + static_cast<std::ptrdiff_t>(i));
    }
    std::shuffle(requests.begin(), requests.end(), random); // permute
    auto work = std::vector<engine<>::work>{};
    auto rows = std::vector<engine<>::request*>{};
    for (auto const& r : requests) {
      if (random() % 4 == 0) { continue; } // sits out
      if (r->seq.length().value() + 2 > 40) { continue; }
      work.push_back({r.get(), ascending(1 + random() % 2, fresh)});
      rows.push_back(r.get());
    }
    if (!work.empty()) { run(work, rows); }
  }
  CHECK(copies.whole < 12); // the two buffers were sent whole when they were new or grew, and patched otherwise
  for (auto const& r : requests) { e.read(*r); }
}

TEST_CASE("S19: the result of a request does not depend on its row or its neighbours") {
  auto const prompts = std::vector{ascending(5, 100), ascending(9, 200), ascending(3, 300)};
  auto const tables = [&](std::vector<std::size_t> const& order) {
    auto e = engine<>{pool_of(64)};
    auto r = std::vector<engine<>::request>{};
    for (auto const& prompt : prompts) { r.push_back(e.serve(prompt, 8)); }
    auto out = std::vector<std::vector<std::uint64_t>>(3);
    for (token_id t = 0; t < 6; ++t) {
      auto work = std::vector<engine<>::work>{};
      for (auto const i : order) { work.push_back({&r[i], {t}}); }
      e.step(work);
    }
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t p = 0; p < r[i].tokens.size(); ++p) {
        out[i].push_back(e.device[r[i].seq.blocks()[p / 4].value() * 4 + p % 4]);
      }
    }
    return out;
  };
  auto const one = tables({0, 1, 2});
  CHECK(tables({2, 0, 1}) == one);
  CHECK(tables({1, 2, 0}) == one);
}

TEST_CASE("S19: vacated rows show nothing, and what is appended is all that changes") {
  auto options = pool_of(64);
  options.batch_buffers = 1;
  auto e = engine<>{options};
  auto a = e.serve(ascending(3, 10), 20);
  auto b = e.serve(ascending(4, 20), 20);
  auto c = e.serve(ascending(5, 30), 20);
  e.step({{&a, {1}}, {&b, {1}}, {&c, {1}}});
  {
    auto const work = std::vector<engine<>::work>{{&a, {2}}, {&b, {2}}, {&c, {2}}};
    auto planned = e.plan(work); // a needs a second block; the others have room
    e.execute(planned, work);
    CHECK_FALSE(planned.view().whole_table);
    REQUIRE(planned.view().delta.size() == 1);
    CHECK(planned.view().delta[0] == table_delta{0, 1, static_cast<std::int32_t>(a.seq.blocks()[1].value())});
    e.commit(std::move(planned), work);
  }
  e.release(b);
  auto const work = std::vector<engine<>::work>{{&a, {3}}, {&c, {3}}}; // c moves up
  auto planned = e.plan(work);
  e.execute(planned, work);
  auto const view = planned.view();
  CHECK(view.rows == 2);
  for (std::int32_t column = 0; column < view.max_blocks; ++column) {
    CHECK(view.block_table[static_cast<std::size_t>(2 * view.max_blocks + column)] == -1);
  }
  e.commit(std::move(planned), work);
}

TEST_CASE("S19: a launched plan that was dropped makes the next view of its buffer a whole table") {
  auto options = pool_of(64);
  options.batch_buffers = 1;
  auto e = engine<>{options};
  auto copies = mirrors{};
  auto a = e.serve(ascending(4), 20);
  {
    auto dropped = e.plan({{&a, {5}}}); // its deltas never reached a device
    dropped.launch();
  }
  auto planned = e.plan({{&a, {5}}});
  planned.launch();
  CHECK(planned.view().whole_table);
  copies.follow(planned.view());
}

TEST_CASE("case 76: a row that is used again knows nothing of who sat in it before") {
  auto options = pool_of(64);
  options.batch_buffers = 1;
  auto e = engine<>{options};
  auto a = e.serve(ascending(20, 10), 20);
  auto b = e.serve(ascending(4, 20), 20);
  auto c = e.serve(ascending(6, 30), 20);
  e.step({{&b, {1}}, {&c, {1}}, {&a, {1}}});
  e.release(a);
  e.step({{&c, {2}}, {&b, {2}}}); // condensed
  auto d = e.serve(ascending(2, 40), 20);
  auto const work = std::vector<engine<>::work>{{&c, {3}}, {&b, {3}}, {&d, {3}}};
  auto planned = e.plan(work);
  e.execute(planned, work);
  compare(planned.view(), std::vector{&c, &b, &d});
  e.commit(std::move(planned), work);
}

TEST_CASE("S20: padded rows, compressed rows and plain lists say the same") {
  auto e = engine<>{pool_of(64)};
  auto a = e.serve(ascending(3, 10), 20);
  auto b = e.serve(ascending(8, 20), 20);
  auto c = e.serve(ascending(13, 30), 20);
  auto const work = std::vector<engine<>::work>{{&c, {1}}, {&a, {1}}, {&b, {1, 2, 3}}};
  auto planned = e.plan(work);
  e.execute(planned, work);
  auto const& view = planned.view();
  auto indptr = std::vector<std::int32_t>(4);
  auto indices = std::vector<std::int32_t>(csr_indices(view));
  auto last = std::vector<std::int32_t>(3);
  auto const csr = export_csr(view, {.indptr = indptr, .indices = indices, .last_block_length = last});
  REQUIRE(validate(csr, {.pool = e.now().capacity}).has_value());
  for (std::size_t r = 0; r < work.size(); ++r) {
    auto const plain = quire_test::numbers(work[r].of->seq.blocks()); // the ragged form: one list per request
    auto const row = static_cast<std::int32_t>(r);
    auto const padded = view.blocks_of_row(row);
    auto const compressed = csr.indices.subspan(static_cast<std::size_t>(csr.indptr[r]),
                                                static_cast<std::size_t>(csr.indptr[r + 1] - csr.indptr[r]));
    REQUIRE(padded.size() == plain.size());
    REQUIRE(compressed.size() == plain.size());
    for (std::size_t j = 0; j < plain.size(); ++j) {
      CHECK(padded[j] == static_cast<std::int32_t>(plain[j]));
      CHECK(compressed[j] == static_cast<std::int32_t>(plain[j]));
    }
    auto const length = static_cast<std::int32_t>(work[r].of->tokens.size() + work[r].ids.size());
    CHECK(view.row_length(row) == length);
    CHECK((csr.indptr[r + 1] - csr.indptr[r] - 1) * 4 + csr.last_block_length[r] == length);
  }
  e.commit(std::move(planned), work);
}

TEST_CASE("case 125: a view never reaches beyond the length, whatever lies in the rest of the block") {
  auto e = engine<>{pool_of(8)};
  for (auto& word : e.device) { word = 0xdead'dead'dead'deadULL; } // NaN of the toy
  auto r = e.serve(ascending(5), 8);
  e.read(r);
  auto planned = e.plan({{&r, {6}}});
  planned.launch();
  CHECK(planned.view().length[0] == 6);
  CHECK_THROWS_AS(planned.view().locate(0, token_pos{6}), quire_test::contract_violation);
}

TEST_CASE("case 126: a block that is used again may hold anything, every read is of this request's writes") {
  auto e = engine<>{pool_of(3)};
  for (auto round = 0; round < 10; ++round) {
    for (std::uint32_t b = 0; b < 3; ++b) { // whatever is free is poisoned
      if (e.cache.block_state_of(group_id{0}, block_id{b}) != block_state::free) { continue; }
      for (std::size_t i = 0; i < 4; ++i) { e.device[b * 4 + i] = ~std::uint64_t{0}; }
    }
    auto r = e.serve(ascending(5, 100 * round), 2);
    e.step({{&r, {7}}});
    e.read(r);
    e.release(r);
  }
}

TEST_CASE("case 126: with scrubbing every block is overwritten before its first use") {
  auto options = pool_of(8);
  options.scrub = scrub_rule::on_reuse;
  auto e = engine<>{options};
  auto r = e.admit(ascending(6), 4);
  auto planned = e.plan({{&r, ascending(6)}});
  auto const actions = planned.launch();
  REQUIRE(actions.size() == 2);
  for (std::size_t j = 0; j < 2; ++j) { CHECK(actions[j] == action::scrub_block(group_id{0}, r.seq.blocks()[j])); }
  e.perform(actions);
  e.forward(planned.view(), 0, {&r, ascending(6)});
  e.commit(std::move(planned), {{&r, ascending(6)}});
  auto twin = e.fork(r, 6);
  auto second = e.plan({{&twin, {70}}});
  auto const order = second.launch();
  REQUIRE(order.size() == 2);
  CHECK(order[0].kind == action_kind::scrub); // before the copy, or it would erase it
  CHECK(order[1].kind == action_kind::copy);
  e.perform(order);
  e.forward(second.view(), 0, {&twin, {70}});
  e.commit(std::move(second), {{&twin, {70}}});
  e.read(twin);
}

TEST_CASE("case 127: two sequences in one pool never see each other's cells, however lengths round up") {
  auto e = engine<>{pool_of(16)};
  auto a = e.serve(ascending(5, 100), 12);
  auto b = e.serve(ascending(7, 200), 12);
  for (token_id t = 0; t < 9; ++t) { e.step({{&a, {t}}, {&b, {t}}}); } // every readable position is compared
  auto planned = e.plan({{&a, {9}}, {&b, {9}}});
  planned.launch();
  auto const in_a = planned.view().blocks_of_row(0);
  for (auto const block : planned.view().blocks_of_row(1)) { CHECK(std::count(in_a.begin(), in_a.end(), block) == 0); }
}

TEST_CASE("case 128: unused cells are -1, which no pool hands out, and padding rows have no slot") {
  auto e = engine<>{pool_of(16)};
  auto r = e.serve(ascending(5), 12);
  auto planned = e.plan({{&r, {6}}});
  planned.launch();
  auto const& view = planned.view();
  CHECK(view.slot.size() == 1); // none for the padding rows
  CHECK(view.length.size() == 1);
  CHECK(view.capacity_rows() == 16);
  auto const used = view.blocks_of_row(0).size();
  for (std::size_t cell = used; cell < view.block_table.size(); ++cell) { CHECK(view.block_table[cell] == -1); }
}
