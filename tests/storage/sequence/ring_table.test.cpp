// SPDX-License-Identifier: Apache-2.0
// Ring storage against real slots that are written and read, and against full storage with a window mask.
#include <quire/attention/attention_extent.hpp>
#include <quire/attention/attention_params.hpp>
#include <quire/attention/oracle_attention.hpp>
#include <quire/core/config_error.hpp>
#include <quire/core/errc.hpp>
#include <quire/core/types.hpp>
#include <quire/model/attention_rule.hpp>
#include <quire/model/retention.hpp>
#include <quire/model/ring.hpp>
#include <quire/sequence/ring_table.hpp>

#include "support/catch_compat.hpp"
#include "support/counting_allocator.hpp"
#include "support/throwing_contract.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace {
using namespace quire;

auto ring_of(std::uint32_t capacity, std::uint32_t window, std::uint32_t sinks = 0) -> retention {
  return retention::ring(
      {.capacity = token_count{capacity}, .window = token_count{window}, .sinks = token_count{sinks}});
}
// A ring over blocks with scattered numbers.
auto table_of(retention const& ring, std::uint32_t block_tokens) -> ring_table {
  auto blocks = std::vector<block_id>{};
  for (std::uint32_t j = 0; j * block_tokens < ring.capacity.value(); ++j) { blocks.emplace_back(100 - 7 * j); }
  return ring_table{ring, token_count{block_tokens}, blocks};
}
void append_and_commit(ring_table& table, std::uint32_t n) {
  REQUIRE(table.append(token_count{n})->size() == token_count{n});
  table.commit();
}

// What a query sees, by the definition of the mask.
auto sees(std::uint32_t query, std::uint32_t key, std::uint32_t window, std::uint32_t sinks) -> bool {
  return key <= query && (key < sinks || query - key < window);
}

// Slots in which bytes stand: the position whose key was written there last. Nobody tells it what a ring is.
struct device {
  std::map<std::int64_t, std::uint32_t> memory;

  void write(ring_table const& table, std::uint32_t position) {
    auto const at = table.slot(token_pos{position});
    if (!at) { throw std::runtime_error{"a new position has no slot"}; }
    memory[*at] = position;
  }
  // Reads that find another position's key, or a visible key without a slot.
  [[nodiscard]] auto wrong_reads(ring_table const& table, std::uint32_t query, std::uint32_t window,
                                 std::uint32_t sinks) const -> std::uint32_t {
    auto wrong = std::uint32_t{0};
    for (std::uint32_t key = 0; key <= query; ++key) {
      if (!sees(query, key, window, sinks)) { continue; }
      auto const at = table.slot(token_pos{key});
      wrong += !at || memory.at(*at) != key ? 1U : 0U;
    }
    return wrong;
  }
  // True if every stored position is the one whose bytes stand there, and no position is stored twice.
  [[nodiscard]] auto agrees(ring_table const& table) const -> bool {
    auto seen = std::set<std::int64_t>{};
    for (auto const position : table.positions()) {
      if (position < 0) { continue; }
      auto const at = table.slot(token_pos{static_cast<std::uint32_t>(position)});
      if (!seen.insert(position).second || !at || memory.at(*at) != position) { return false; }
    }
    return true;
  }
};
} // namespace

TEST_CASE("S30: every position of every append is read back where it was written") {
  auto wraps = 0;
  for (std::uint32_t window = 1; window <= 8; ++window) {
    for (std::uint32_t sinks = 0; sinks <= 3; ++sinks) {
      for (std::uint32_t q = 1; q <= 5; ++q) {
        for (std::uint32_t const more : {0U, 2U}) {
          auto const ring = ring_of(sinks + window - 1 + q + more, window, sinks);
          auto const block = 1 + (window + sinks + q) % 4;
          auto table = table_of(ring, block);
          auto memory = device{};
          auto wrong = std::uint32_t{0};
          for (std::uint32_t length = 0; length < 64;) {
            auto const n = 1 + (length * 7 + window) % q; // any length up to q
            auto const added = table.append(token_count{n});
            if (!added || added->begin != token_pos{length} || added->size() != token_count{n}) {
              throw std::runtime_error{"another interval"};
            }
            for (auto p = length; p < length + n; ++p) { memory.write(table, p); }
            for (auto p = length; p < length + n; ++p) { wrong += memory.wrong_reads(table, p, window, sinks); }
            wraps += length % ring.capacity.value() + n > ring.capacity.value() ? 1 : 0;
            table.commit();
            length += n;
            wrong += table.length() != token_count{length} || !memory.agrees(table) ? 1U : 0U;
            wrong += table.present() != ring_present(token_count{length}, ring) ? 1U : 0U;
          }
          CAPTURE(window, sinks, q, more, block);
          REQUIRE(wrong == 0);
        }
      }
    }
  }
  CHECK(wraps > 500);
}

