// SPDX-License-Identifier: Apache-2.0
// What generations share: resident prompts and kept output states (S22), samples and forks (B7).
#include <quire/generate/generator.hpp>
#include <quire/model/work.hpp>

#include "generate/toy_model.hpp"
#include "support/catch_compat.hpp"

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
