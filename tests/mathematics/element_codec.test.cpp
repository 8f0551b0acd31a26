// SPDX-License-Identifier: Apache-2.0
#include <quire/attention/element_codec.hpp>
#include <quire/attention/oracle_plane.hpp>

#include "mathematics/numbers.hpp"
#include "support/catch_compat.hpp"
#include "support/throwing_contract.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace {
using namespace quire;

constexpr auto inf = std::numeric_limits<double>::infinity();
auto const bad = std::numeric_limits<double>::quiet_NaN();
constexpr auto all_types = std::array{dtype::f64,      dtype::f32,  dtype::f16,  dtype::bf16,    dtype::fp8_e4m3,
                                      dtype::fp8_e5m2, dtype::int8, dtype::int4, dtype::fp4_e2m1};

// All finite values of a small type, in the order of their bits, both signs.
auto values_of(dtype type) -> std::vector<std::pair<std::uint64_t, double>> {
  std::vector<std::pair<std::uint64_t, double>> out;
  for (std::uint64_t bits = 0; bits < std::uint64_t{1} << bits_of(type); ++bits) {
    auto const value = decode_element(type, bits);
    if (std::isfinite(value)) { out.emplace_back(bits, value); }
  }
  return out;
}
} // namespace

TEST_CASE("S6: known patterns of the storage types") {
  struct pattern {
    dtype type;
    std::uint64_t bits;
    double value;
  };
  auto const known = std::array{
      pattern{dtype::f64, 0x3FF0000000000000, 1.0},
      pattern{dtype::f32, 0xC0200000, -2.5},
      pattern{dtype::f16, 0x3C00, 1.0},
      pattern{dtype::f16, 0x7BFF, 65504.0},
      pattern{dtype::f16, 0x0001, 0x1.0p-24},
      pattern{dtype::f16, 0x0400, 0x1.0p-14},
      pattern{dtype::f16, 0xFC00, -inf},
      pattern{dtype::bf16, 0x3F80, 1.0},
      pattern{dtype::bf16, 0x4049, 3.140625},
      pattern{dtype::bf16, 0x7F7F, 0x1.FEp127},
      pattern{dtype::bf16, 0x0001, 0x1.0p-133},
      pattern{dtype::bf16, 0x7F80, inf},
      pattern{dtype::fp8_e4m3, 0x38, 1.0},
      pattern{dtype::fp8_e4m3, 0x7E, 448.0},
      pattern{dtype::fp8_e4m3, 0x01, 0x1.0p-9},
      pattern{dtype::fp8_e4m3, 0xFE, -448.0},
      pattern{dtype::fp8_e5m2, 0x3C, 1.0},
      pattern{dtype::fp8_e5m2, 0x7B, 57344.0},
      pattern{dtype::fp8_e5m2, 0x01, 0x1.0p-16},
      pattern{dtype::int8, 0x80, -128.0},
      pattern{dtype::int8, 0x7F, 127.0},
      pattern{dtype::int4, 0x8, -8.0},
      pattern{dtype::int4, 0x7, 7.0},
      pattern{dtype::int4, 0xF, -1.0},
      pattern{dtype::fp4_e2m1, 0x1, 0.5},
      pattern{dtype::fp4_e2m1, 0x7, 6.0},
      pattern{dtype::fp4_e2m1, 0xA, -1.0},
  };
  for (auto const& p : known) {
    INFO(name_of(p.type) << " " << p.bits);
    CHECK(decode_element(p.type, p.bits) == p.value);
    CHECK(encode_element(p.type, p.value) == p.bits);
  }
  for (auto const& [type, bits] :
       {std::pair{dtype::f16, 0x7E00U}, std::pair{dtype::bf16, 0x7FC0U}, std::pair{dtype::fp8_e4m3, 0x7FU},
        std::pair{dtype::fp8_e5m2, 0x7EU}, std::pair{dtype::fp8_e4m3, 0xFFU}, std::pair{dtype::fp8_e5m2, 0x7DU}}) {
    CHECK(std::isnan(decode_element(type, bits)));
  }
}

TEST_CASE("S6: every stored element comes back as it was") {
  for (auto const type : all_types) {
    if (bits_of(type) > 16) { continue; }
    for (auto const& [bits, value] : values_of(type)) {
      if (encode_element(type, value) != bits) { FAIL(name_of(type) << " " << bits); } // a CHECK each would take long
    }
  }
  SUCCEED();
}

