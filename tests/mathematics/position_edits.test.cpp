// SPDX-License-Identifier: Apache-2.0
// What may happen to positions of stored keys: blocks move and nothing is turned; logical positions move in a named
// approximate mode only; lost windows are rebuilt exactly, and re-running the last w tokens is something else.
#include <quire/attention/attention_extent.hpp>
#include <quire/attention/attention_params.hpp>
#include <quire/attention/oracle_attention.hpp>
#include <quire/attention/position_shift.hpp>
#include <quire/attention/resolved_rope.hpp>
#include <quire/attention/shifted_positions.hpp>
#include <quire/core/errc.hpp>
#include <quire/identity/cache_format.hpp>
#include <quire/identity/compute_identity.hpp>
#include <quire/model/model_spec.hpp>
#include <quire/model/rebuild.hpp>
#include <quire/sequence/block_geometry.hpp>
#include <quire/sequence/block_table.hpp>

#include "isolation/identity_fixtures.hpp"
#include "mathematics/numbers.hpp"
#include "mathematics/toy_network.hpp"
#include "support/catch_compat.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace {
using namespace quire;
using quire_test::distance;
using quire_test::numbers;

auto interval(std::uint32_t begin, std::uint32_t end) -> position_interval {
  return {token_pos{begin}, token_pos{end}};
}
auto move_of(std::uint32_t begin, std::uint32_t end, std::uint32_t to) -> shifted_positions::move {
  return {.from = interval(begin, end), .to = token_pos{to}};
}
// Positions of all cells in order; -1 where removed.
auto positions_of(shifted_positions const& p) -> std::vector<int> {
  auto out = std::vector<int>{};
  for (auto const& one : p.cells()) { out.push_back(one.position ? static_cast<int>(one.position->value()) : -1); }
  return out;
}
auto filled(std::uint32_t n, position_mode mode = position_mode::approximate) -> shifted_positions {
  auto out = shifted_positions{mode};
  out.append(token_count{n});
  return out;
}
constexpr auto nobody = [](std::size_t) { return false; };
} // namespace

TEST_CASE("case 71: two shifts of one key add up to one turn") {
  auto p = filled(11);
  REQUIRE(p.remove(interval(0, 6)));
  REQUIRE(p.shift(move_of(6, 11, 4))); // the key at 10 moves to 8
  REQUIRE(p.shift(move_of(4, 9, 1)));  // and on to 5
  CHECK(positions_of(p) == std::vector{-1, -1, -1, -1, -1, -1, 1, 2, 3, 4, 5});
  CHECK(p.end() == token_pos{6});
  auto const turns = p.take_turns(nobody);
  REQUIRE(turns);
  REQUIRE(turns->size() == 5);
  CHECK(turns->back() == shifted_positions::turn{.cell = 10, .change = {.from = token_pos{10}, .to = token_pos{5}}});
  CHECK(p.take_turns(nobody)->empty()); // each turn is handed out once
  REQUIRE(p.shift(move_of(5, 6, 20)));
  auto const later = p.take_turns(nobody);
  REQUIRE(later->size() == 1);
  CHECK(later->front().change.from == token_pos{5}); // from what the bytes say, not from where it was computed
  CHECK(later->front().change.to == token_pos{20});
}

TEST_CASE("case 72: after a shift, all positions are the new ones") {
  // cached a b c d e f g h j, wanted a b e f h j
  auto const tokens = std::string{"abcdefghj"};
  auto p = filled(9);
  REQUIRE(p.remove(interval(2, 4)));
  REQUIRE(p.shift(move_of(4, 9, 2)));
  REQUIRE(p.remove(interval(4, 5))); // g stands at 4 now
  REQUIRE(p.shift(move_of(5, 7, 4)));
  auto text = std::string(p.end().value(), '?');
  for (std::size_t i = 0; i < p.cells().size(); ++i) {
    if (auto const at = p.cells()[i].position) { text[at->value()] = tokens[i]; }
  }
  CHECK(text == "abefhj");
}

TEST_CASE("case 73: whether positions can be moved is asked before anything changes") {
  for (auto p : {shifted_positions{position_mode::exact}, shifted_positions{position_mode::approximate, false}}) {
    p.append(token_count{8});
    auto const before = std::vector<shifted_positions::cell>(p.cells().begin(), p.cells().end());
    CHECK_FALSE(p.can_shift());
    CHECK(p.shift(move_of(4, 8, 2)).error() == errc::not_supported);
    CHECK(p.remove(interval(2, 4)).error() == errc::not_supported); // a splice
    CHECK(std::vector<shifted_positions::cell>(p.cells().begin(), p.cells().end()) == before);
    CHECK(p.take_turns(nobody)->empty());
    REQUIRE(p.remove(interval(6, 8))); // dropping the end is no change of positions
    CHECK(p.end() == token_pos{6});
  }
}

