// SPDX-License-Identifier: Apache-2.0
// What is refused before anything waits.
#include <quire/core/config_error.hpp>
#include <quire/generate/detail/request_limits.hpp>

#include "support/catch_compat.hpp"

#include <utility>
#include <vector>

namespace {
using namespace quire;

auto wanting(std::vector<token_id> prompt, unsigned limit) -> generation_request {
  auto out = generation_request{};
  out.state = {.prompt = std::move(prompt), .stop = {.limit = token_count{limit}}};
  return out;
}
auto code(detail::request_limits const& limits, generation_request const& request) -> errc {
  auto const fault = limits.fault_of(request);
  CHECK((!fault || !fault->message.empty()));
  return fault ? fault->code : errc::ok;
}
constexpr auto wide = detail::request_limits{.vocabulary = 50, .positions = token_count{100}, .pool = 100};
} // namespace

TEST_CASE("S39: what no model can serve is refused with the reason") {
  CHECK(code(wide, wanting({1, 49}, 3)) == errc::ok);
  CHECK(code(wide, wanting({}, 3)) == errc::empty_prompt);
  CHECK(code(wide, wanting({1}, 0)) == errc::zero_output);
  CHECK(code(wide, wanting({1, -1}, 3)) == errc::out_of_range);
  CHECK(code(wide, wanting({1, 50}, 3)) == errc::out_of_range);
  auto resumed = wanting({1}, 3);
  resumed.state.output = {2, 3};
  CHECK(code(wide, resumed) == errc::ok);
  resumed.state.output = {2, 3, 4};
  CHECK(code(wide, resumed) == errc::zero_output);
  resumed.state.output = {2, 77};
  CHECK(wide.fault_of(resumed)->message == "token 77 at place 1 is unknown: the vocabulary has 50 tokens");
  auto wrong = wanting({1}, 3);
  wrong.state.sampling.top_p = 0.0;
  CHECK_THROWS_AS(wide.fault_of(wrong), config_error);
}

TEST_CASE("S39: the last position counts only if somebody feeds it, and the pool's last block always") {
  auto const model = detail::request_limits{.vocabulary = 50, .positions = token_count{5}, .pool = 100};
  auto request = wanting({1, 2, 3}, 3);
  CHECK(code(model, request) == errc::ok);
  request.last_output = last_output_rule::forward;
  CHECK(code(model, request) == errc::never_fits);
  CHECK(code(model, wanting({1, 2, 3}, 4)) == errc::never_fits);
  auto const pool = detail::request_limits{.vocabulary = 50, .positions = token_count{100}, .pool = 6};
  CHECK(code(pool, wanting({1, 2, 3}, 3)) == errc::ok);
  CHECK(pool.fault_of(wanting({1, 2, 3}, 4))->message ==
        "prompt and outputs need 7 positions and the pool has 6: shorten the request or give the pool more blocks");
}
