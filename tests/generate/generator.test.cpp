// SPDX-License-Identifier: Apache-2.0
// The loop: what is fed, what is chosen, when it ends, what it costs. The network is a hash of everything it reads.
#include <quire/generate/generator.hpp>
#include <quire/generate/no_clock.hpp>
#include <quire/generate/null_language_model.hpp>
#include <quire/model/work.hpp>

#include "generate/toy_model.hpp"
#include "support/catch_compat.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <type_traits>
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

TEST_CASE("S1: G outputs need one prefill and G - 1 forwards of one position") {
  auto s = toy_service<>{};
  auto const id = s.submit(ascending(5), 4);
  auto fed = std::vector<std::size_t>{};
  s.model.on_forward = [&](forward_batch const& batch) { fed.push_back(batch.tokens.size()); };
  s.run();
  CHECK(fed == std::vector<std::size_t>{5, 1, 1, 1});
  CHECK(s.generator.result(id).reason == stop_reason::limit);
  s.check_output(id);
}

TEST_CASE("S39: an empty prompt and G = 0 are refused, and nothing has changed") {
  auto s = toy_service<>{};
  auto const refused = [&](generation_request const& request) {
    auto const out = s.generator.submit(request);
    REQUIRE_FALSE(out.has_value());
    CHECK(s.generator.idle());
    CHECK_FALSE(out.error().message.empty());
    return out.error().code;
  };
  CHECK(refused(s.wanting({}, 1)) == errc::empty_prompt);
  CHECK(refused(s.wanting({1}, 0)) == errc::zero_output);
  auto ended = s.wanting({1}, 2);
  ended.state.output = {3, 4};
  CHECK(refused(ended) == errc::zero_output);
  CHECK(refused(s.wanting({1, -1}, 1)) == errc::out_of_range);
  CHECK(refused(s.wanting({1, 50}, 1)) == errc::out_of_range); // the vocabulary has 50
  CHECK(refused(s.wanting(ascending(40), 4096 - 40 + 2)) == errc::never_fits);
  CHECK(refused(s.wanting(ascending(40), 64 * 4 - 40 + 1)) == errc::never_fits);
  auto wrong = s.wanting({1}, 1);
  wrong.state.sampling.top_p = 0.0;
  CHECK_THROWS_AS(s.generator.submit(wrong), config_error);
  CHECK(s.generator.submit(s.wanting(ascending(40), 64 * 4 - 40)).has_value());
}

TEST_CASE("S39: the last position of the model is used, and one more is refused") {
  auto s = toy_service<>{};
  s.model.positions = tokens(12);
  CHECK(s.generator.submit(s.wanting(ascending(8), 6)).error().message ==
        "8 prompt tokens and 6 outputs need 13 positions and the model has 12: shorten the prompt or ask for fewer "
        "outputs");
  auto whole = s.wanting(ascending(8), 5);
  whole.last_output = last_output_rule::forward;
  CHECK_FALSE(s.generator.submit(whole).has_value());
  auto const id = s.submit(ascending(8), 5);
  s.run();
  CHECK(s.generator.result(id).covered == tokens(12));
}

TEST_CASE("S8: P = 4 and G = 3 take 6 positions and 21 pairs, a full recompute 15 and 46") {
  auto s = toy_service<>{};
  auto const id = s.submit(ascending(4), 3);
  s.run();
  auto const& r = s.generator.result(id);
  CHECK(r.computed == work{6, 21});
  CHECK(r.recompute == work{15, 46});
  CHECK(s.generator.computed() == work{6, 21});
  CHECK(s.generator.recompute() == work{15, 46});
  CHECK(r.computed == cached_work({tokens(4), tokens(3)}));
  CHECK(r.recompute == recompute_work({tokens(4), tokens(3)}));
  CHECK(s.model.positions_computed == 6);
}

TEST_CASE("S41: outputs and covered positions are two numbers, L = P + G - 1") {
  for (unsigned g = 1; g <= 6; ++g) {
    auto s = toy_service<>{};
    auto const id = s.submit(ascending(5), g);
    s.run();
    auto const& r = s.generator.result(id);
    CHECK(r.state.output.size() == g);
    CHECK(r.covered == tokens(5 + g - 1));
    CHECK(r.uncovered() == tokens(1));
  }
}