TEST_CASE("case 74: only positions that all layer groups still hold can be moved") {
  auto p = filled(10);
  REQUIRE(p.remove(interval(0, 2)));
  CHECK(p.shift(move_of(2, 10, 0), 4).error() == errc::not_resident); // cells 2 and 3 are gone from the window layers
  CHECK(positions_of(p) == std::vector{-1, -1, 2, 3, 4, 5, 6, 7, 8, 9});
  REQUIRE(p.remove(interval(2, 4)));
  CHECK(p.shift(move_of(4, 10, 0), 4));
}

TEST_CASE("case 67: after a slide all keys, the newest too, are turned by one rule") {
  auto p = filled(10); // 2 sinks and the last 4 stay, and close up
  REQUIRE(p.remove(interval(2, 6)));
  REQUIRE(p.shift(move_of(6, 10, 2)));
  p.append(token_count{1}); // computed where it will stand, before the others were turned
  CHECK(p.cells().back() == shifted_positions::cell{.position = token_pos{6}, .turned_for = token_pos{6}});
  REQUIRE(p.take_turns(nobody)->size() == 4);
  for (auto const& one : p.cells()) { CHECK((!one.position || *one.position == one.turned_for)); }
}

TEST_CASE("S31: impossible moves are refused and change nothing") {
  auto p = filled(8);
  REQUIRE(p.remove(interval(2, 4)));
  auto const before = positions_of(p);
  CHECK(p.shift(move_of(4, 8, 1)).error() == errc::out_of_range);          // onto position 1
  CHECK(p.shift(move_of(4, 9, 2)).error() == errc::out_of_range);          // leaves the sequence
  CHECK(p.shift(move_of(4, 4, 2)).error() == errc::out_of_range);          // nothing moves
  CHECK(p.shift(move_of(4, 8, UINT32_MAX)).error() == errc::out_of_range); // beyond all positions
  CHECK(p.remove(interval(3, 9)).error() == errc::out_of_range);
  CHECK(positions_of(p) == before);
  CHECK(p.shift(move_of(4, 8, 3))); // over its own old places
  CHECK(positions_of(p) == std::vector{0, 1, -1, -1, 3, 4, 5, 6});
}

TEST_CASE("S31: a key in a shared block is not turned before the block was copied") {
  auto p = filled(8); // blocks of 4; others read the second one
  REQUIRE(p.remove(interval(0, 2)));
  REQUIRE(p.shift(move_of(2, 8, 0)));
  auto others = std::vector{false, true};
  auto const shared = [&](std::size_t cell) { return others[cell / 4]; };
  CHECK(p.take_turns(shared).error() == errc::block_shared);
  CHECK(p.cells()[2].turned_for == token_pos{2}); // nothing was taken, not even of the first block
  others[1] = false;                              // copied
  CHECK(p.take_turns(shared)->size() == 6);
  auto unmoved = filled(8);
  CHECK(unmoved.take_turns([](std::size_t) { return true; })->empty()); // nothing to turn, nothing to copy
}

TEST_CASE("S31: a shift and its inverse give the keys back") {
  auto draw = numbers{4};
  auto const rope = resolved_rope{{.width = 8, .base = 500.0}, {}};
  auto keys = std::vector<std::vector<double>>{};
  auto p = filled(12);
  for (std::uint32_t at = 0; at < 12; ++at) {
    keys.push_back(draw.many(8));
    rope.rotate(std::span{keys.back()}, token_pos{at});
  }
  auto const stored = keys;
  auto const run = [&](std::vector<shifted_positions::turn> const& turns) {
    for (auto const& one : turns) {
      REQUIRE(rope.shift(std::span{keys[one.cell]}, one.change, position_mode::approximate));
    }
  };
  REQUIRE(p.remove(interval(0, 5)));
  REQUIRE(p.shift(move_of(5, 12, 0)));
  REQUIRE(p.shift(move_of(0, 7, 5)));
  CHECK(p.take_turns(nobody)->empty()); // taken together: nothing to do, the same bytes
  REQUIRE(p.shift(move_of(5, 12, 0)));
  run(*p.take_turns(nobody));
  for (std::size_t i = 5; i < 12; ++i) { CHECK(distance(keys[i], stored[i]) > 0.01); }
  REQUIRE(p.shift(move_of(0, 7, 5)));
  run(*p.take_turns(nobody));
  for (std::size_t i = 0; i < 12; ++i) { CHECK(distance(keys[i], stored[i]) < 1e-14 * 8); }
}

TEST_CASE("S31: the mode that moves positions is part of the identity") {
  auto const mode = shifted_positions::mode_name;
  auto exact = quire_test::some_fields();
  auto shifting = quire_test::some_fields();
  shifting.format = cache_format::approximate(mode);
  CHECK(exact.format.is_exact());
  CHECK_FALSE(shifting.format.is_exact());
  CHECK(compute_identity{exact} != compute_identity{shifting});
  auto description = model_description{.max_positions = token_count{64}};
  description.layers.push_back({.query_heads = 1, .kv_heads = 1, .key_width = 4, .value_width = 4});
  CHECK(model_spec{description}.execution_mode() == "exact");
  description.approximation = mode;
  CHECK(model_spec{description}.execution_mode() == mode);
}

