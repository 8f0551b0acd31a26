// SPDX-License-Identifier: Apache-2.0
#include <quire/view/host_executor.hpp>
#include <quire/view/view_layout.hpp>

#include "support/catch_compat.hpp"
#include "support/throwing_contract.hpp"
#include "view/host_memory.hpp"
#include "view/view_fixture.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace {
using namespace quire;
using quire_test::host_memory;

constexpr auto pool = 5U;
constexpr auto g0 = group_id{0};

auto block(std::uint32_t b) -> block_id { return block_id{b}; }
auto count(std::uint32_t n) -> token_count { return token_count{n}; }
auto shape(layout_role role, std::uint32_t tokens, std::uint32_t heads, std::uint32_t dim, std::uint32_t bits)
    -> layout_shape {
  return {.role = role,
          .blocks = block_count{pool},
          .block_tokens = token_count{tokens},
          .heads = heads,
          .dim = dim,
          .element_bits = bits};
}

// Every way to lay out K and V that there is, with odd sizes; each list is one group of two layers.
auto arrangements(std::uint32_t p_b) -> std::vector<std::pair<std::string, std::vector<view_layout>>> {
  auto const k = shape(layout_role::key, p_b, 3, 8, 16);
  auto const v = shape(layout_role::value, p_b, 3, 4, 16);
  auto const latent = shape(layout_role::latent, p_b, 1, 12, 16);
  auto const rope = shape(layout_role::rope_key, p_b, 1, 4, 16);
  auto const narrow = shape(layout_role::key, p_b, 2, 6, 8);
  auto const scale = shape(layout_role::key_scale, p_b, 2, 1, 32);
  auto const per_block = shape(layout_role::value_scale, 1, 2, 1, 32);
  auto const fours = shape(layout_role::key, p_b, 2, 8, 4);
  auto const nhd = plane_layout::nhd;
  auto const hnd = plane_layout::hnd;
  auto const twice = [](view_layout const& layout) { return std::vector<view_layout>{layout, layout}; };
  return {
      {"separate nhd", twice(view_layout::separate(std::array{nhd(k), nhd(v)}))},
      {"separate hnd", twice(view_layout::separate(std::array{hnd(k), hnd(v)}))},
      {"split and transposed",
       twice(view_layout::separate(std::array{plane_layout::split(k, 2), plane_layout::transposed(v)}))},
      {"one head, split", twice(view_layout::separate(std::array{plane_layout::split(latent, 4)}))},
      {"blocks outer", twice(view_layout::blocks_outer(nhd(k), hnd(v)))},
      {"planes outer", twice(view_layout::planes_outer(hnd(k), nhd(v)))},
      {"heads joined", twice(view_layout::heads_joined(k, v))},
      {"latent", twice(view_layout::heads_joined(latent, rope))},
      {"with scales per token and per block",
       twice(view_layout::separate(std::array{nhd(narrow), nhd(scale), nhd(per_block)}))},
      {"4-bit nhd and hnd", twice(view_layout::separate(std::array{nhd(fours), hnd(fours)}))},
      {"mixed layers", {view_layout::heads_joined(k, v), view_layout::separate(std::array{nhd(narrow), hnd(v)})}},
  };
}
} // namespace

TEST_CASE("S23: a copy moves exactly the first n tokens of all planes, in every layout") {
  for (auto const p_b : {1U, 2U, 3U, 5U, 16U, 17U}) {
    for (auto const& [name, layers] : arrangements(p_b)) {
      INFO(name << ", p_b = " << p_b);
      auto real = host_memory{block_count{pool}, token_count{p_b}, layers};
      auto model = host_memory{block_count{pool}, token_count{p_b}, layers};
      auto const groups = std::array{real.group()};
      auto executor = host_executor<>{groups};
      for (auto n = 0U; n <= p_b; ++n) {
        real.number(n);
        model.number(n);
        auto const plan = std::array{action::copy_block(g0, block(1), block(3), count(n))};
        REQUIRE(executor.run(plan));
        model.model_copy(block(1), block(3), n);
        REQUIRE(real.tensors() == model.tensors()); // (1): the copy, and not one byte more
      }
      // first and last block of the pool, both ways
      auto const ends = std::array{action::copy_block(g0, block(pool - 1), block(0), count(p_b)),
                                   action::copy_block(g0, block(2), block(pool - 1), count(1))};
      REQUIRE(executor.run(ends));
      model.model_copy(block(pool - 1), block(0), p_b);
      model.model_copy(block(2), block(pool - 1), 1);
      REQUIRE(real.tensors() == model.tensors());
    }
  }
}

