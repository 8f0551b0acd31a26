// SPDX-License-Identifier: Apache-2.0
#include <quire/attention/alibi_slopes.hpp>
#include <quire/attention/attention_extent.hpp>
#include <quire/attention/attention_params.hpp>
#include <quire/attention/strided_tensor.hpp>

#include "support/catch_compat.hpp"
#include "support/throwing_contract.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace {
using namespace quire;
auto fine() -> attention_params {
  return {.query_heads = 8, .kv_heads = 2, .key_width = 4, .value_width = 4, .scale = 0.5};
}
} // namespace

TEST_CASE("S10: query head i reads KV head floor(i h_kv / h_q)") {
  auto const gqa = fine();
  for (std::uint32_t i = 0; i < 8; ++i) { CHECK(gqa.kv_head_of(i) == (i < 4 ? 0U : 1U)); }
  auto mqa = fine();
  mqa.kv_heads = 1;
  CHECK(mqa.kv_head_of(7) == 0);
  auto mha = fine();
  mha.kv_heads = 8;
  for (std::uint32_t i = 0; i < 8; ++i) { CHECK(mha.kv_head_of(i) == i); }
  CHECK_THROWS_AS(gqa.kv_head_of(8), quire_test::contract_violation);
}

TEST_CASE("S10: impossible parameters are refused with the reason") {
  CHECK_NOTHROW(fine().validate());
  auto const refused = [](auto change, char const* why) {
    auto params = fine();
    change(params);
    CHECK_THROWS_WITH(params.validate(), quire_test::ContainsSubstring(why));
    CHECK_THROWS_AS(params.validate(), config_error);
  };
  refused([](auto& p) { p.kv_heads = 3; }, "8 query heads cannot share 3");
  refused([](auto& p) { p.query_heads = 0; }, "at least 1");
  refused([](auto& p) { p.kv_heads = 0; }, "at least 1");
  refused([](auto& p) { p.key_width = 0; }, "at least 1");
  refused([](auto& p) { p.value_width = 0; }, "at least 1");
  refused([](auto& p) { p.scale = 0.0; }, "scale");
  refused([](auto& p) { p.scale = -1.0; }, "scale");
  refused([](auto& p) { p.scale = std::numeric_limits<double>::quiet_NaN(); }, "scale");
  refused([](auto& p) { p.scale = std::numeric_limits<double>::infinity(); }, "scale");
  refused([](auto& p) { p.rule.alibi = true; }, "ALiBi slopes");
  refused([](auto& p) { p.alibi_slopes = alibi_slopes(8); }, "ALiBi slopes");
  refused([](auto& p) { p.rule.learned_sink = true; }, "sink logits");
  refused([](auto& p) { p.sink_logits = {1.0}; }, "sink logits");
  refused([](auto& p) { p.rule.soft_cap = -1.0F; }, "soft-cap");
  refused(
      [](auto& p) {
        p.rule = attention_rule::cross();
        p.rule.alibi = true;
        p.alibi_slopes = alibi_slopes(8);
      },
      "cross");
}

TEST_CASE("S13: a latent layer scales by its query width, not by its rank") {
  auto const mla = attention_params::of({.kind = layer_kind::latent,
                                         .query_heads = 16,
                                         .key_width = 128 + 64,
                                         .value_width = 128,
                                         .latent_rank = 512,
                                         .rotary_width = 64});
  CHECK(mla.scale == quire_test::approx(1.0 / std::sqrt(192.0)).epsilon(1e-15));
  CHECK(mla.kv_heads == 1);
  CHECK(mla.key_width == 576);
  CHECK(mla.value_width == 512);
  auto const gqa = attention_params::of({.query_heads = 32, .kv_heads = 8, .key_width = 128, .value_width = 64});
  CHECK(gqa.scale == quire_test::approx(1.0 / std::sqrt(128.0)).epsilon(1e-15));
  CHECK(gqa.kv_heads == 8);
  CHECK(gqa.value_width == 64);
  CHECK_THROWS_AS(attention_params::of({.query_heads = 3, .kv_heads = 2, .key_width = 1, .value_width = 1}),
                  config_error);
}