TEST_CASE("S30: an append takes what its first row can spare, and the caller splits the rest (case 62)") {
  // window 4, 7 tokens at once
  auto small = table_of(ring_of(4, 4), 4);
  CHECK(small.append_limit() == token_count{1});
  auto memory = device{};
  auto steps = 0;
  for (std::uint32_t left = 7; left > 0; ++steps) {
    auto const added = small.append(token_count{left});
    REQUIRE(added.has_value());
    REQUIRE(added->size() == token_count{1});
    memory.write(small, added->begin.value());
    REQUIRE(memory.wrong_reads(small, added->begin.value(), 4, 0) == 0);
    small.commit();
    left -= added->size().value();
  }
  CHECK(steps == 7);
  auto large = table_of(ring_of(10, 4), 4);
  CHECK(large.append(token_count{7})->size() == token_count{7});
  CHECK(large.append(token_count{1}).error() == errc::plan_open);
  large.commit();
  CHECK(large.append(token_count{0}).error() == errc::zero_tokens);
  CHECK(large.append(token_count{100})->size() == token_count{7});
}

TEST_CASE("case 61: a window that is just full has lost nothing") {
  auto table = table_of(ring_of(8, 8), 8);
  for (auto n = 0; n < 8; ++n) { append_and_commit(table, 1); }
  CHECK(std::vector<std::int64_t>(table.positions().begin(), table.positions().end()) ==
        std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7});
  append_and_commit(table, 1);
  CHECK(std::vector<std::int64_t>(table.positions().begin(), table.positions().end()) ==
        std::vector<std::int64_t>{8, 1, 2, 3, 4, 5, 6, 7}); // slot 0 is not position 0
  CHECK_FALSE(table.slot(token_pos{0}).has_value());
}

TEST_CASE("case 63: a ring is as large after many positions as before, whatever their number") {
  auto table = table_of(ring_of(8, 8), 8);
  for (auto n = 0; n < 1000; ++n) { append_and_commit(table, 1); }
  CHECK(table.positions().size() == 8);
  CHECK(table.present() == position_interval{token_pos{992}, token_pos{1000}});
  CHECK(table.append_limit() == token_count{1});
}

TEST_CASE("case 68: sinks are never overwritten") {
  auto table = table_of(ring_of(16, 4, 4), 4);
  for (auto n = 0; n < 40; ++n) { append_and_commit(table, 1); }
  for (std::uint32_t p = 0; p < 4; ++p) { CHECK(table.positions()[p] == p); }
  CHECK(table.slot(token_pos{2}) == 100 * 4 + 2);
  CHECK(table.slot(token_pos{28}) == 93 * 4); // 4 + (28 − 4) mod 12 = slot 4
}

TEST_CASE("case 65: a table that cannot hold the slots is refused when it is made") {
  auto const blocks = std::vector<block_id>(8, block_id{3});
  CHECK_THROWS_AS((ring_table{ring_of(1024, 900), token_count{32}, blocks}), config_error);
  CHECK_THROWS_AS((ring_table{ring_of(200, 100), token_count{32}, blocks}), config_error); // one too many
  CHECK_NOTHROW((ring_table{ring_of(256, 100), token_count{32}, blocks}));
  CHECK_NOTHROW((ring_table{ring_of(230, 100), token_count{32}, blocks})); // the last block is used in part
  CHECK_THROWS_AS((ring_table{ring_of(256, 100), token_count{0}, blocks}), config_error);
  CHECK_THROWS_AS((ring_table{retention::sliding_window(token_count{4}), token_count{32}, blocks}), config_error);
}

