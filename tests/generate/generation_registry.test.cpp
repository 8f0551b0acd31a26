// SPDX-License-Identifier: Apache-2.0
// Names of generations, and what is kept under them.
#include <quire/core/types.hpp>
#include <quire/generate/detail/generation_record.hpp>
#include <quire/generate/detail/generation_registry.hpp>

#include "support/catch_compat.hpp"

#include <optional>
#include <utility>
#include <vector>

namespace {
using namespace quire;

struct no_hold {
  auto length() const -> token_count { return token_count{3}; }
};
using record = detail::generation_record<no_hold>;

auto wanting(std::optional<nanosecond_count> limit = {}) -> generation_request {
  auto out = generation_request{};
  out.state = {.prompt = {1, 2, 3}, .output = {4}, .stop = {.limit = token_count{6}}};
  out.time_limit = limit;
  return out;
}
} // namespace

TEST_CASE("S39: a name is used once, its place again") {
  auto names = detail::generation_registry<record>{};
  auto& a = names.add(wanting(), instant{1}, token_count{});
  auto const first = a.id;
  CHECK(&names.record_of(first) == &a);
  CHECK_THROWS_AS(names.take(first), quire_test::contract_violation); // not over
  a.result.reason = stop_reason::limit;
  CHECK(names.take(first).state.output == std::vector<token_id>{4});
  CHECK_THROWS_AS(names.record_of(first), quire_test::contract_violation);
  auto const second = names.add(wanting(), instant{1}, token_count{}).id;
  CHECK(second != first);
  CHECK((second.value() & 0xffff'ffffU) == (first.value() & 0xffff'ffffU));
  CHECK_THROWS_AS(names.record_of(first), quire_test::contract_violation);
  CHECK_THROWS_AS(names.record_of(generation_id{7}), quire_test::contract_violation);
}

TEST_CASE("S39: a record holds its text side by side, and room for all that it may say") {
  auto names = detail::generation_registry<record>{};
  auto& a = names.add(wanting(), instant{1}, token_count{5});
  CHECK(a.text == std::vector<token_id>{1, 2, 3, 4});
  CHECK(a.text.capacity() >= 3 + 6);
  CHECK(a.result.state.output.capacity() >= 6);
  CHECK(a.guesses.capacity() >= 5);
  CHECK(a.pending() == 1); // its sequence has three
  CHECK(a.outputs_left() == 5);
  a.result.state.output.resize(6);
  CHECK(a.outputs_left() == 1); // a cache promises no request less than one
}

TEST_CASE("S40: waiting begins at the agreed entry, or at the call") {
  auto names = detail::generation_registry<record>{};
  auto request = wanting();
  request.entry = instant{3};
  CHECK(names.add(request, instant{9}, token_count{}).result.times.entry == instant{3});
  CHECK(names.add(wanting(), instant{9}, token_count{}).result.times.entry == instant{9});
}

TEST_CASE("S25: who has a time limit is late at its end, until it is over") {
  auto names = detail::generation_registry<record>{};
  names.add(wanting(), instant{0}, token_count{});
  CHECK_FALSE(names.has_limits()); // nobody need look at a clock
  auto& a = names.add(wanting(nanosecond_count{10}), instant{5}, token_count{});
  auto& b = names.add(wanting(nanosecond_count{2}), instant{5}, token_count{});
  CHECK(names.has_limits());
  CHECK(names.late(instant{6}) == nullptr);
  CHECK(names.late(instant{7}) == &b);
  b.result.reason = stop_reason::timed_out;
  CHECK(names.late(instant{14}) == nullptr);
  CHECK(names.late(instant{15}) == &a);
  a.result.reason = stop_reason::limit;
  static_cast<void>(names.take(a.id));
  CHECK_FALSE(names.has_limits());
}
