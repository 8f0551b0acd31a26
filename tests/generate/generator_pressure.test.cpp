// SPDX-License-Identifier: Apache-2.0
// Ends and losses: cancel, time-out, preemption, new weights, a pool that is too small.
#include <quire/generate/generator.hpp>
#include <quire/model/work.hpp>

#include "generate/toy_model.hpp"
#include "support/catch_compat.hpp"

#include <algorithm>
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
      CHECK(s.cache.figures(group_id{0}).promised == block_count{0});
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