TEST_CASE("S41: a follow-up turn finds what the turn before has covered, with and without its last output") {
  for (auto const rule : {last_output_rule::leave, last_output_rule::forward}) {
    auto s = toy_service<>{};
    auto first = s.wanting(ascending(6), 6); // 12 tokens: three blocks of 4, if the last one is covered
    first.last_output = rule;
    auto const id = s.submit(first);
    s.run();
    auto const r = s.generator.take(id);
    auto const whole = rule == last_output_rule::forward;
    CHECK(r.covered == tokens(whole ? 12 : 11));
    CHECK(r.uncovered() == tokens(whole ? 0 : 1));
    CHECK(r.state.output.size() == 6);
    CHECK(r.times.outputs == tokens(6));
    CHECK(r.computed == (whole ? work{12, 78} : work{11, 66}));
    auto const next = s.submit(r.follow_up(ascending(3, 20)), 2);
    s.run();
    CHECK(s.generator.result(next).cached == tokens(whole ? 12 : 8));
    s.check_output(next);
  }
}

TEST_CASE("S41: 100 + 50 tokens are followed by 200: 148 are found in blocks of 4, never 150 (case 85)") {
  auto s = toy_service<>{small(128)};
  auto const id = s.submit(ascending(49), 50);
  s.run();
  auto first = s.generator.take(id);
  REQUIRE(first.state.output.size() == 50);
  auto prompt = ascending(49);
  for (quire::token_id i = 0; i < 51; ++i) { prompt.push_back(i % 49); }
  auto const turn = s.submit(prompt, 50);
  s.run();
  auto const r = s.generator.take(turn);
  CHECK(r.covered == tokens(149));
  auto const next = s.submit(r.follow_up(ascending(49)), 1);
  s.run();
  CHECK(s.generator.result(next).cached == tokens(148));
  s.check_output(next);
}

TEST_CASE("S40: TTFT runs from the entry, TPOT over the later outputs, and the end is their sum") {
  auto s = toy_service<>{small(8)}; // room for one of the two
  s.model.on_forward = [&](forward_batch const& batch) {
    s.time.advance(nanosecond_count{batch.tokens.size() * 100 + 7});
  };
  auto const a = s.submit(ascending(10), 12);
  auto late = s.wanting(ascending(12, 20), 9);
  late.entry = instant{400}; // the network took it in earlier
  auto const b = s.submit(late);
  s.run();
  auto const ta = s.generator.result(a).times;
  CHECK(ta.queue() == nanosecond_count{0});
  CHECK(ta.ttft() == nanosecond_count{1007});
  CHECK(ta.tpot() == 107.0);
  CHECK(ta.end_to_end() == nanosecond_count{1007 + 11 * 107});
  auto const tb = s.generator.result(b).times;
  CHECK(tb.queue() == nanosecond_count{600 + 1007 + 11 * 107}); // part of the TTFT, not beside it
  CHECK(tb.ttft() == nanosecond_count{600 + 1007 + 11 * 107 + 1207});
  CHECK(tb.tpot() == 107.0);
  CHECK(static_cast<double>(tb.end_to_end()->value()) == static_cast<double>(tb.ttft()->value()) + 8 * *tb.tpot());
}

TEST_CASE("S40: one output has no TPOT, and what has not happened has no time") {
  auto s = toy_service<>{};
  auto const id = s.submit(ascending(3), 1);
  CHECK_FALSE(s.generator.result(id).times.ttft().has_value());
  CHECK_FALSE(s.generator.result(id).times.queue().has_value());
  s.run();
  CHECK(s.generator.result(id).times.ttft() == s.generator.result(id).times.end_to_end());
  CHECK_FALSE(s.generator.result(id).times.tpot().has_value());
}

TEST_CASE("S39: chunks of a prompt change nothing but the number of steps") {
  for (unsigned chunk = 0; chunk <= 18; ++chunk) {
    auto s = toy_service<>{small(64), {.chunk = tokens(chunk)}};
    auto const id = s.submit(ascending(17), 6);
    s.run();
    s.check_output(id);
    CHECK(s.generator.result(id).computed == cached_work({tokens(17), tokens(6)}));
    CHECK(s.model.passes == (chunk == 0 ? 1 : (17 + chunk - 1) / chunk) + 5);
  }
}

TEST_CASE("S39: members join and leave a running batch") {
  auto s = toy_service<>{small(128), {.chunk = tokens(3), .max_members = 5}};
  auto ids = std::vector<generation_id>{};
  for (unsigned i = 0; i < 12; ++i) {
    ids.push_back(s.submit(ascending(1 + 3 * i % 17, static_cast<token_id>(i)), 1 + 5 * i % 11));
    s.step();
  }
  s.run();
  for (auto const id : ids) {
    s.check_output(id);
    CHECK(s.generator.result(id).reason == stop_reason::limit);
  }
  CHECK(s.cache.live_sequences() == sequence_count{0});
}

