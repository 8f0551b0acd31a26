// SPDX-License-Identifier: Apache-2.0
// Selective eviction of a full-attention layer: who stays, against a search, and that it is a mode with a name.
#include <quire/core/config_error.hpp>
#include <quire/core/types.hpp>
#include <quire/identity/cache_format.hpp>
#include <quire/identity/compute_identity.hpp>
#include <quire/model/model_spec.hpp>
#include <quire/model/retention.hpp>

#include "heavy_hitters/heavy_hitters.hpp"
#include "isolation/identity_fixtures.hpp"
#include "mathematics/numbers.hpp"
#include "support/catch_compat.hpp"
#include "support/throwing_contract.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace {
using namespace quire;
using heavy_hitters_example::heavy_hitters;

auto policy_of(std::uint32_t budget, std::uint32_t recent) -> heavy_hitters {
  return heavy_hitters{{.budget = token_count{budget}, .recent = token_count{recent}}};
}
} // namespace

TEST_CASE("S6: heavy hitters keep the positions of most weight and the latest ones") {
  for (std::uint32_t budget = 1; budget <= 9; ++budget) {
    for (std::uint32_t recent = 0; recent <= budget; ++recent) {
      auto draw = quire_test::numbers{budget * 10 + recent};
      auto policy = policy_of(budget, recent);
      auto weight = std::map<std::uint32_t, double>{}; // of all that is still there, by position
      for (std::uint32_t at = 0; at < 60; ++at) {
        policy.append(token_pos{at});
        weight[at] = 0.0;
        auto given = std::vector<double>{};
        for (auto& [_, sum] : weight) {
          given.push_back((draw.next() + 1.0) * (draw.below(5) == 0 ? 3.0 : 0.1));
          sum += given.back();
        }
        policy.observe(given);
        auto expected = std::vector<token_pos>{};
        while (weight.size() > budget) { // by hand: the least of those with at least `recent` others behind them
          auto victim = UINT32_MAX;
          for (auto const& [position, sum] : weight) {
            auto behind = std::size_t{0};
            for (auto const& [later, _] : weight) { behind += later > position ? 1U : 0U; }
            if (behind >= recent && (victim == UINT32_MAX || sum < weight[victim])) { victim = position; }
          }
          expected.emplace_back(victim);
          weight.erase(victim);
        }
        auto const got = policy.evict();
        auto stays = std::vector<std::uint32_t>{};
        for (auto const& one : policy.kept()) { stays.push_back(one.position.value()); }
        auto wanted = std::vector<std::uint32_t>{};
        for (auto const& [position, _] : weight) { wanted.push_back(position); }
        CAPTURE(budget, recent, at);
        REQUIRE(got == expected);
        REQUIRE(stays == wanted);
      }
    }
  }
}

TEST_CASE("S6: selective eviction is a mode with a name, and other sizes are another one") {
  auto const a = policy_of(40, 16).mode_name();
  CHECK(a == "heavy_hitters/budget=40/recent=16");
  CHECK(a != policy_of(40, 8).mode_name());
  CHECK(a != policy_of(16, 16).mode_name());
  auto exact = quire_test::some_fields();
  auto lossy = quire_test::some_fields();
  lossy.format = cache_format::approximate(a);
  auto other = quire_test::some_fields();
  other.format = cache_format::approximate(policy_of(40, 8).mode_name());
  CHECK(compute_identity{exact} != compute_identity{lossy});
  CHECK(compute_identity{other} != compute_identity{lossy});
}

TEST_CASE("S27: a full-attention layer that keeps less is refused unless its mode has a name") {
  auto description = model_description{.max_positions = token_count{4096}};
  auto layer = layer_spec{.query_heads = 1, .kv_heads = 1, .key_width = 8, .value_width = 8};
  layer.keeps = retention::sink_window({.sinks = token_count{4}, .window = token_count{36}});
  description.layers = {layer};
  CHECK_THROWS_AS(model_spec{description}, config_error);
  description.approximation = policy_of(40, 16).mode_name();
  CHECK(model_spec{description}.execution_mode() == "heavy_hitters/budget=40/recent=16");
}

TEST_CASE("S6: impossible sizes and foreign weights are refused") {
  CHECK_THROWS_AS(policy_of(0, 0), config_error);
  CHECK_THROWS_AS(policy_of(4, 5), config_error);
  auto policy = policy_of(2, 1);
  policy.append(token_pos{3});
  CHECK_THROWS_AS(policy.append(token_pos{3}), quire_test::contract_violation);
  CHECK_THROWS_AS(policy.observe(std::vector<double>{1.0, 2.0}), quire_test::contract_violation);
}
