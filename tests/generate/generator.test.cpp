// SPDX-License-Identifier: Apache-2.0
// The loop: what is fed, what is chosen, when it ends, what it costs. The network is a hash of everything it reads.
#include <quire/generate/generator.hpp>
#include <quire/generate/lookup_drafter.hpp>
#include <quire/generate/no_clock.hpp>
#include <quire/generate/null_language_model.hpp>
#include <quire/model/work.hpp>

#include "generate/toy_model.hpp"
#include "support/catch_compat.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {
using namespace quire;
using quire_test::ascending;
using text = quire_test::token_list;
using quire_test::toy_service;

struct optimistic_policies : default_policies {
  using admission = optimistic;
};

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

TEST_CASE("S25: cancel and time-out at any point free everything, and neighbours do not notice") {
  for (unsigned at = 0; at < 9; ++at) {
    for (auto const cancel : {true, false}) {
      auto s = toy_service<>{small(16), {.chunk = tokens(4)}};
      auto const keeps = s.submit(ascending(9), 8);
      auto const ends = s.submit(ascending(9, 20), 8);
      auto const waits = s.submit(ascending(9, 30), 30);
      for (unsigned i = 0; i < at; ++i) { s.step(); }
      CHECK((cancel ? s.generator.cancel(ends) : s.generator.time_out(ends)));
      s.check();
      CHECK_FALSE(s.generator.cancel(ends)); // once
      CHECK(s.generator.result(ends).reason == (cancel ? stop_reason::cancelled : stop_reason::timed_out));
      CHECK(s.generator.sequence_of(ends) == nullptr);
      CHECK(s.generator.cancel(waits));
      s.run();
      s.check_output(keeps);
      s.check_output(ends); // what it had said was right
      CHECK(s.cache.live_sequences() == sequence_count{0});
      CHECK(s.cache.promised_blocks() == block_count{0});
      CHECK_FALSE(s.generator.cancel(keeps));
    }
  }
}