TEST_CASE("B8: ALiBi slopes are those of the paper") {
  auto const eight = alibi_slopes(8);
  for (std::size_t i = 0; i < 8; ++i) { CHECK(eight[i] == std::exp2(-static_cast<double>(i + 1))); }
  CHECK(alibi_slopes(1) == std::vector{std::exp2(-8.0)});
  // 12 heads: those of 8, then 1st, 3rd, 5th, 7th of 16
  auto const twelve = alibi_slopes(12);
  REQUIRE(twelve.size() == 12);
  CHECK(std::vector(twelve.begin(), twelve.begin() + 8) == eight);
  CHECK(std::vector(twelve.begin() + 8, twelve.end()) ==
        std::vector{std::exp2(-0.5), std::exp2(-1.5), std::exp2(-2.5), std::exp2(-3.5)});
  CHECK_THROWS_AS(alibi_slopes(0), config_error);
}

TEST_CASE("S2: an extent names query and key positions") {
  auto const append = attention_extent::append({.cached = token_count{5}, .appended = token_count{3}});
  CHECK(append.query_position(token_count{0}) == token_pos{5});
  CHECK(append.query_position(token_count{2}) == token_pos{7});
  CHECK(append.keys == position_interval{.begin = token_pos{0}, .end = token_pos{8}});
  auto const part = append.over({.begin = token_pos{2}, .end = token_pos{4}});
  CHECK(part.keys.size() == token_count{2});
  CHECK(part.first_query == append.first_query);
  auto const cross = attention_extent::cross({.queries = token_count{9}, .source = token_count{4}});
  CHECK(cross.keys.size() == token_count{4});
  CHECK(cross.queries == token_count{9});
}

TEST_CASE("S2: axis order is free") {
  // token 2, head 3, dim 2: value 100 token + 10 head + dim
  auto const value = [](std::uint32_t t, std::uint32_t h, std::uint32_t d) { return 100.0 * t + 10.0 * h + d; };
  std::vector<double> thd;
  std::vector<double> htd;
  std::vector<double> hdt;
  for (auto t = 0U; t < 2; ++t) {
    for (auto h = 0U; h < 3; ++h) {
      for (auto d = 0U; d < 2; ++d) { thd.push_back(value(t, h, d)); }
    }
  }
  for (auto h = 0U; h < 3; ++h) {
    for (auto t = 0U; t < 2; ++t) {
      for (auto d = 0U; d < 2; ++d) { htd.push_back(value(t, h, d)); }
    }
    for (auto d = 0U; d < 2; ++d) {
      for (auto t = 0U; t < 2; ++t) { hdt.push_back(value(t, h, d)); }
    }
  }
  auto const views = {
      strided_tensor<double>::packed(thd, {.heads = 3, .width = 2}),
      strided_tensor<double>{.elements = htd, .token_stride = 2, .head_stride = 4, .dim_stride = 1},
      strided_tensor<double>{.elements = hdt, .token_stride = 1, .head_stride = 4, .dim_stride = 2},
  };
  for (auto const& view : views) {
    for (auto t = 0U; t < 2; ++t) {
      for (auto h = 0U; h < 3; ++h) {
        for (auto d = 0U; d < 2; ++d) { CHECK(view({.token = t, .head = h, .dim = d}) == value(t, h, d)); }
      }
    }
    CHECK_THROWS_AS(view({.token = 2, .head = 2, .dim = 1}), quire_test::contract_violation);
  }
  auto const later = strided_tensor<double>::packed(thd, {.heads = 3, .width = 2}, token_pos{40});
  CHECK(later({.token = 41, .head = 2, .dim = 1}) == value(1, 2, 1));
  CHECK_THROWS_AS(later({.token = 39}), quire_test::contract_violation);
}
