// SPDX-License-Identifier: Apache-2.0
#include "support/catch_compat.hpp"

#include "replay/tokens.hpp"
#include "replay/trace.hpp"
#include "replay/workload.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

namespace {

auto tokens_of(replay::trace const& t, replay::request const& r) -> std::vector<quire::token_id> {
  std::vector<quire::token_id> out(r.prompt);
  replay::write_prompt(t, r, out);
  return out;
}
auto same(replay::request const& a, replay::request const& b) -> bool {
  return a.arrival == b.arrival && a.first_segment == b.first_segment && a.segments == b.segments &&
         a.prompt == b.prompt && a.output == b.output && a.branches == b.branches && a.number == b.number;
}

} // namespace

TEST_CASE("replay: a seed makes one workload, another seed another one") {
  auto const a = replay::make_workload(7);
  auto const b = replay::make_workload(7);
  auto const c = replay::make_workload(8);
  REQUIRE(a.requests.size() == b.requests.size());
  CHECK(std::equal(a.requests.begin(), a.requests.end(), b.requests.begin(), same));
  CHECK(std::equal(a.segments.begin(), a.segments.end(), b.segments.begin(), b.segments.end(),
                   [](auto const& x, auto const& y) { return x.text == y.text && x.tokens == y.tokens; }));
  CHECK_FALSE(std::equal(a.requests.begin(), a.requests.end(), c.requests.begin(), c.requests.end(), same));
  CHECK(tokens_of(a, a.requests[0]) != tokens_of(c, c.requests[0]));
}

TEST_CASE("replay: the workload has shared system prompts, growing turns and forks, in order of arrival") {
  auto const t = replay::make_workload(1);
  CHECK(std::is_sorted(t.requests.begin(), t.requests.end(),
                       [](auto const& a, auto const& b) { return a.arrival < b.arrival; }));
  std::set<replay::text_id> openings;
  std::size_t forks = 0;
  std::size_t with_answers = 0;
  for (auto const& r : t.requests) {
    REQUIRE(r.output > 0);
    REQUIRE(r.branches >= 1);
    auto const prompt = t.prompt_of(r);
    std::uint64_t sum = 0;
    for (auto const& s : prompt) { sum += s.tokens; }
    REQUIRE(sum == r.prompt);
    openings.insert(prompt[0].text);
    forks += r.branches - 1;
    with_answers += std::any_of(prompt.begin(), prompt.end(),
                                [](auto const& s) { return (static_cast<std::uint64_t>(s.text) & 3U) == 2; })
                        ? 1U
                        : 0U;
  }
  CHECK(openings.size() == 6);
  CHECK(t.requests.size() > 1000);
  CHECK(forks > 100);
  CHECK(with_answers > t.requests.size() / 2);
}

TEST_CASE("replay: tokens depend on text and place only, and texts differ at every place") {
  std::vector<quire::token_id> whole(1000);
  std::vector<quire::token_id> part(1000);
  replay::write_tokens(replay::hashed_text(3), 0, whole);
  for (std::uint32_t from : {0U, 1U, 2U, 3U, 17U, 511U}) {
    for (std::size_t n :
         {std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{4}, std::size_t{5}, std::size_t{482}}) {
      auto const out = std::span{part}.first(n);
      replay::write_tokens(replay::hashed_text(3), from, out);
      REQUIRE(std::equal(out.begin(), out.end(), whole.begin() + from));
    }
  }
  CHECK(std::all_of(whole.begin(), whole.end(), [](auto t) { return t >= 0; }));
  for (auto const text :
       {replay::hashed_text(4), replay::own_text(3), replay::answer_text(3, 0), replay::answer_text(3, 1)}) {
    replay::write_tokens(text, 0, part);
    std::size_t equal = 0;
    for (std::size_t k = 0; k < part.size(); ++k) { equal += part[k] == whole[k] ? 1U : 0U; }
    CHECK(equal <= 1);
  }
}