TEST_CASE("S15: a move brings the whole block, and reads through the changed table agree") {
  for (auto const& [name, layers] : arrangements(4)) {
    INFO(name);
    auto real = host_memory{block_count{pool}, token_count{4}, layers};
    auto model = host_memory{block_count{pool}, token_count{4}, layers};
    real.number(1);
    model.number(1);
    auto const groups = std::array{real.group()};
    auto executor = host_executor<>{groups};
    REQUIRE(executor.run(std::array{action::move_block(g0, block(4), block(0))}));
    model.model_copy(block(4), block(0), 4);
    REQUIRE(real.tensors() == model.tensors()); // (2)

    // a sequence of 7 positions in blocks (4, 2) reads the same through (0, 2) even if 4 is poisoned now
    auto before = std::vector<std::uint32_t>{};
    auto after = std::vector<std::uint32_t>{};
    auto const read_all = [&](std::vector<std::int32_t> const& table, std::vector<std::uint32_t>& out) {
      auto const fixture = quire_test::view_fixture{4, 2, 1, {{table, 0, 6, 1}}};
      auto const view = fixture.view();
      for (auto p = 0U; p < 7; ++p) {
        auto const where = view.locate(0, token_pos{p});
        for (std::size_t l = 0; l < real.layers().size(); ++l) {
          for (auto const& plane : real.layers()[l].planes()) {
            if (plane.block_tokens == 1) { continue; }
            for (auto h = 0U; h < plane.heads; ++h) {
              for (auto d = 0U; d < plane.dim; ++d) {
                out.push_back(
                    host_memory::read(real.tensors()[l][plane.tensor],
                                      plane.offset({.block = where.block, .token = where.offset, .head = h, .dim = d}),
                                      plane.element_bits));
              }
            }
          }
        }
      }
    };
    read_all({4, 2}, before);
    auto poisoner = host_executor<>{groups, nan_poison};
    REQUIRE(poisoner.run(std::array{action::scrub_block(g0, block(4))}));
    read_all({0, 2}, after);
    CHECK(before == after);
  }
}

