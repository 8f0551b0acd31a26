// SPDX-License-Identifier: Apache-2.0
// What is said is written down once, everywhere; and what is kept answers later prompts.
#include <quire/core/types.hpp>
#include <quire/generate/detail/generation_record.hpp>
#include <quire/generate/detail/output_log.hpp>

#include "support/catch_compat.hpp"

#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace {
using namespace quire;
using text = std::vector<token_id>;

struct no_hold {};
using record = detail::generation_record<no_hold>;

auto asking(text prompt, unsigned limit) -> record {
  auto m = record{};
  m.id = generation_id{7};
  m.result.state = {.prompt = prompt, .stop = {.limit = token_count{limit}}};
  m.text = std::move(prompt);
  return m;
}
auto const likes_one = std::vector<float>{0.0F, 2.0F, 1.0F};
auto const likes_two = std::vector<float>{0.0F, 1.0F, 2.0F};
auto values(std::span<float const> logits) -> std::vector<float> { return {logits.begin(), logits.end()}; }
} // namespace

TEST_CASE("S39: an output stands in the text, in the state, in the times and among those of the step") {
  auto log = detail::output_log{{}, 3};
  auto m = asking({5, 6}, 2);
  log.reserve(2);
  CHECK(log.say(m, likes_one, instant{10}) == stop_reason::none);
  CHECK(log.say(m, likes_two, instant{30}) == stop_reason::limit);
  CHECK(m.text == text{5, 6, 1, 2});
  CHECK(m.result.state.output == text{1, 2});
  CHECK(m.result.times.first_output == instant{10});
  CHECK(m.result.times.last_output == instant{30});
  CHECK(m.result.times.outputs == token_count{2});
  auto const out = log.emitted();
  REQUIRE(out.size() == 2);
  CHECK(out[0].of == m.id);
  CHECK(out[0].token == 1);
  CHECK(out[0].reason == stop_reason::none);
  CHECK(values(out[0].logits) == likes_one);
  CHECK(out[1].reason == stop_reason::limit);
  log.begin();
  CHECK(log.emitted().empty());
}

TEST_CASE("S39: without a number to choose from nothing is said") {
  auto log = detail::output_log{{}, 3};
  auto m = asking({5}, 2);
  auto const none = std::vector<float>(3, std::numeric_limits<float>::quiet_NaN());
  CHECK(log.say(m, none, instant{1}) == stop_reason::failed);
  CHECK(m.text == text{5});
  CHECK(m.result.state.output.empty());
  CHECK_FALSE(m.result.times.first_output);
  CHECK(log.emitted().empty());
  CHECK(log.recompute() == work{});
}

TEST_CASE("S8: a full recompute is the whole text per output, a pass is what it computes") {
  auto log = detail::output_log{{}, 3};
  auto m = asking({5, 6}, 4);
  static_cast<void>(log.say(m, likes_one, instant{1}));
  static_cast<void>(log.say(m, likes_one, instant{1}));
  CHECK(m.result.recompute == work{2 + 3, 3 + 6});
  log.count(m, token_pos{2}, token_count{1});
  CHECK(m.result.computed == work{1, 3});
  auto other = asking({5}, 4);
  log.count(other, token_pos{0}, token_count{1});
  CHECK(log.computed() == work{2, 4}); // of all
  CHECK(log.recompute() == m.result.recompute);
}

TEST_CASE("S22: a recalled output state outlives its place in the store, until the next step") {
  auto log = detail::output_log{{.kept_outputs = 1}, 3};
  auto const a = asking({5, 6}, 1);
  auto const b = asking({5, 7}, 1);
  CHECK(log.recall(a).empty());
  log.keep(a, likes_one);
  auto const recalled = log.recall(a);
  log.keep(b, likes_two); // in its place
  for (auto i = 0; i < 20; ++i) { CHECK(values(log.recall(b)) == likes_two); }
  CHECK(values(recalled) == likes_one);
  CHECK(log.recall(a).empty());
  log.forget();
  CHECK(log.recall(b).empty());
}
