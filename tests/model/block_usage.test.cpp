// SPDX-License-Identifier: Apache-2.0

/// \file
/// Waste and table bytes per block size.

#include "support/catch_compat.hpp"

#include <quire/core/config_error.hpp>
#include <quire/model/block_usage.hpp>
#include <quire/model/model_spec.hpp>

#include <cstdint>
#include <utility>
#include <vector>

namespace {

using namespace quire;

auto model_of(std::vector<attention_rule> rules) -> model_spec {
  model_description out{.max_positions = token_count{4096}};
  for (auto const& rule : rules) {
    out.layers.push_back({.query_heads = 8, .kv_heads = 8, .key_width = 128, .value_width = 128, .rule = rule});
  }
  return model_spec{std::move(out)};
}

} // namespace

TEST_CASE("S16: blocks, waste and table bytes of a length distribution", "[model]") {
  auto const model = model_of({attention_rule::causal()});
  std::vector<token_count> const lengths{token_count{0}, token_count{1}, token_count{4}, token_count{10}};
  auto const four = usage_of(model, lengths, token_count{4});
  CHECK(four.blocks == 1 + 1 + 3);
  CHECK(four.slots == 20);
  CHECK(four.used == 15);
  CHECK(four.wasted() == 5);
  CHECK(four.wasted_bytes().value() == 5 * 4096);
  CHECK(four.table_bytes.value() == 5 * 4);
  CHECK(four.utilisation() == quire_test::approx(0.75));
  auto const one = usage_of(model, lengths, token_count{1});
  CHECK(one.wasted() == 0);
  CHECK(one.table_bytes.value() == 15 * 4);
  CHECK(one.utilisation() == 1.0);
  for (std::uint32_t block = 1; block <= 20; ++block) {
    CHECK(usage_of(model, lengths, token_count{block}).wasted() < lengths.size() * block); // < B · p_b together
  }
  CHECK(usage_of(model, {}, token_count{4}).utilisation() == 1.0);
  CHECK_THROWS_AS(usage_of(model, lengths, token_count{0}), config_error);
}

TEST_CASE("S16: a window's blocks waste at both ends", "[model]") {
  auto const model = model_of({attention_rule::sliding_window(token_count{4})});
  std::vector<token_count> const lengths{token_count{10}};
  // the query at 9 needs 6..9; blocks of 4: [4, 8) and [8, 12)
  auto const usage = usage_of(model, lengths, token_count{4});
  CHECK(usage.blocks == 2);
  CHECK(usage.used == 4);
  CHECK(usage.wasted() == 4);
}

TEST_CASE("S16: groups add up", "[model]") {
  std::vector<token_count> const lengths{token_count{10}, token_count{33}};
  auto const both = usage_of(model_of({attention_rule::causal(), attention_rule::sliding_window(token_count{4})}),
                             lengths, token_count{4});
  auto const full = usage_of(model_of({attention_rule::causal()}), lengths, token_count{4});
  auto const window = usage_of(model_of({attention_rule::sliding_window(token_count{4})}), lengths, token_count{4});
  CHECK(both.blocks == full.blocks + window.blocks);
  CHECK(both.held_bytes == full.held_bytes + window.held_bytes);
  CHECK(both.used_bytes == full.used_bytes + window.used_bytes);
}

TEST_CASE("S16: the waste formula gives the published shares for a mean of 12,035 tokens", "[model]") {
  CHECK(expected_waste(12035, token_count{16}) * 100 == quire_test::approx(0.06).margin(0.005));
  CHECK(expected_waste(12035, token_count{64}) * 100 == quire_test::approx(0.26).margin(0.005));
  CHECK(expected_waste(12035, token_count{512}) * 100 == quire_test::approx(2.0).margin(0.1));
  CHECK(expected_waste(100, token_count{1}) == 0.0);
  CHECK_THROWS_AS(expected_waste(0, token_count{16}), config_error);

  // and it is the exact waste where remainders are uniform
  auto const model = model_of({attention_rule::causal()});
  std::vector<token_count> lengths;
  for (std::uint32_t length = 161; length <= 320; ++length) { // ten full periods of 16
    lengths.push_back(token_count{length});
  }
  auto const usage = usage_of(model, lengths, token_count{16});
  CHECK(1.0 - usage.utilisation() == quire_test::approx(expected_waste(240.5, token_count{16})));
}