TEST_CASE("S31: blocks that move are not turned again, and every read gives the same") {
  auto draw = numbers{9};
  auto const rope = resolved_rope{{.width = 4, .base = 100.0}, {}};
  auto const geometry = block_geometry{token_count{3}};
  auto params = attention_params{.query_heads = 1, .kv_heads = 1, .key_width = 4, .value_width = 4, .scale = 0.5};
  constexpr std::uint32_t length = 11;
  auto memory = std::vector<std::vector<double>>(10 * 3); // 10 blocks of 3 keys; values are the keys
  auto table = block_table{};
  for (auto const b : {7U, 2U, 9U, 4U}) { table.blocks.push_back(block_id{b}); }
  for (std::uint32_t at = 0; at < length; ++at) {
    auto key = draw.many(4);
    rope.rotate(std::span{key}, token_pos{at}); // by logical position, never by block
    memory[static_cast<std::size_t>(table.slot(geometry, token_pos{at}))] = key;
  }
  auto const query = draw.many(4);
  auto const read = [&] {
    auto const cell = [&](tensor_place const& x) {
      return memory[static_cast<std::size_t>(table.slot(geometry, token_pos{x.token}))].at(x.dim);
    };
    return oracle_attention(
        params, {.first_query = token_pos{length - 1}, .queries = token_count{1}, .keys = interval(0, length)},
        [&](tensor_place const& x) { return query[x.dim]; }, cell, cell);
  };
  auto const before = read();
  // a move list: block by block, bytes as they are
  for (auto const& [from, to, index] : {std::tuple{9U, 0U, 2U}, {7U, 1U, 0U}, {4U, 9U, 3U}}) {
    for (std::size_t i = 0; i < 3; ++i) { memory[to * 3 + i] = std::exchange(memory[from * 3 + i], {}); }
    table.blocks[index] = block_id{to};
  }
  auto const after = read();
  CHECK(after.output == before.output); // bit for bit
  CHECK(after.lse == before.lse);
}

TEST_CASE("S28: re-running the last w tokens is not windowed attention, rebuilding N_w times w - 1 positions is") {
  constexpr std::uint32_t window = 4;
  constexpr std::uint32_t length = 24; // computed; the windows of all layers are lost, position 24 is next
  auto const rule = attention_rule::sliding_window(token_count{window});
  auto const weights = quire_test::toy_weights{21, rule};
  auto draw = numbers{5};
  auto tokens = std::vector<std::uint32_t>(length + 1);
  for (auto& token : tokens) { token = draw.below(11); }
  auto const stepwise = quire_test::toy_reference(weights, tokens).back();
  // From `first` on with nothing before it. Rotary scores depend on distances only, so that position `first` may be called 0.
  auto const from = [&](std::uint32_t first) {
    return quire_test::toy_reference(weights, {tokens.begin() + first, tokens.end()}).back();
  };
  auto description = model_description{.max_positions = token_count{1024}};
  description.layers.assign(weights.layers,
                            {.query_heads = 4, .kv_heads = 2, .key_width = 4, .value_width = 4, .rule = rule});
  auto const model = model_spec{description};
  auto const start = rebuild_start(model, token_count{length}).value();
  CHECK(length - start == weights.layers * (window - 1)); // N_w (w − 1)

  CHECK(distance(from(start), stepwise) < 1e-10);
  CHECK(distance(from(start + 1), stepwise) > 1e-4);           // one position less is not enough
  CHECK(distance(from(length + 1 - window), stepwise) > 1e-2); // the last w tokens of text are another computation
  // the engine that steps one by one over its cache agrees with the masks
  auto engine = quire_test::toy_engine<double>{weights, dtype::f64};
  auto last = std::vector<double>{};
  for (auto const token : tokens) { last = engine.feed(1, {token}).back(); }
  CHECK(distance(last, stepwise) < 1e-10);
  // in a network of one layer the two are the same
  auto single = quire_test::toy_weights{21, rule};
  single.layers = 1;
  auto const one = quire_test::toy_reference(single, tokens).back();
  CHECK(distance(quire_test::toy_reference(single, {tokens.end() - window, tokens.end()}).back(), one) < 1e-10);
}

TEST_CASE("S28: a mixed stack rebuilds from where its full layers still serve it") {
  // full, window, window: the full layer's keys are there, so that only the windows are computed again
  auto description = model_description{.max_positions = token_count{1024}};
  auto const layer = [](attention_rule rule) {
    return layer_spec{.query_heads = 4, .kv_heads = 2, .key_width = 4, .value_width = 4, .rule = rule};
  };
  auto const window = attention_rule::sliding_window(token_count{4});
  description.layers = {layer(attention_rule::causal()), layer(window), layer(window)};
  CHECK(rebuild_start(model_spec{description}, token_count{24}) == token_pos{24 - 2 * 3});
}
