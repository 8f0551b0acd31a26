// SPDX-License-Identifier: Apache-2.0

/// \file
/// Operation counts against counting.

#include "support/catch_compat.hpp"

#include <quire/core/config_error.hpp>
#include <quire/model/work.hpp>

#include <cstdint>
#include <vector>

namespace {

using namespace quire;

constexpr auto lengths(std::uint32_t prompt, std::uint32_t output) -> generation_lengths {
  return {.prompt = token_count{prompt}, .output = token_count{output}};
}

auto counted(std::uint32_t cached, std::uint32_t appended, attention_rule const& rule) -> work {
  work out{};
  for (auto query = cached; query < cached + appended; ++query) {
    ++out.positions;
    for (std::uint32_t key = 0; key <= query; ++key) {
      out.pairs += rule.visible(token_pos{query}, token_pos{key}) ? 1U : 0U;
    }
  }
  return out;
}

} // namespace

TEST_CASE("S8: P = 4, G = 3 is 15 positions and 46 pairs recomputed, 6 and 21 cached", "[model]") {
  CHECK(recompute_work(lengths(4, 3)) == work{.positions = 15, .pairs = 46});
  CHECK(cached_work(lengths(4, 3)) == work{.positions = 6, .pairs = 21});
  CHECK(cached_work(lengths(4, 1)) == work{.positions = 4, .pairs = 10}); // S1: no forward of the last output
}

TEST_CASE("S8: forward work equals counting, for every rule", "[model]") {
  std::vector<attention_rule> rules{attention_rule::causal()};
  for (std::uint32_t extent = 1; extent <= 9; ++extent) {
    rules.push_back(attention_rule::sliding_window(token_count{extent}));
    rules.push_back(attention_rule::chunked(token_count{extent}));
    rules.push_back(attention_rule::sink_window({.sinks = token_count{3}, .window = token_count{extent}}));
  }
  for (auto const& rule : rules) {
    for (std::uint32_t cached = 0; cached <= 20; ++cached) {
      for (std::uint32_t appended = 0; appended <= 20; ++appended) {
        REQUIRE(forward_work(token_pos{cached}, token_count{appended}, rule) == counted(cached, appended, rule));
      }
    }
  }
}

TEST_CASE("S8: pairs without a cache are cubic in G, with one quadratic", "[model]") {
  auto const third = [](std::uint32_t g) { // third difference of the pairs over G
    auto const f = [](std::uint32_t n) { return recompute_work(lengths(5, n)).pairs; };
    return f(g + 3) + 3 * f(g + 1) - 3 * f(g + 2) - f(g);
  };
  auto const second = [](std::uint32_t g) {
    auto const f = [](std::uint32_t n) { return cached_work(lengths(5, n)).pairs; };
    return f(g + 2) + f(g) - 2 * f(g + 1);
  };
  for (std::uint32_t g = 1; g <= 30; ++g) {
    CHECK(third(g) == 1);
    CHECK(second(g) == 1);
  }
}

TEST_CASE("S8: empty prompts and outputs are refused, and counts never wrap", "[model]") {
  CHECK_THROWS_AS(cached_work(lengths(0, 3)), config_error);
  CHECK_THROWS_AS(cached_work(lengths(3, 0)), config_error);
  CHECK_THROWS_AS(recompute_work(lengths(0, 3)), config_error);
  CHECK_THROWS_AS(recompute_work(lengths(3, 0)), config_error);
  CHECK(forward_work(token_pos{}, token_count{UINT32_MAX}).pairs == (std::uint64_t{UINT32_MAX} + 1) / 2 * UINT32_MAX);
  work much{.positions = UINT64_MAX, .pairs = 0};
  CHECK_THROWS_AS((much += work{.positions = 1, .pairs = 0}), config_error);
}
