// SPDX-License-Identifier: Apache-2.0

/// \file
/// Visibility rules and retentions.

#include "support/catch_compat.hpp"

#include <quire/core/config_error.hpp>
#include <quire/model/attention_rule.hpp>
#include <quire/model/resident_range.hpp>
#include <quire/model/retention.hpp>

#include <cstdint>
#include <limits>
#include <vector>

using namespace quire;

TEST_CASE("S2: a causal query sees itself and everything earlier", "[model]") {
  constexpr auto rule = attention_rule::causal();
  CHECK(rule.visible(token_pos{5}, token_pos{5}));
  CHECK(rule.visible(token_pos{5}, token_pos{0}));
  CHECK_FALSE(rule.visible(token_pos{5}, token_pos{6}));
  CHECK(rule.visible_count(token_pos{5}) == token_count{6});
}

TEST_CASE("S27: a window of w counts the query's own position", "[model]") {
  constexpr auto rule = attention_rule::sliding_window(token_count{3});
  CHECK_FALSE(rule.visible(token_pos{5}, token_pos{2}));
  CHECK(rule.visible(token_pos{5}, token_pos{3}));
  CHECK(rule.visible(token_pos{5}, token_pos{5}));
  CHECK_FALSE(rule.visible(token_pos{5}, token_pos{6}));
  constexpr auto one = attention_rule::sliding_window(token_count{1});
  CHECK(one.visible(token_pos{5}, token_pos{5}));
  CHECK_FALSE(one.visible(token_pos{5}, token_pos{4}));
}

TEST_CASE("B8: retained sinks stay visible, learned ones retain nothing", "[model]") {
  constexpr auto rule = attention_rule::sink_window({.sinks = token_count{2}, .window = token_count{3}});
  CHECK(rule.visible(token_pos{9}, token_pos{1}));
  CHECK_FALSE(rule.visible(token_pos{9}, token_pos{2}));
  CHECK_FALSE(rule.visible(token_pos{0}, token_pos{1})); // a sink ahead of the query is still ahead
  auto learned = attention_rule::sliding_window(token_count{3});
  learned.learned_sink = true;
  CHECK(retention::of(learned) == retention::sliding_window(token_count{3}));
  CHECK(retention::of(rule) == retention::sink_window({.sinks = token_count{2}, .window = token_count{3}}));
}

TEST_CASE("B8: a chunk is seen up to the query, and nothing before it", "[model]") {
  constexpr auto rule = attention_rule::chunked(token_count{4});
  CHECK(rule.visible(token_pos{7}, token_pos{4}));
  CHECK_FALSE(rule.visible(token_pos{8}, token_pos{7}));
  CHECK_FALSE(rule.visible(token_pos{5}, token_pos{6}));
  CHECK(rule.visible_count(token_pos{7}) == token_count{4});
  CHECK(rule.visible_count(token_pos{8}) == token_count{1});
}

TEST_CASE("S5: bidirectional layers have no append-only cache", "[model]") {
  CHECK(attention_rule::bidirectional().visible(token_pos{0}, token_pos{9}));
  CHECK_THROWS_WITH(retention::of(attention_rule::bidirectional()),
                    quire_test::ContainsSubstring("no append-only cache"));
  CHECK(retention::of(attention_rule::cross()) == retention::full());
  CHECK(attention_rule::cross().visible(token_pos{0}, token_pos{9}));
}

TEST_CASE("S27: impossible rules are refused with what would work", "[model]") {
  CHECK_THROWS_WITH(attention_rule::sliding_window(token_count{0}), quire_test::ContainsSubstring("at least 1"));
  CHECK_THROWS_WITH(attention_rule::chunked(token_count{0}), quire_test::ContainsSubstring("at least 1"));
  CHECK_THROWS_AS((attention_rule{.extent = token_count{4}}.validate()), config_error);
  CHECK_THROWS_AS((attention_rule{.sinks = token_count{4}}.validate()), config_error);
  CHECK_THROWS_AS((attention_rule{.soft_cap = -1.0F}.validate()), config_error);
  CHECK_THROWS_AS((attention_rule{.soft_cap = std::numeric_limits<float>::quiet_NaN()}.validate()), config_error);
  CHECK_THROWS_AS(retention::sliding_window(token_count{0}), config_error);
  CHECK_THROWS_AS(retention::chunked(token_count{0}), config_error);
  CHECK_THROWS_AS(retention::ring({.capacity = token_count{4}}), config_error);
}

TEST_CASE("case 119: a rule is clamped exactly when no sequence can tell the difference", "[model]") {
  std::vector<attention_rule> rules;
  for (std::uint32_t extent = 1; extent <= 12; ++extent) {
    for (std::uint32_t sinks = 0; sinks <= 4; ++sinks) {
      rules.push_back(attention_rule::sink_window({.sinks = token_count{sinks}, .window = token_count{extent}}));
    }
    rules.push_back(attention_rule::chunked(token_count{extent}));
  }
  for (auto const& rule : rules) {
    for (std::uint32_t length = 1; length <= 14; ++length) {
      bool same_as_causal = true;
      for (std::uint32_t query = 0; query < length; ++query) {
        for (std::uint32_t key = 0; key <= query; ++key) {
          same_as_causal = same_as_causal && rule.visible(token_pos{query}, token_pos{key});
        }
      }
      CAPTURE(name_of(rule.pattern), rule.extent.value(), rule.sinks.value(), length);
      REQUIRE((rule.clamped(token_count{length}) == attention_rule::causal()) == same_as_causal);
      if (!same_as_causal) { REQUIRE(rule.clamped(token_count{length}) == rule); }
    }
  }
  auto capped = attention_rule::sliding_window(token_count{8});
  capped.soft_cap = 50.0F;
  capped.learned_sink = true;
  auto const clamped = capped.clamped(token_count{8});
  CHECK(clamped.pattern == attention_pattern::causal);
  CHECK(clamped.soft_cap == 50.0F); // what is done to the scores stays
  CHECK(clamped.learned_sink);
}

TEST_CASE("S27: covers() says whether one retention keeps all that another keeps", "[model]") {
  std::vector<retention> all{retention::full()};
  for (std::uint32_t extent = 1; extent <= 7; ++extent) {
    for (std::uint32_t sinks = 0; sinks <= 3; ++sinks) {
      all.push_back(retention::sink_window({.sinks = token_count{sinks}, .window = token_count{extent}}));
      all.push_back(retention::ring(
          {.capacity = token_count{extent + sinks}, .window = token_count{extent}, .sinks = token_count{sinks}}));
    }
    all.push_back(retention::chunked(token_count{extent}));
  }
  for (auto const& more : all) {
    for (auto const& least : all) {
      bool covers = true;
      for (std::uint32_t query = 0; query < 64; ++query) {
        auto const a = resident_range(token_pos{query}, more, token_count{1});
        auto const b = resident_range(token_pos{query}, least, token_count{1});
        for (std::uint32_t p = 0; p < query; ++p) {
          covers = covers && (a.keeps(token_pos{p}) || !b.keeps(token_pos{p}));
        }
      }
      CAPTURE(name_of(more.kind), more.extent.value(), more.sinks.value());
      CAPTURE(name_of(least.kind), least.extent.value(), least.sinks.value());
      REQUIRE(more.covers(least) == covers);
    }
  }
}