TEST_CASE("S6: writing rounds to the nearest, ties to even") {
  auto draw = quire_test::numbers{5};
  for (auto const type : all_types) {
    if (bits_of(type) > 8) { continue; }
    auto const all = values_of(type);
    // nearest by search: independent of how the codec rounds
    auto const nearest = [&](double x) {
      auto best = all.front();
      for (auto const& candidate : all) {
        auto const here = std::fabs(candidate.second - x);
        auto const there = std::fabs(best.second - x);
        auto const even = candidate.first % 2 == 0;
        if (here < there || (here == there && even && best.first % 2 == 1)) { best = candidate; }
      }
      return best.second;
    };
    INFO(name_of(type));
    for (auto i = 0; i < 500; ++i) {
      auto const x = draw.next() * std::exp2(12.0 * draw.next());
      if (stored_value(type, x) != nearest(x)) { FAIL("x = " << x); }
    }
    for (std::size_t i = 0; i + 1 < all.size(); ++i) { // ties
      auto const x = (all[i].second + all[i + 1].second) / 2;
      if (stored_value(type, x) != nearest(x)) { FAIL("tie " << x); }
    }
  }
  CHECK(stored_value(dtype::bf16, 1.0 + 0x1.0p-8) == 1.0);                 // tie to even
  CHECK(stored_value(dtype::bf16, 1.0 + 0x1.8p-7) == 1.0 + 0x1.0p-6);      // tie to even, upwards
  CHECK(stored_value(dtype::bf16, 1.0 + 0x1.000002p-8) == 1.0 + 0x1.0p-7); // rounded once, not by way of f32
  CHECK(stored_value(dtype::f16, 2049.0) == 2048.0);
  CHECK(stored_value(dtype::f16, 0x1.0p-25) == 0.0);
  CHECK(stored_value(dtype::f16, 0x1.8p-25) == 0x1.0p-24);
}

TEST_CASE("S6: beyond the range") {
  CHECK(stored_value(dtype::f16, 65520.0) == inf);
  CHECK(stored_value(dtype::f16, 65519.0) == 65504.0);
  CHECK(stored_value(dtype::bf16, 1e39) == inf);
  CHECK(stored_value(dtype::f16, -inf) == -inf);
  for (auto const x : {1e9, inf}) {
    CHECK(stored_value(dtype::fp8_e4m3, x) == 448.0);
    CHECK(stored_value(dtype::fp8_e5m2, -x) == -57344.0);
    CHECK(stored_value(dtype::fp4_e2m1, x) == 6.0);
    CHECK(stored_value(dtype::int8, x) == 127.0);
    CHECK(stored_value(dtype::int8, -x) == -128.0);
    CHECK(stored_value(dtype::int4, -x) == -8.0);
  }
  for (auto const type : {dtype::f64, dtype::f32, dtype::f16, dtype::bf16, dtype::fp8_e4m3, dtype::fp8_e5m2}) {
    CHECK(std::isnan(stored_value(type, bad)));
  }
  for (auto const type : {dtype::int8, dtype::int4, dtype::fp4_e2m1}) { CHECK(stored_value(type, bad) == 0.0); }
}

TEST_CASE("S6: elements lie side by side, half bytes too") {
  for (auto const type : all_types) {
    INFO(name_of(type));
    auto memory = std::vector<std::byte>(7 * bits_of(type) / 8 + 1, std::byte{0xFF});
    for (std::uint64_t i = 0; i < 7; ++i) { store_element(type, memory, i, i % 2 == 0 ? 1.0 : -2.0); }
    for (std::uint64_t i = 0; i < 7; ++i) { CHECK(load_element(type, memory, i) == (i % 2 == 0 ? 1.0 : -2.0)); }
    CHECK_THROWS_AS(load_element(type, std::span{memory}.first(3 * bits_of(type) / 8), 6),
                    quire_test::contract_violation);
    CHECK_THROWS_AS(store_element(type, std::span{memory}.first(3 * bits_of(type) / 8), 6, 1.0),
                    quire_test::contract_violation);
  }
  auto nibbles = std::array{std::byte{0xFF}};
  store_element(dtype::int4, nibbles, 0, 3.0);
  CHECK(nibbles[0] == std::byte{0xF3}); // the first is the low half, the other one is left alone
}

TEST_CASE("S6: a scale divides on the way in and multiplies on the way out") {
  auto memory = std::vector<std::byte>(64, std::byte{0});
  auto const layout = plane_layout::nhd({.role = layout_role::key,
                                         .blocks = block_count{2},
                                         .block_tokens = token_count{2},
                                         .heads = 2,
                                         .dim = 4,
                                         .element_bits = 8});
  auto plane = oracle_plane{.layout = layout, .type = dtype::int8, .tensor = memory, .scale = 0.125};
  plane.validate();
  auto const at = layout_place{.block = block_id{1}, .token = token_count{1}, .head = 1, .dim = 3};
  plane.store(at, 2.56);
  CHECK(plane.load(at) == 2.5); // 20.48 -> 20
  CHECK(std::to_integer<int>(memory[31]) == 20);
  SECTION("what does not fit together is refused") {
    auto wrong = plane;
    wrong.type = dtype::f16;
    CHECK_THROWS_AS(wrong.validate(), config_error);
    wrong = plane;
    wrong.tensor = wrong.tensor.first(31);
    CHECK_THROWS_AS(wrong.validate(), config_error);
    wrong = plane;
    wrong.scale = 0.0;
    CHECK_THROWS_AS(wrong.validate(), config_error);
    CHECK_THROWS_AS(oracle_plane{}.validate(), config_error);
  }
}