TEST_CASE("S19: rows permuted and swapped while running read their own caches (cases 75, 76)") {
  auto s = toy_service<>{small(128)};
  auto ids = std::vector<generation_id>{};
  for (unsigned i = 0; i < 6; ++i) { ids.push_back(s.submit(ascending(4 + i, static_cast<token_id>(7 * i)), 10 + i)); }
  auto seed = std::uint64_t{5};
  while (!s.generator.idle()) {
    s.step();
    auto order = s.generator.running();
    auto random = random_state{seed++};
    std::shuffle(order.begin(), order.end(), random);
    s.generator.reorder(order);
    CHECK(s.generator.running() == order);
  }
  for (auto const id : ids) { s.check_output(id); }
}

TEST_CASE(
    "S19: lengths and positions are values: advancing a cache moves no position that a step was given (case 77)") {
  using sequence = toy_service<>::cache_type::sequence;
  static_assert(!std::is_reference_v<decltype(std::declval<sequence const&>().length())>);
  static_assert(std::is_const_v<std::remove_reference_t<decltype(std::declval<batch_view const&>().position[0])>>);
  auto s = toy_service<>{small(64), {.chunk = tokens(4)}};
  auto const id = s.submit(ascending(10), 4);
  auto given = std::vector<std::int32_t>{};
  s.model.on_forward = [&](forward_batch const& batch) {
    auto const during = s.generator.sequence_of(id)->length();
    auto const q = static_cast<std::uint32_t>(batch.tokens.size());
    for (std::uint32_t i = 0; i < q; ++i) {
      CHECK(batch.view.position[i] == static_cast<std::int32_t>(during.value() + i)); // p, never p + 1
      given.push_back(batch.view.position[i]);
    }
  };
  while (!s.generator.idle()) {
    auto const* const seq = s.generator.sequence_of(id);
    auto const before = seq == nullptr ? token_count{} : seq->length();
    auto const fed = given.size();
    s.step();
    CHECK(before.value() == fed); // still the length before the step
  }
  auto want = std::vector<std::int32_t>(13);
  std::iota(want.begin(), want.end(), 0);
  CHECK(given == want);
}

TEST_CASE("S39: end tokens and stop sequences end a generation, and are no visible output") {
  auto s = toy_service<>{};
  auto plain = s.wanting(ascending(5), 12).state;
  static_cast<void>(s.model.network().recompute(plain));
  auto const said = plain.output;
  auto at = std::size_t{4}; // the first token there that was not said before
  while (std::find(said.begin(), said.begin() + static_cast<std::ptrdiff_t>(at), said[at]) !=
         said.begin() + static_cast<std::ptrdiff_t>(at)) {
    ++at;
  }
  auto const before = text(said.begin(), said.begin() + static_cast<std::ptrdiff_t>(at));
  auto with_end = s.wanting(ascending(5), 12);
  with_end.state.stop.end_tokens = {-5, said[at]};
  auto const a = s.submit(with_end);
  auto with_sequence = s.wanting(ascending(5), 12);
  with_sequence.state.stop.sequences = {
      {}, {said[0], said[2]}, {said[3], said[4]}, {4, 5, said[0]}, {said[2], said[3], said[4]}};
  auto const b = s.submit(with_sequence);
  s.run();
  auto const& ra = s.generator.result(a);
  CHECK(ra.reason == stop_reason::end_token);
  CHECK(ra.state.output.size() == at + 1);
  CHECK(ra.state.output.back() == said[at]);
  CHECK(text(ra.visible().begin(), ra.visible().end()) == before);
  CHECK(ra.covered == tokens(5 + static_cast<unsigned>(at)));
  auto const& rb = s.generator.result(b);
  CHECK(rb.reason == stop_reason::stop_sequence);
  CHECK(rb.state.output == text(said.begin(), said.begin() + 5)); // {4, 5, said[0]} begins in the prompt: not a match
  CHECK(text(rb.visible().begin(), rb.visible().end()) == text(said.begin(), said.begin() + 2)); // the longest one
}