TEST_CASE("S30: attention over a ring equals full storage with a window mask") {
  auto random = std::uint64_t{7};
  auto const draw = [&] {
    random = random * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<double>(random >> 40U) / 8388608.0 - 1.0;
  };
  for (std::uint32_t window : {1U, 3U, 5U, 8U, 40U}) {
    for (std::uint32_t sinks : {0U, 1U, 3U}) {
      for (std::uint32_t q : {1U, 2U, 5U}) {
        auto const length = 30U;
        auto params = attention_params{.query_heads = 2, .kv_heads = 1, .key_width = 3, .value_width = 2, .scale = 0.6};
        params.rule = attention_rule::sink_window({.sinks = token_count{sinks}, .window = token_count{window}});
        auto keys = std::vector<double>(length * 3);
        auto values = std::vector<double>(length * 2);
        auto queries = std::vector<double>(length * 6);
        for (auto* numbers : {&keys, &values, &queries}) {
          for (auto& x : *numbers) { x = draw(); }
        }
        auto table = table_of(ring_of(sinks + window - 1 + q, window, sinks), 4);
        auto stored_keys = std::map<std::int64_t, std::vector<double>>{};
        auto stored_values = std::map<std::int64_t, std::vector<double>>{};
        for (std::uint32_t at = 0; at < length;) {
          auto const added = table.append(token_count{std::min(q, length - at)});
          REQUIRE(added.has_value());
          auto const n = added->size().value();
          for (auto p = at; p < at + n; ++p) {
            auto const slot = *table.slot(token_pos{p});
            stored_keys[slot] = {keys[3 * p], keys[3 * p + 1], keys[3 * p + 2]};
            stored_values[slot] = {values[2 * p], values[2 * p + 1]};
          }
          auto const extent = attention_extent::append({.cached = token_count{at}, .appended = token_count{n}});
          auto const query = [&](tensor_place const& x) { return queries[6 * (at + x.token) + 3 * x.head + x.dim]; };
          auto const full = oracle_attention(
              params, extent, query, [&](tensor_place const& x) { return keys[3 * x.token + x.dim]; },
              [&](tensor_place const& x) { return values[2 * x.token + x.dim]; });
          auto const ring = oracle_attention( // asks for visible positions only; one without a slot throws
              params, extent, query,
              [&](tensor_place const& x) { return stored_keys.at(table.slot(token_pos{x.token}).value()).at(x.dim); },
              [&](tensor_place const& x) {
                return stored_values.at(table.slot(token_pos{x.token}).value()).at(x.dim);
              });
          REQUIRE(ring.output == full.output); // the same numbers in the same order
          REQUIRE(ring.lse == full.lse);
          table.commit();
          at += n;
        }
      }
    }
  }
}

TEST_CASE("S30: a mask made of stored positions shows what the window shows") {
  auto const rule = attention_rule::sink_window({.sinks = token_count{2}, .window = token_count{4}});
  auto table = table_of(ring_of(9, 4, 2), 3); // appends of up to 4
  for (std::uint32_t at = 0; at < 40; at += 4) {
    REQUIRE(table.append(token_count{4}).has_value());
    for (auto query = at; query < at + 4; ++query) { // during the wrap, too
      auto visible = std::set<std::int64_t>{};
      for (auto const position : table.positions()) {
        if (position >= 0 && rule.visible(token_pos{query}, token_pos{static_cast<std::uint32_t>(position)})) {
          visible.insert(position);
        }
      }
      for (std::uint32_t key = 0; key <= query; ++key) {
        CHECK(visible.count(key) == (sees(query, key, 4, 2) ? 1U : 0U));
      }
    }
    table.commit();
  }
}