TEST_CASE("S37: a scrub overwrites every byte of its block and of no other") {
  for (auto const pattern : {std::byte{0}, nan_poison}) {
    for (auto const& [name, layers] : arrangements(3)) {
      INFO(name);
      auto real = host_memory{block_count{pool}, token_count{3}, layers};
      auto model = host_memory{block_count{pool}, token_count{3}, layers};
      real.number(7);
      model.number(7);
      auto const groups = std::array{real.group()};
      auto executor = host_executor<>{groups, pattern};
      REQUIRE(executor.run(std::array{action::scrub_block(g0, block(2))}));
      model.model_fill(block(2), pattern == nan_poison ? 0xFFFF'FFFFU : 0U);
      REQUIRE(real.tensors() == model.tensors()); // (3)
    }
  }
}

TEST_CASE("S37: poison is NaN in every floating-point format of a cache (cases 125, 126)") {
  auto const as = [](auto number) {
    std::memset(&number, std::to_integer<int>(nan_poison), sizeof number);
    return number;
  };
  CHECK(std::isnan(as(0.0F)));
  CHECK(std::isnan(as(0.0)));
  auto const word = as(std::uint16_t{0});
  CHECK((word & 0x7C00U) == 0x7C00U); // fp16: exponent all ones,
  CHECK((word & 0x03FFU) != 0);       //       fraction not 0
  CHECK((word & 0x7F80U) == 0x7F80U); // bf16
  CHECK((word & 0x007FU) != 0);
  auto const octet = as(std::uint8_t{0});
  CHECK((octet & 0x7FU) == 0x7FU); // fp8 e4m3: S.1111.111
  CHECK((octet & 0x7CU) == 0x7CU); // fp8 e5m2: exponent all ones,
  CHECK((octet & 0x03U) != 0);     //           fraction not 0
}

TEST_CASE("S37: the tail of a recycled block stays poison, so a read beyond the length shows (cases 125, 126)") {
  for (auto const& order : {plane_layout::nhd, plane_layout::hnd, plane_layout::transposed}) {
    auto const s = shape(layout_role::value, 4, 2, 3, 32);
    auto memory = host_memory{block_count{pool}, token_count{4}, {view_layout::separate(std::array{order(s)})}};
    auto const& plane = memory.layers()[0].planes()[0];
    auto& tensor = memory.tensors()[0][0];
    for (std::size_t i = 0; i < tensor.size() / sizeof(float); ++i) {
      auto const number = static_cast<float>(i);
      std::memcpy(tensor.data() + i * sizeof number, &number, sizeof number);
    }
    auto const groups = std::array{memory.group()};
    auto executor = host_executor<>{groups, nan_poison};
    auto const plan =
        std::array{action::scrub_block(g0, block(3)), action::copy_block(g0, block(1), block(3), count(1))};
    REQUIRE(executor.run(plan));
    auto const sum = [&](std::uint32_t tokens) {
      auto total = 0.0F;
      for (auto t = 0U; t < tokens; ++t) {
        for (auto h = 0U; h < 2; ++h) {
          for (auto d = 0U; d < 3; ++d) {
            auto number = 0.0F;
            auto const at = plane.offset({.block = block(3), .token = count(t), .head = h, .dim = d});
            std::memcpy(&number, tensor.data() + at * sizeof number, sizeof number);
            total += 0.0F * number; // the weight of a masked position: 0 · NaN is NaN
          }
        }
      }
      return total;
    };
    CHECK_FALSE(std::isnan(sum(1)));
    CHECK(std::isnan(sum(2)));
    CHECK(std::isnan(sum(4)));
  }
}

TEST_CASE("S18: actions run in order, each on what the earlier ones left") {
  auto const layers = arrangements(4)[0].second;
  auto real = host_memory{block_count{pool}, token_count{4}, layers};
  auto model = host_memory{block_count{pool}, token_count{4}, layers};
  real.number(3);
  model.number(3);
  auto const groups = std::array{real.group()};
  auto executor = host_executor<>{groups};
  // 1 is target and then source; 0 is source and then scrubbed; 2 is scrubbed and then filled
  auto const plan = std::array{
      action::copy_block(g0, block(0), block(1), count(4)),
      action::copy_block(g0, block(1), block(4), count(2)),
      action::scrub_block(g0, block(0)),
      action::scrub_block(g0, block(2)),
      action::wait_for(timeline_id{0}, ticket{9}),
      action::move_block(g0, block(3), block(2)),
  };
  REQUIRE(executor.run(plan));
  model.model_copy(block(0), block(1), 4);
  model.model_copy(block(1), block(4), 2);
  model.model_fill(block(0), 0);
  model.model_fill(block(2), 0);
  model.model_copy(block(3), block(2), 4);
  CHECK(real.tensors() == model.tensors());
}

TEST_CASE("S18: a wait is waited for at its place") {
  auto const layers = arrangements(2)[0].second;
  auto memory = host_memory{block_count{pool}, token_count{2}, layers};
  auto model = host_memory{block_count{pool}, token_count{2}, layers};
  memory.number(3);
  model.number(3);
  auto const groups = std::array{memory.group()};
  auto calls = 0;
  auto const wait = [&](timeline_id timeline, ticket until) {
    CHECK(timeline == timeline_id{2});
    CHECK(until == ticket{17});
    ++calls;
    model.model_copy(block(0), block(1), 2); // what comes before has happened, what comes behind has not
    CHECK(memory.tensors() == model.tensors());
  };
  auto executor = host_executor<decltype(wait)>{groups, std::byte{0}, wait};
  REQUIRE(executor.run(std::array{action::copy_block(g0, block(0), block(1), count(2)),
                                  action::wait_for(timeline_id{2}, ticket{17}), action::scrub_block(g0, block(0))}));
  CHECK(calls == 1);
}

TEST_CASE("S18: groups keep to their own planes and block sizes") {
  auto a = host_memory{block_count{pool}, token_count{4}, arrangements(4)[0].second};
  auto b = host_memory{block_count{pool}, token_count{2}, arrangements(2)[1].second};
  auto model = host_memory{block_count{pool}, token_count{2}, arrangements(2)[1].second};
  a.number(1);
  b.number(2);
  model.number(2);
  auto const untouched = a.tensors();
  auto const groups = std::array{a.group(), b.group()};
  auto executor = host_executor<>{groups};
  REQUIRE(executor.run(std::array{action::copy_block(group_id{1}, block(0), block(2), count(2))}));
  model.model_copy(block(0), block(2), 2);
  CHECK(a.tensors() == untouched);
  CHECK(b.tensors() == model.tensors());
  CHECK_THROWS_AS(executor.run(std::array{action::copy_block(group_id{1}, block(0), block(2), count(3))}),
                  quire_test::contract_violation); // 3 tokens fit a block of group 0 only
}

TEST_CASE("S18: a refused or broken list has done nothing") {
  auto memory = host_memory{block_count{pool}, token_count{4}, arrangements(4)[6].second};
  memory.number(5);
  auto const before = memory.tensors();
  auto const groups = std::array{memory.group()};
  auto waits = 0;
  auto const wait = [&](timeline_id, ticket) { ++waits; };
  auto executor = host_executor<decltype(wait)>{groups, std::byte{0}, wait};
  auto const first = std::array{action::wait_for(timeline_id{0}, ticket{1}), action::scrub_block(g0, block(0)),
                                action::copy_block(g0, block(1), block(2), count(3))};
  auto const after = [&](action const& last) {
    auto plan = std::vector<action>(first.begin(), first.end());
    plan.push_back(last);
    return executor.run(plan);
  };
  SECTION("refused: no tier") {
    auto const stored = after(action::store_block(g0, block(0), {quire::tier_id{1}, block(5)}, count(4)));
    REQUIRE_FALSE(stored);
    CHECK(stored.error() == errc::not_supported);
    auto const loaded = after(action::load_block(g0, {quire::tier_id{1}, block(5)}, block(0), count(4)));
    REQUIRE_FALSE(loaded);
    CHECK(loaded.error() == errc::not_supported);
  }
  SECTION("broken contracts") {
    using broken = quire_test::contract_violation;
    CHECK_THROWS_AS(after(action::scrub_block(g0, block(pool))), broken);
    CHECK_THROWS_AS(after(action::scrub_block(g0, block_id::none())), broken);
    CHECK_THROWS_AS(after(action::scrub_block(group_id{1}, block(0))), broken);
    CHECK_THROWS_AS(after(action::scrub_block(group_id::none(), block(0))), broken);
    CHECK_THROWS_AS(after(action::copy_block(g0, block(pool), block(0), count(1))), broken);
    CHECK_THROWS_AS(after(action::copy_block(g0, block(0), block(pool), count(1))), broken);
    CHECK_THROWS_AS(after(action::copy_block(g0, block(0), block(0), count(1))), broken);
    CHECK_THROWS_AS(after(action::copy_block(g0, block(0), block(1), count(5))), broken);
    CHECK_THROWS_AS(after(action::move_block(g0, block(1), block(1))), broken);
  }
  CHECK(waits == 0);
  CHECK(memory.tensors() == before); // (4)
}

TEST_CASE("S14: planes that do not hold their blocks are refused when the executor is made") {
  auto bytes = std::vector<std::byte>(100);
  auto plane = host_plane{.bytes = bytes, .block_stride = byte_count{20}, .token_stride = byte_count{5}};
  auto group = host_group{.blocks = block_count{5}, .block_tokens = token_count{4}, .planes = {&plane, 1}};
  auto const make = [&] { return host_executor<>{std::span{&group, 1}}; };
  CHECK_NOTHROW(make());
  SECTION("one byte short") { plane.bytes = plane.bytes.first(99); }
  SECTION("one block too many") { group.blocks = block_count{6}; }
  SECTION("blocks overlap") { group.block_tokens = token_count{5}; }
  SECTION("no blocks") { group.blocks = block_count{0}; }
  SECTION("no tokens") { group.block_tokens = token_count{0}; }
  SECTION("no bytes") { plane.block_stride = plane.token_stride = byte_count{0}; }
  SECTION("no segments") { plane.segments = 0; }
  CHECK_THROWS_AS(make(), config_error);
}

TEST_CASE("S14: a plane by hand: tokens side by side, or one state per block") {
  auto bytes = std::vector<std::byte>(24);
  for (std::size_t i = 0; i < bytes.size(); ++i) { bytes[i] = static_cast<std::byte>(i); }
  auto const run = [&](host_plane const& plane, token_count tokens) {
    auto const group = host_group{.blocks = block_count{3}, .block_tokens = token_count{4}, .planes = {&plane, 1}};
    auto executor = host_executor<>{std::span{&group, 1}};
    REQUIRE(executor.run(std::array{action::copy_block(g0, block(0), block(2), tokens)}));
  };
  SECTION("tokens of 2 bytes") {
    run({.bytes = bytes, .block_stride = byte_count{8}, .token_stride = byte_count{2}}, token_count{3});
    CHECK(std::to_integer<int>(bytes[16 + 5]) == 5);
    CHECK(std::to_integer<int>(bytes[16 + 6]) == 22);
  }
  SECTION("state: whole, but not for a copy of no tokens") {
    auto const state = host_plane{.bytes = bytes, .block_stride = byte_count{8}};
    run(state, token_count{0});
    CHECK(std::to_integer<int>(bytes[16]) == 16);
    run(state, token_count{1});
    CHECK(std::to_integer<int>(bytes[16 + 7]) == 7);
  }
}

TEST_CASE("S14: layouts that bytes cannot follow are refused by name") {
  auto bytes = std::vector<std::byte>(1 << 12);
  auto const odd = plane_layout::nhd(shape(layout_role::key, 1, 1, 3, 4)); // 1.5 bytes per block
  CHECK_THROWS_WITH(host_plane::of(odd, bytes), quire_test::ContainsSubstring("key"));
  auto const s = shape(layout_role::key, 4, 2, 8, 16);
  auto const layout = plane_layout::nhd(s);
  auto const needed = std::size_t{pool} * 4 * 2 * 8 * 2;
  CHECK_NOTHROW(host_plane::of(layout, std::span{bytes}.first(needed)));
  CHECK_THROWS_AS(host_plane::of(layout, std::span{bytes}.first(needed - 1)), config_error);
  auto uneven = plane_layout::split(s, 2);
  uneven.head_stride += 2;
  CHECK_THROWS_AS(host_plane::of(uneven, bytes), config_error);
  // 4-bit elements with tokens that begin inside a byte: the whole block, if it is bytes
  auto const fours = plane_layout::transposed(shape(layout_role::value, 4, 2, 3, 4));
  auto const plane = host_plane::of(fours, bytes);
  CHECK(plane.token_stride == byte_count{0});
  CHECK(plane.run_bytes() == 12);
  auto joint = shape(layout_role::key, 4, 2, 3, 4);
  CHECK_THROWS_AS(host_plane::of(view_layout::heads_joined(joint, joint).planes()[0], bytes), config_error);
}
