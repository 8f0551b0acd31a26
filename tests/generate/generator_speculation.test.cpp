// SPDX-License-Identifier: Apache-2.0
// Guessing ahead (B6): what was wrong is cut off, what comes out is what comes out without guesses.
#include <quire/generate/generator.hpp>
#include <quire/generate/lookup_drafter.hpp>

#include "generate/toy_model.hpp"
#include "support/catch_compat.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace {
using namespace quire;
using quire_test::ascending;
using text = quire_test::token_list;
using quire_test::toy_service;

auto tokens(unsigned n) { return token_count{n}; }
auto small(unsigned blocks, unsigned block_tokens = 4) { return toy_service<>::small(blocks, block_tokens); }
} // namespace

namespace {
/// Guesses right for a while and wrong then.
struct oracle_drafter {
  quire_test::toy_network network{};
  unsigned right = 0;
  unsigned asked = 0;
  auto propose(std::span<token_id const> so_far, std::span<token_id> guesses) -> std::size_t {
    auto all = text(so_far.begin(), so_far.end());
    auto const good = right == 100 ? asked++ % (guesses.size() + 2) : right; // 100: another number each time
    for (std::size_t i = 0; i < guesses.size(); ++i) {
      auto const best = token_sampler::greedy(network.logits_of(all)).value();
      guesses[i] = i < good ? best : (best + 1) % 50;
      all.push_back(guesses[i]);
    }
    return guesses.size();
  }
};
static_assert(drafter<oracle_drafter>);
} // namespace

TEST_CASE("B6: guesses are verified, wrong ones cut off, and the outputs are the same (cases 79, 80)") {
  for (unsigned right : {0U, 1U, 2U, 3U, 5U, 100U}) {
    for (unsigned k : {1U, 2U, 4U}) {
      auto s = toy_service<default_policies, oracle_drafter>{
          small(64), {.draft = tokens(k)}, oracle_drafter{.right = right}};
      auto const id = s.submit(ascending(6), 15);
      while (!s.generator.idle()) {
        s.step();
        auto const& r = s.generator.result(id);
        CHECK(r.covered == tokens(6 + static_cast<unsigned>(r.state.output.size()) - 1)); // after every round
        if (auto const* const held = s.generator.sequence_of(id)) {
          CHECK(held->resolved() == held->length());
          CHECK(held->shared_blocks() == block_count{held->length().value() / 4}); // published as verified, no more
        }
      }
      s.check_output(id);
      auto const& r = s.generator.result(id);
      CHECK(r.state.output.size() == 15);
      if (right == 0) { CHECK(r.accepted == tokens(0)); }
      if (right == 5) {
        CHECK(r.accepted == r.drafted);
        CHECK(s.model.passes == 1 + (14 + k) / (k + 1));
      }
      CHECK(r.computed.positions == s.model.positions_computed);
      // what the index holds is what was said: a second request finds it and says the same
      auto again = text(ascending(6));
      again.insert(again.end(), r.state.output.begin(), r.state.output.end());
      auto const after = s.submit(again, 3);
      s.run();
      s.check_output(after);
    }
  }
}

TEST_CASE("B6: a stop inside accepted guesses covers what was said and no more") {
  auto plain = toy_service<>{}.wanting(ascending(6), 12).state;
  static_cast<void>(quire_test::toy_network{}.recompute(plain));
  for (std::size_t at = 1; at < 6; ++at) {
    auto s = toy_service<default_policies, oracle_drafter>{small(64), {.draft = tokens(8)}, oracle_drafter{.right = 8}};
    auto request = s.wanting(ascending(6), 12);
    request.state.stop.sequences = {{plain.output[at - 1], plain.output[at]}};
    auto const id = s.submit(request);
    s.run();
    auto const& r = s.generator.result(id);
    CHECK(r.reason == stop_reason::stop_sequence);
    CHECK(r.state.output == text(plain.output.begin(), plain.output.begin() + static_cast<std::ptrdiff_t>(at) + 1));
    CHECK(r.covered == tokens(6 + static_cast<unsigned>(at)));
  }
}

TEST_CASE("B6: sampled choices are the same with and without guesses") {
  auto s = toy_service<default_policies, lookup_drafter>{small(128), {.draft = tokens(3)}, lookup_drafter{tokens(1)}};
  auto request = s.wanting(ascending(30), 40);
  request.state.sampling = {.temperature = 1.0, .top_k = 10};
  request.state.random = random_state{21};
  auto const id = s.submit(request);
  s.run();
  s.check_output(id, request.state);
  CHECK(s.generator.result(id).drafted > tokens(0));
}

TEST_CASE("B6: a step of n positions cut off by n leaves the sequence as it was, and more is refused (case 82)") {
  for (unsigned n = 1; n <= 9; ++n) {
    auto s = toy_service<>{};
    auto const prompt = ascending(6);
    auto seq = s.cache.admit({.scope = s.scope, .prompt = prompt, .max_output = tokens(12)}).value();
    auto logits = std::vector<float>(s.model.vocabulary());
    auto const feed = [&](text const& fed, bool known) {
      auto const item =
          known
              ? typename toy_service<>::cache_type::step_item{seq, std::span{fed}}
              : typename toy_service<>::cache_type::step_item{seq, token_count{static_cast<std::uint32_t>(fed.size())}};
      auto plan = s.cache.plan_step({&item, 1}).value();
      REQUIRE(s.model.run(plan.launch()).has_value());
      std::uint32_t const last[] = {static_cast<std::uint32_t>(fed.size() - 1)};
      REQUIRE(s.model.forward({.view = plan.view(), .tokens = fed, .wanted = last, .logits = logits}).has_value());
      REQUIRE(s.cache.commit(std::move(plan)).has_value());
    };
    feed(prompt, true);
    auto const length = seq.length();
    auto const resolved = seq.resolved();
    auto const shared = seq.shared_blocks();
    auto const blocks = std::vector<block_id>(seq.blocks().begin(), seq.blocks().end());
    auto const available = s.cache.figures(group_id{0}).available;
    feed(ascending(n, 30), false);
    CHECK(seq.length() == length + tokens(n));
    CHECK(s.cache.drop_last(seq, tokens(6 + n + 1)).error() == errc::out_of_range);
    CHECK(seq.length() == length + tokens(n)); // refused, and nothing has changed
    REQUIRE(s.cache.drop_last(seq, tokens(n)).has_value());
    CHECK(seq.length() == length);
    CHECK(seq.resolved() == resolved);
    CHECK(seq.shared_blocks() == shared);
    CHECK(std::vector<block_id>(seq.blocks().begin(), seq.blocks().end()) == blocks);
    CHECK(s.cache.figures(group_id{0}).available == available);
    s.check();
    feed({7}, true); // what follows reads the bytes of before
    auto whole = prompt;
    whole.push_back(7);
    CHECK(logits == s.model.network().logits_of(whole));
    s.cache.release(std::move(seq));
  }
}