TEST_CASE("S34: a saved state goes on elsewhere as if nothing had happened") {
  auto request = toy_service<>{}.wanting(ascending(7), 20);
  request.state.sampling = {.temperature = 0.9, .top_k = 20, .top_p = 0.95};
  request.state.random = random_state{77};
  auto expected = request.state;
  static_cast<void>(quire_test::toy_network{}.recompute(expected));
  for (unsigned stops = 1; stops < 20; stops += 3) {
    auto here = toy_service<>{};
    auto const id = here.submit(request);
    for (unsigned i = 0; i < stops; ++i) { here.step(); }
    auto saved = here.generator.result(id).state;
    CHECK(saved.output.size() == stops);
    auto copy = saved;
    CHECK(copy == saved);
    auto there = toy_service<>{small(40, 3)};
    auto resumed = there.wanting({}, 0);
    resumed.state = saved;
    auto const on = there.submit(resumed);
    there.run();
    CHECK(there.generator.result(on).state.output == expected.output);
    CHECK(there.generator.result(on).state == expected); // the random state too
    CHECK(here.generator.cancel(id));
  }
}

TEST_CASE("S34: randomness is each request's own: neighbours and order change no draw") {
  auto const sampled = [](toy_service<>& s, unsigned i) {
    auto out = s.wanting(ascending(3 + i), 10);
    out.state.sampling = {.temperature = 1.0};
    out.state.random = random_state{100 + i};
    return out;
  };
  auto together = toy_service<>{small(128), {.chunk = tokens(2)}};
  auto ids = std::vector<generation_id>{};
  for (unsigned i = 0; i < 5; ++i) { ids.push_back(together.submit(sampled(together, i))); }
  together.run();
  for (unsigned i = 0; i < 5; ++i) { together.check_output(ids[i], sampled(together, i).state); }
}

TEST_CASE("S26: a pass that fails changes nothing, and the step may be repeated") {
  auto s = toy_service<>{small(64), {.chunk = tokens(4)}};
  auto const a = s.submit(ascending(6), 8);
  auto const b = s.submit(ascending(11, 20), 8);
  for (unsigned i = 0; !s.generator.idle(); ++i) {
    if (i % 2 == 1) {
      auto const before = s.generator.result(a);
      s.model.fails_left = 1;
      CHECK(s.generator.step().error() == errc::not_supported);
      s.check();
      CHECK(s.generator.result(a).state == before.state);
      CHECK(s.generator.result(a).covered == before.covered);
    }
    s.step();
  }
  s.check_output(a);
  s.check_output(b);
  CHECK(s.generator.result(a).computed == cached_work({tokens(6), tokens(8)}));
}

TEST_CASE("S39: a model without a number to choose from fails its request alone") {
  auto s = toy_service<>{};
  auto const a = s.submit(ascending(6), 8);
  auto const b = s.submit(ascending(9, 20), 8);
  s.model.on_forward = [&](forward_batch const& batch) {
    if (batch.wanted.size() == 2 && s.model.passes == 4) {
      std::fill(batch.logits_of(0).begin(), batch.logits_of(0).end(), std::numeric_limits<float>::quiet_NaN());
    }
  };
  s.run();
  CHECK(s.generator.result(a).reason == stop_reason::failed);
  CHECK(s.generator.result(a).state.output.size() == 3);
  CHECK(s.generator.result(b).reason == stop_reason::limit);
  s.check_output(b);
  CHECK(s.cache.live_sequences() == sequence_count{0});
}

TEST_CASE("S39: names are never used twice, and a taken one is gone") {
  auto s = toy_service<>{};
  auto const a = s.submit(ascending(3), 1);
  s.run();
  static_cast<void>(s.generator.take(a));
  auto const b = s.submit(ascending(3), 1);
  CHECK(a != b);
  CHECK_THROWS_AS(s.generator.result(a), quire_test::contract_violation);
  CHECK_THROWS_AS(s.generator.take(b), quire_test::contract_violation); // not over
  CHECK_THROWS_AS(s.generator.result(generation_id{99}), quire_test::contract_violation);
  auto const twice = std::vector<generation_id>{b, b};
  CHECK_THROWS_AS(s.generator.reorder(twice), quire_test::contract_violation);
}

TEST_CASE("null models: the loop runs without network and clock") {
  auto cache = kv_cache<>{small(16)};
  auto const scope = cache.open_scope(compute_identity{quire_test::some_fields()}, quire_test::domain_of("t"));
  auto model = null_language_model{.tokens = 10};
  auto g = generator<kv_cache<>, null_language_model, no_clock>{cache, model};
  auto const id = g.submit({.scope = scope, .state = {.prompt = {1, 2}, .stop = {.limit = tokens(3)}}}).value();
  REQUIRE(g.run().has_value());
  CHECK(g.result(id).state.output == text{0, 0, 0});
  CHECK(g.result(id).times.ttft() == nanosecond_count{0});
}