TEST_CASE("S30: going back ends at the earliest position whose query finds all it sees") {
  for (std::uint32_t window = 1; window <= 6; ++window) {
    for (std::uint32_t sinks = 0; sinks <= 3; ++sinks) {
      for (std::uint32_t spare = 0; spare <= 4; ++spare) {
        for (std::uint32_t length = 0; length <= 24; ++length) {
          for (std::uint32_t target = 0; target <= length; ++target) {
            auto table = table_of(ring_of(sinks + window + spare, window, sinks), 2);
            auto memory = device{};
            auto const grow = [&](std::uint32_t to) {
              while (table.length() < token_count{to}) {
                auto const at = table.length().value();
                static_cast<void>(table.append(token_count{1}));
                memory.write(table, at);
                table.commit();
              }
            };
            grow(length);
            auto const first_complete = [&](std::uint32_t from) { // brute force over what stands in the slots
              for (auto at = from;; ++at) {
                auto complete = true;
                for (std::uint32_t key = 0; key < at; ++key) {
                  complete = complete && (!sees(at, key, window, sinks) || table.slot(token_pos{key}).has_value());
                }
                if (complete) { return at; }
              }
            };
            auto const expected = first_complete(target);
            auto const asked = table.earliest_resumable(token_pos{target});
            auto const got = table.rewind(token_pos{target});
            auto wrong = !asked || !got || asked != got || got->value() != expected ? 1U : 0U;
            wrong += table.length() != token_count{expected} ? 1U : 0U;
            for (std::uint32_t p = expected; p < length; ++p) { wrong += table.slot(token_pos{p}) ? 1U : 0U; }
            for (std::uint32_t step = 0; step < 12; ++step) { // it goes on, and forgets nothing that is needed
              auto const at = table.length().value();
              static_cast<void>(table.append(token_count{1}));
              memory.write(table, at);
              wrong += memory.wrong_reads(table, at, window, sinks);
              table.commit();
              wrong += memory.agrees(table) ? 0U : 1U;
              if (step == 0 || step == 5) { // and back once more, across what was rewritten
                auto const further = expected - std::min(expected, 2U);
                auto const again = first_complete(further);
                wrong += table.rewind(token_pos{further}) == token_pos{again} ? 0U : 1U;
              }
            }
            CAPTURE(window, sinks, spare, length, target, expected);
            REQUIRE(wrong == 0);
          }
        }
      }
    }
  }
}

TEST_CASE("case 64: a rewind past what is stored says where it ended, and refuses without a change") {
  auto table = table_of(ring_of(8, 8), 8);
  for (auto n = 0; n < 20; ++n) { append_and_commit(table, 1); }
  CHECK(table.present() == position_interval{token_pos{12}, token_pos{20}});
  CHECK(table.earliest_resumable(token_pos{15}) == token_pos{19});
  CHECK(table.rewind(token_pos{21}).error() == errc::out_of_range);
  CHECK(table.length() == token_count{20});
  CHECK(table.rewind(token_pos{15}) == token_pos{19});
  CHECK(table.length() == token_count{19});
  CHECK(table.rewind(token_pos{0}) == token_pos{0}); // from the beginning nothing is needed
  CHECK(std::all_of(table.positions().begin(), table.positions().end(), [](auto p) { return p == -1; }));
}

TEST_CASE("S30: a dropped append leaves the slots as they were") {
  auto table = table_of(ring_of(9, 4, 2), 3);
  for (std::uint32_t length = 0; length < 30; ++length) {
    auto const before = std::vector<std::int64_t>(table.positions().begin(), table.positions().end());
    for (std::uint32_t n = 1; n <= 4; ++n) {
      REQUIRE(table.append(token_count{n}).has_value());
      CHECK(table.open());
      CHECK(table.rewind(token_pos{0}).error() == errc::plan_open);
      table.drop();
      CHECK(std::vector<std::int64_t>(table.positions().begin(), table.positions().end()) == before);
      CHECK(table.length() == token_count{length});
    }
    append_and_commit(table, 1);
  }
  CHECK_THROWS_AS(table.drop(), quire_test::contract_violation);
  CHECK_THROWS_AS(table.commit(), quire_test::contract_violation);
}

TEST_CASE("S30: a ring is never shared, and says why") {
  auto table = table_of(ring_of(8, 8), 8);
  append_and_commit(table, 1);
  auto const shared = table.share();
  REQUIRE_FALSE(shared.has_value());
  CHECK(shared.error() == errc::never_shared);
  CHECK(message(shared.error()).find("never shared") != std::string_view::npos);
  CHECK_FALSE(table.keeps().shareable());
}

TEST_CASE("S30: a ring allocates nothing after construction") {
  auto table = table_of(ring_of(9, 4, 2), 3);
  CHECK(quire_test::allocations_of([&] {
          for (auto round = 0; round < 50; ++round) {
            static_cast<void>(table.append(token_count{4}));
            table.commit();
            static_cast<void>(table.append(token_count{3}));
            table.drop();
            static_cast<void>(table.rewind(token_pos{table.length().value() - 1}));
          }
        }) == 0);
}
