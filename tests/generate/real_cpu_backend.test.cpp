// SPDX-License-Identifier: Apache-2.0
// The trained model through the library's CPU backend. It adds up in an order that depends on how many queries come
// together, so that logits agree within rounding where those of real_model.test.cpp are the same to the last bit.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O2")
#endif
#include "generate/stories.hpp"
#include "support/catch_compat.hpp"

#include <quire/attention/cpu_backend.hpp>
#include <quire/generate/lookup_drafter.hpp>

#include <algorithm>
#include <vector>

namespace {
using namespace quire;
using quire_test::base_run;
using quire_test::distance;
using quire_test::stories;

auto tokens(unsigned n) { return token_count{n}; }

template <class Policies = default_policies, class Drafter = no_drafter>
using fast_teller = quire_test::storyteller<Policies, Drafter, cpu_backend>;
} // namespace

TEST_CASE("S43: through the CPU backend the real model agrees with its float64 reference", "[real]") {
  auto const* const data = stories::find();
  if (data == nullptr) { return; }
  for (std::size_t i = 0; i < data->cases(); ++i) {
    auto s = fast_teller<>{*data};
    auto const id = s.submit_case(i);
    s.run();
    auto const& golden = data->golden["cases"][i];
    auto const& out = s.outputs[id];
    CHECK(distance(out.logits.front(), golden["prompt_logits"]) < 1e-4);
    CHECK(distance(out.logits.back(), golden["final_logits"]) < 1e-4);
    auto text = out.tokens;
    text.pop_back();
    CHECK(text == data->greedy(i));
  }
}

TEST_CASE("S43: through the CPU backend chunks of 1 to 17 tokens say the same, rows permuted", "[real]") {
  auto const* const data = stories::find();
  if (data == nullptr) { return; }
  auto random = random_state{6};
  for (unsigned chunk = 1; chunk <= 17; ++chunk) {
    INFO("chunk " << chunk);
    auto s = fast_teller<>{*data, 5, {.chunk = tokens(chunk)}};
    auto const ids = s.submit_cases();
    while (!s.generator.idle()) {
      s.step();
      auto order = s.generator.running();
      std::shuffle(order.begin(), order.end(), random);
      s.generator.reorder(order);
    }
    for (std::size_t i = 0; i < ids.size(); ++i) { s.check_case_near(i, ids[i], base_run(*data)); }
  }
}

TEST_CASE("S43: through the CPU backend every block size says the same, prefixes found and guesses cut off", "[real]") {
  auto const* const data = stories::find();
  if (data == nullptr) { return; }
  for (auto const block_tokens : {1U, 2U, 3U, 5U, 16U, 17U}) {
    INFO("blocks of " << block_tokens);
    auto s = fast_teller<default_policies, lookup_drafter>{*data, block_tokens, {.draft = tokens(4)}};
    for (auto round = 0; round < 2; ++round) { // the second time everything is found
      auto const ids = s.submit_cases();
      s.run();
      for (std::size_t i = 0; i < ids.size(); ++i) { s.check_case_near(i, ids[i], base_run(*data)); }
    }
  }
}

TEST_CASE("S43: through the CPU backend forks, moved and preempted blocks say the same", "[real]") {
  auto const* const data = stories::find();
  if (data == nullptr) { return; }
  auto s = fast_teller<quire_test::optimistic_stories>{*data, 4, {.chunk = tokens(8)}, 70};
  auto const ids = s.submit_cases();
  auto forks = std::vector<generation_id>{};
  for (unsigned i = 0; !s.generator.idle(); ++i) {
    s.step();
    auto const moves = s.cache.compact();
    REQUIRE(moves.has_value());
    REQUIRE(s.network.run(*moves).has_value());
    if (i % 9 == 4 && s.generator.sequence_of(ids[0]) != nullptr) { // without a block for its tail it is refused
      if (auto const id = s.generator.fork(ids[0], random_state{})) { forks.push_back(*id); }
    }
  }
  for (std::size_t i = 0; i < ids.size(); ++i) { s.check_case_near(i, ids[i], base_run(*data)); }
  for (auto const id : forks) { CHECK(s.generator.result(id).state.output == base_run(*data)[0].tokens); }
  CHECK_FALSE(forks.empty());
}
