// SPDX-License-Identifier: Apache-2.0
// Guesses over windows: what is wrong is taken back, and who finds no room for guessing writes the same without it.
#include <quire/attention/oracle_backend.hpp>
#include <quire/cache/kv_cache.hpp>
#include <quire/core/types.hpp>
#include <quire/generate/generation_result.hpp>
#include <quire/generate/generator.hpp>
#include <quire/generate/no_clock.hpp>
#include <quire/identity/compute_identity.hpp>
#include <quire/model/attention_rule.hpp>
#include <quire/model/capacity.hpp>
#include <quire/model/dtype.hpp>
#include <quire/model/retention.hpp>

#include "generate/any_network.hpp"
#include "isolation/identity_fixtures.hpp"
#include "support/catch_compat.hpp"

#include <cstddef>
#include <span>

namespace {
using namespace quire;
using model_type = quire_test::paged_network<oracle_backend>;

// Guesses the tokens of the vocabulary in turn, whatever was said.
struct in_turn {
  auto propose(std::span<token_id const> text, std::span<token_id> out) -> std::size_t {
    for (std::size_t i = 0; i < out.size(); ++i) { out[i] = static_cast<token_id>((text.size() + i) % 3); }
    return out.size();
  }
};
using generator_type = generator<kv_cache<>, model_type, no_clock, in_turn>;

constexpr auto outputs = token_count{12};
constexpr auto window = token_count{3};

// Writes behind one prompt, in blocks of one position.
auto written(block_count window_blocks, token_count max_append, token_count draft) -> generation_result {
  auto const network =
      quire_test::any_network{{.layers = 2,
                               .rules = {attention_rule::causal(), attention_rule::sliding_window(window)},
                               .mixed = true,
                               .seed = 3}};
  auto cache = kv_cache<>{cache_options{
      .blocks = block_count{64},
      .block_tokens = token_count{1},
      .max_append = max_append,
      .groups = {{}, {.keeps = retention::sliding_window(window), .blocks = window_blocks, .block_tokens = {}}}}};
  auto const scope = cache.open_scope(compute_identity{quire_test::some_fields()}, quire_test::domain_of("a"));
  auto model = model_type{network, block_count{64}, token_count{1}, dtype::f64};
  auto g = generator_type{cache, model, {.draft = draft}};
  auto const id = g.submit({.scope = scope, .state = {.prompt = {1, 2, 1, 1, 2}, .stop = {.limit = outputs}}});
  REQUIRE(id.has_value());
  while (!g.idle()) { REQUIRE(g.step().has_value()); }
  REQUIRE(cache.audit().has_value());
  return g.result(*id);
}
} // namespace

TEST_CASE("B6: wrong guesses are taken back although a window has moved on") {
  auto const plain = written(block_count{64}, token_count{8}, token_count{});
  auto const guessing = written(block_count{64}, token_count{8}, token_count{3});
  CHECK(plain.reason == stop_reason::limit);
  CHECK(guessing.reason == stop_reason::limit);
  CHECK(guessing.state.output == plain.state.output);
  CHECK(guessing.drafted > guessing.accepted); // some guesses were wrong
  CHECK(guessing.covered == token_count{5 + outputs.value() - 1});
  CHECK(guessing.preemptions == plain.preemptions);
}

TEST_CASE("B6: whoever finds no room in a window for guesses writes the same without them") {
  auto const least = peak_blocks(retention::sliding_window(window), token_count{5} + outputs,
                                 {.block_tokens = token_count{1}, .step = token_count{1}}) +
                     block_count{1}; // one to copy into
  auto const plain = written(least, token_count{1}, token_count{});
  auto const guessing = written(least, token_count{1}, token_count{3});
  CHECK(plain.reason == stop_reason::limit);
  CHECK(guessing.reason == stop_reason::limit);
  CHECK(guessing.state.output == plain.state.output);
  CHECK(guessing.drafted == token_count{});
}
