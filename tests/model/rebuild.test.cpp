// SPDX-License-Identifier: Apache-2.0

/// \file
/// How far back lost windows reach, against a dependency search.

#include "support/catch_compat.hpp"

#include <quire/model/model_spec.hpp>
#include <quire/model/presets.hpp>
#include <quire/model/rebuild.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace {

using namespace quire;

auto layer(attention_rule rule) -> layer_spec {
  return {.query_heads = 4, .kv_heads = 2, .key_width = 8, .value_width = 8, .rule = rule};
}
auto window(std::uint32_t w) -> layer_spec { return layer(attention_rule::sliding_window(token_count{w})); }

// Marks, from the next query at `length` downwards, which lost keys are needed and which inputs they need; returns
// the first position at which any layer must compute anything.
auto search(model_spec const& model, std::uint32_t length) -> std::uint32_t {
  auto const layers = model.layers();
  std::vector<std::vector<bool>> input(layers + 1, std::vector<bool>(length + 1, false));
  std::vector<std::vector<bool>> keys(layers, std::vector<bool>(length + 1, false));
  input[layers][length] = true; // the next query runs through all layers
  for (auto l = layers; l-- > 0;) {
    auto const owner = model.owner_of(layer_id{l}).value();
    auto const lost = !model.group(model.group_of(layer_id{l})).keeps.keeps_all();
    for (std::uint32_t query = 0; query <= length; ++query) {
      if (input[l + 1][query]) {
        input[l][query] = true;
        for (std::uint32_t key = 0; key < length && lost; ++key) {
          if (model.layer(layer_id{l}).rule.visible(token_pos{query}, token_pos{key})) { keys[owner][key] = true; }
        }
      }
    }
    if (owner == l) {
      for (std::uint32_t key = 0; key < length; ++key) {
        if (keys[l][key]) { input[l][key] = true; }
      }
    }
  }
  std::uint32_t first = length;
  for (std::uint32_t p = 0; p < length; ++p) {
    for (std::uint32_t l = 0; l < layers; ++l) { first = input[l][p] ? std::min(first, p) : first; }
  }
  return first;
}

} // namespace

TEST_CASE("S28: rebuilding N_w stacked windows recomputes N_w·(w−1) positions", "[model]") {
  auto const model = presets::gemma3_27b();
  constexpr auto length = token_count{131072};
  CHECK((token_pos{} + length - rebuild_start(model, length)).value() == 52U * 1023U);
  CHECK(rebuild_start(model, token_count{1000}) == token_pos{});                    // no more than there is
  CHECK(rebuild_start(presets::llama3_8b(), token_count{8000}) == token_pos{8000}); // nothing is lost
}

TEST_CASE("S28: the rebuild range equals a search of what depends on what", "[model]") {
  auto borrower = window(3);
  borrower.borrows = layer_id{1};
  auto late = window(2);
  late.borrows = layer_id{0};
  std::vector<std::vector<layer_spec>> const stacks{
      {window(4)},
      {window(4), window(4), window(4)},
      {layer(attention_rule::causal()), window(5), layer(attention_rule::causal()), window(2)},
      {layer(attention_rule::chunked(token_count{6})), window(4), layer(attention_rule::chunked(token_count{4}))},
      {window(1), window(1)},
      {layer(attention_rule::causal()), window(5), borrower, window(3)},
      {window(6), layer(attention_rule::causal()), window(4), late},
  };
  for (auto const& layers : stacks) {
    auto const model = model_spec{{.layers = layers, .max_positions = token_count{1024}}};
    for (std::uint32_t length = 0; length <= 40; ++length) {
      CAPTURE(layers.size(), length);
      REQUIRE(rebuild_start(model, token_count{length}).value() == search(model, length));
    }
  }
}