TEST_CASE("S25: a time limit counts from the entry, in the queue and in the batch") {
  auto s = toy_service<>{small(8)};
  s.model.on_forward = [&](forward_batch const&) { s.time.advance(nanosecond_count{100}); };
  auto const limited = [&](text prompt, unsigned outputs, unsigned limit) {
    auto request = s.wanting(std::move(prompt), outputs);
    request.time_limit = nanosecond_count{limit};
    return s.submit(request);
  };
  auto const runs = limited(ascending(8), 20, 350);
  auto const waits = limited(ascending(8, 20), 20, 250);
  auto const lives = s.submit(ascending(8, 30), 20);
  s.run();
  CHECK(s.generator.result(runs).reason == stop_reason::timed_out);
  CHECK(s.generator.result(runs).state.output.size() == 4); // at 400 it is late
  CHECK(s.generator.result(runs).covered == tokens(11));
  CHECK(s.generator.result(waits).reason == stop_reason::timed_out);
  CHECK(s.generator.result(waits).state.output.empty());
  CHECK(s.generator.result(lives).reason == stop_reason::limit);
  s.check_output(lives);
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

TEST_CASE("S22: a resident prompt computes exactly its last position again, without writing it") {
  auto s = toy_service<>{};
  s.submit(ascending(12), 1);
  s.run();
  auto const before = s.model.positions_computed;
  auto const id = s.submit(ascending(12), 4);
  s.run();
  auto const& r = s.generator.result(id);
  CHECK(r.cached == tokens(11));
  CHECK(s.model.positions_computed - before == 1 + 3);
  CHECK(s.model.skipped_writes == 1);
  CHECK(r.computed == work{4, 12 + 13 + 14 + 15});
  CHECK(r.recompute == work{12 + 13 + 14 + 15, 78 + 91 + 105 + 120});
  s.check_output(id);
}

TEST_CASE("S22: a kept output state answers a resident prompt without any forward pass") {
  auto s = toy_service<>{small(64), {.kept_outputs = 2}};
  s.submit(ascending(12), 1);
  s.submit(ascending(13), 1);
  s.run();
  auto const before = s.model.positions_computed;
  auto const one = s.submit(ascending(12), 1);
  s.run();
  CHECK(s.model.positions_computed == before);
  CHECK(s.generator.result(one).cached == tokens(12));
  CHECK(s.generator.result(one).covered == tokens(12)); // L = P + G − 1
  CHECK(s.generator.result(one).computed == work{0, 0});
  s.check_output(one);
  auto const more = s.submit(ascending(12), 4);
  s.run();
  CHECK(s.model.positions_computed == before + 3);
  s.check_output(more);
  auto const partial = s.submit(ascending(13), 2); // its tail is nobody's shared block: computed again
  s.run();
  CHECK(s.model.positions_computed == before + 3 + 1 + 1);
  s.check_output(partial);
}

TEST_CASE("S22: kept output states stay in their scope, and new weights end them") {
  auto s = toy_service<>{small(64), {.kept_outputs = 8}};
  s.submit(ascending(12), 1);
  s.run();
  auto const ask = [&](text prompt, scope_number scope) {
    auto request = s.wanting(std::move(prompt), 1);
    request.scope = scope;
    auto const id = s.submit(request);
    s.run();
    return s.generator.result(id).computed;
  };
  auto const stranger = s.open("another tenant");
  CHECK(ask(ascending(16), stranger) == work{16, 136}); // nobody else's blocks
  CHECK(ask(ascending(12), stranger) == work{1, 12});   // its own blocks, and nobody else's logits
  s.generator.advance_epoch(running_requests::finish_privately);
  CHECK(ask(ascending(16), s.scope) == work{16, 136});
  CHECK(ask(ascending(12), s.scope) == work{1, 12}); // new blocks, and no logits of old weights
  CHECK(ask(ascending(12), s.scope) == work{0, 0});
}

TEST_CASE("S22: without skipped writes a kept output state is not used, since the last position would be missing") {
  auto options = small(64);
  options.skip_writes = false;
  auto s = toy_service<>{options, {.kept_outputs = 2}};
  s.submit(ascending(12), 1);
  s.run();
  auto const before = s.model.positions_computed;
  auto const id = s.submit(ascending(12), 3);
  s.run();
  CHECK(s.model.positions_computed == before + 3);
  s.check_output(id);
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

TEST_CASE("B7: samples share one prefill and fork behind it") {
  auto s = toy_service<>{small(128), {.chunk = tokens(4)}};
  auto request = s.wanting(ascending(10), 9);
  request.state.sampling = {.temperature = 1.0};
  request.state.random = random_state{3};
  auto const ids = s.generator.submit_samples(request, 4).value();
  s.run();
  REQUIRE(ids.size() == 4);
  for (unsigned i = 0; i < 4; ++i) {
    auto start = request.state;
    start.random = start.random.sibling(i);
    s.check_output(ids[i], start);
    CHECK(s.generator.result(ids[i]).cached == tokens(i == 0 ? 0 : 10));
    CHECK(s.generator.result(ids[i]).computed.positions == (i == 0 ? 10U : 0U) + 8);
  }
  CHECK(s.model.positions_computed == 10 + 4 * 8);
  CHECK(s.model.copies == 3); // at most one partial block each
  CHECK(s.generator.result(ids[1]).state.output != s.generator.result(ids[2]).state.output);
}

TEST_CASE("B7: samples get on without the first one, and without room wait for it") {
  SECTION("the first one is cancelled before the prompt is computed") {
    auto s = toy_service<>{small(64), {.chunk = tokens(4)}};
    auto const ids = s.generator.submit_samples(s.wanting(ascending(10), 5), 3).value();
    s.step();
    CHECK(s.generator.cancel(ids[0]));
    CHECK(s.generator.cancel(ids[2]));
    s.run();
    s.check_output(ids[1]);
    CHECK(s.generator.result(ids[1]).reason == stop_reason::limit);
  }
  SECTION("a sample is cancelled while it waits for the prompt") {
    auto s = toy_service<>{small(64), {.chunk = tokens(4)}};
    auto const ids = s.generator.submit_samples(s.wanting(ascending(10), 5), 3).value();
    CHECK(s.generator.cancel(ids[1]));
    s.run();
    CHECK(s.generator.result(ids[1]).state.output.empty());
    s.check_output(ids[2]);
  }
  SECTION("the pool holds two") {
    auto s = toy_service<>{small(9)};
    auto const ids = s.generator.submit_samples(s.wanting(ascending(10), 10), 4).value();
    s.run();
    for (auto const id : ids) {
      s.check_output(id);
      CHECK(s.generator.result(id).state.output.size() == 10);
    }
  }
  SECTION("one output each") {
    auto s = toy_service<>{};
    auto const ids = s.generator.submit_samples(s.wanting(ascending(10), 1), 3).value();
    auto const out = s.step();
    CHECK(out.size() == 3);
    CHECK(s.generator.idle());
    for (auto const id : ids) { CHECK(s.generator.result(id).covered == tokens(10)); }
  }
}

TEST_CASE("B7: a fork anywhere goes on from its parent's text, and neither notices the other") {
  for (unsigned at = 1; at < 8; ++at) {
    auto s = toy_service<>{small(64), {.chunk = tokens(5)}};
    auto request = s.wanting(ascending(9), 10);
    request.state.sampling = {.temperature = 1.0};
    request.state.random = random_state{11};
    auto const parent = s.submit(request);
    CHECK(s.generator.fork(parent, random_state{1}).error() == errc::illegal_transition); // it waits
    for (unsigned i = 0; i < at; ++i) { s.step(); }
    auto inherited = s.generator.result(parent).state;
    auto const child = s.generator.fork(parent, random_state{12}).value();
    s.check();
    CHECK(s.generator.result(child).state.output == inherited.output);
    s.run();
    s.check_output(parent, request.state);
    inherited.random = random_state{12};
    s.check_output(child, inherited);
    CHECK(s.generator.result(child).state.output.size() == 10);
    CHECK(s.generator.fork(parent, random_state{1}).error() == errc::illegal_transition); // it is over
    CHECK(s.model.copies <= 1);
  }
}

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

TEST_CASE("S24: without room the youngest loses its blocks, comes back, and says the same") {
  auto s = toy_service<optimistic_policies>{small(10)};
  auto ids = std::vector<generation_id>{};
  for (unsigned i = 0; i < 4; ++i) { ids.push_back(s.submit(ascending(6, static_cast<token_id>(9 * i)), 20)); }
  s.run();
  auto lost = 0U;
  for (auto const id : ids) {
    auto const& r = s.generator.result(id);
    CHECK(r.state.output.size() == 20);
    CHECK(r.covered == tokens(25));
    s.check_output(id);
    lost += r.preemptions;
    CHECK(r.computed.positions >= 25); // again after each loss
  }
  CHECK(lost > 0);
  CHECK(s.generator.result(ids[0]).preemptions == 0); // the oldest is sure to finish
  CHECK(s.cache.statistics().hit_tokens == 0);        // its own work is no hit
}

TEST_CASE("S35: new weights make running members start again, each with what it has said") {
  auto s = toy_service<>{small(64)};
  auto const a = s.submit(ascending(6), 8);
  auto const b = s.submit(ascending(9, 20), 8);
  for (unsigned i = 0; i < 3; ++i) { s.step(); }
  s.generator.advance_epoch(running_requests::must_restart);
  s.run();
  s.check_output(a);
  s.check_output(b);
  CHECK(s.generator.result(a).computed.positions == 6 + 2 + 9 + 4); // prompt and three outputs once more
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

TEST_CASE("S39: somebody else holds the pool: the step says so, and goes on later") {
  auto s = toy_service<>{small(8)};
  auto const prompt = ascending(30);
  auto other = s.cache.admit({.scope = s.scope, .prompt = prompt, .max_output = tokens(2)});
  REQUIRE(other.has_value());
  auto const id = s.submit(ascending(9, 10), 3);
  CHECK(s.generator.step().error() == errc::no_blocks);
  CHECK(s.generator.run().error() == errc::no_blocks);
  CHECK(s.generator.waiting() == 1);
  s.cache.release(std::move(*other));
  CHECK(s.generator.run().has_value());
  s.check_output(id);
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

TEST_CASE("S22: a hit whose copy is the one block too many is computed instead") {
  auto options = small(3);
  options.skip_writes = false;
  auto s = toy_service<>{options};
  s.submit(ascending(8), 1);
  s.run();
  auto const id = s.submit(ascending(8), 4); // 12 positions: the whole pool, and no block for a copy
  s.run();
  CHECK(s.generator.result(id).reason == stop_reason::limit);
  CHECK(s.generator.result(id).cached == tokens(0));
  s.check_output(id);
}

TEST_CASE("S17: the oldest finishes even where it holds blocks twice") {
  // What two compute at the same time is published by the first and kept twice by the other, until it ends.
  auto s = toy_service<optimistic_policies>{small(12, 1), {.chunk = tokens(1)}};
  auto const older = s.submit(ascending(3), 8);
  auto const younger = s.submit(ascending(3), 8);
  while (!s.generator.idle()) {
    s.step();
    auto order = s.generator.running();
    if (order.size() == 2 && order.front() == older) { std::swap(order[0], order[1]); }
    s.generator.reorder(order);
  }
  s.check_output(older);
  s.check_output(younger);
  CHECK(s.generator.result(older).reason == stop_reason::limit);
  CHECK(s.generator.result(younger).reason == stop_reason::limit);
  CHECK(s.generator.result(older).preemptions == 1); // alone, and yet without room
}

TEST_CASE("S41: who loses its blocks while it forwards its last output is over, with what it covers") {
  auto s = toy_service<>{};
  auto request = s.wanting(ascending(5), 3);
  request.last_output = last_output_rule::forward;
  auto const id = s.submit(request);
  for (auto i = 0; i < 3; ++i) { s.step(); }
  CHECK_FALSE(s.generator.result(id).over());
  SECTION("new weights") {
    s.generator.advance_epoch(running_requests::must_restart);
    s.run();
  }
  SECTION("cancelled") { CHECK(s.generator.cancel(id)); }
  CHECK(s.generator.result(id).reason == stop_reason::limit);
  CHECK(s.generator.result(id).covered == tokens(7));
  CHECK(s.generator.result(id).uncovered() == tokens(1));
}

TEST_CASE("S24: who has lost its blocks waits until somebody leaves, and does not come back to lose them again") {
  auto s = toy_service<optimistic_policies>{small(10, 1), {.chunk = tokens(3)}};
  auto ids = std::vector<generation_id>{};
  for (unsigned i = 0; i < 4; ++i) { ids.push_back(s.submit(ascending(5, static_cast<token_id>(2 * i)), 5)); }
  while (!s.generator.idle()) {
    s.step();
    auto order = s.generator.running();
    std::sort(order.begin(), order.end(), [](auto a, auto b) { return b < a; }); // the youngest takes its blocks first
    s.generator.reorder(order);
  }
  auto lost = 0U;
  for (auto const id : ids) {
    s.check_output(id);
    lost += s.generator.result(id).preemptions;
  }
  CHECK(lost == 5); // 7 if they came back at once
}
