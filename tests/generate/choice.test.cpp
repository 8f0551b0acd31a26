// SPDX-License-Identifier: Apache-2.0
// Choice of a token, its randomness, and when to stop.
#include <quire/generate/random_state.hpp>
#include <quire/generate/stop_rules.hpp>
#include <quire/generate/token_sampler.hpp>

#include "support/catch_compat.hpp"

#include <array>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <span>
#include <type_traits>
#include <vector>

namespace {
using namespace quire;

constexpr auto infinity = std::numeric_limits<float>::infinity();
constexpr auto not_a_number = std::numeric_limits<float>::quiet_NaN();

auto chosen(std::vector<float> const& logits, sampling_options const& options, std::uint64_t seed = 1) {
  auto random = random_state{seed};
  return token_sampler{}.choose(logits, options, random);
}
/// How often each token comes out of \p runs draws.
auto frequencies(std::vector<float> const& logits, sampling_options const& options, unsigned runs = 20000) {
  auto random = random_state{7};
  auto sampler = token_sampler{};
  auto out = std::vector<double>(logits.size());
  for (unsigned i = 0; i < runs; ++i) {
    out[static_cast<std::size_t>(sampler.choose(logits, options, random).value())] += 1.0 / runs;
  }
  return out;
}
} // namespace

TEST_CASE("S34: the random state is SplitMix64, number by number") {
  auto random = random_state{1234567};
  CHECK(random() == 6457827717110365317ULL);
  CHECK(random() == 3203168211198807973ULL);
  CHECK(random() == 9817491932198370423ULL);
  CHECK(random() == 4593380528125082431ULL);
  CHECK(random() == 16408922859458223821ULL);
}

TEST_CASE("S34: a random state is a value that can be saved") {
  static_assert(std::regular<random_state> && std::is_trivially_copyable_v<random_state> && sizeof(random_state) == 8);
  static_assert(std::uniform_random_bit_generator<random_state>);
  auto random = random_state{5};
  static_cast<void>(random());
  auto saved = random_state{random.word()};
  CHECK(saved == random);
  CHECK(saved() == random());
  CHECK(saved == random);
  static_cast<void>(saved());
  CHECK(saved != random);
}

TEST_CASE("S34: uniform numbers are at least 0 and below 1 and siblings differ") {
  auto random = random_state{5};
  auto sum = 0.0;
  for (auto i = 0; i < 10000; ++i) {
    auto const u = random.uniform();
    REQUIRE(u >= 0.0);
    REQUIRE(u < 1.0);
    sum += u;
  }
  CHECK(std::fabs(sum / 10000 - 0.5) < 0.01);
  CHECK(random.sibling(0) == random);
  CHECK(random.sibling(1) != random);
  CHECK(random.sibling(1) != random.sibling(2));
  CHECK(random_state{6}.sibling(1) != random_state{5}.sibling(1));
}

TEST_CASE("S39: greedy takes the largest logit, the lowest id among equals, and draws nothing") {
  auto random = random_state{3};
  auto const before = random;
  auto const logits = std::vector<float>{1, 5, -2, 5, not_a_number};
  CHECK(token_sampler{}.choose(logits, {}, random) == token_id{1});
  CHECK(random == before);
  CHECK(token_sampler::greedy(std::vector<float>{not_a_number, -infinity, -3}) == token_id{2});
  CHECK(token_sampler::greedy(std::vector<float>{1, infinity, 3}) == token_id{1});
}

TEST_CASE("S39: where nothing can be chosen the answer is nothing") {
  for (auto const& logits : {std::vector<float>{}, std::vector<float>{not_a_number, not_a_number},
                             std::vector<float>{-infinity, not_a_number}}) {
    CHECK(chosen(logits, {}) == std::nullopt);
    CHECK(chosen(logits, {.temperature = 1.0}) == std::nullopt);
    CHECK(chosen(logits, {.temperature = 1.0, .top_k = 1, .top_p = 0.5}) == std::nullopt);
  }
}

TEST_CASE("S34: exactly one number is drawn per choice, whatever the options") {
  for (auto const& options : {sampling_options{1.0, 0, 1.0}, sampling_options{0.5, 2, 1.0},
                              sampling_options{2.0, 0, 0.3}, sampling_options{1.0, 1, 0.01}}) {
    auto random = random_state{9};
    auto other = random_state{9};
    static_cast<void>(token_sampler{}.choose(std::vector<float>{1, 2, 3}, options, random));
    static_cast<void>(other());
    CHECK(random == other);
  }
}

TEST_CASE("S39: frequencies follow the softmax at each temperature") {
  auto const logits = std::vector<float>{0.0F, 1.0F, 2.0F, not_a_number, -infinity};
  for (auto const temperature : {0.5, 1.0, 2.0}) {
    auto const seen = frequencies(logits, {.temperature = temperature});
    auto const total = 1.0 + std::exp(1 / temperature) + std::exp(2 / temperature);
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(seen[i] == quire_test::approx(std::exp(static_cast<double>(i) / temperature) / total).margin(0.015));
    }
    CHECK(seen[3] == 0.0);
    CHECK(seen[4] == 0.0);
  }
}

TEST_CASE("S39: top-k keeps the k most likely, the lower id among equals") {
  auto const logits = std::vector<float>{1.0F, 3.0F, 1.0F, 2.0F};
  auto const two = frequencies(logits, {.temperature = 1.0, .top_k = 2});
  CHECK(two[0] == 0.0);
  CHECK(two[2] == 0.0);
  CHECK(two[1] == quire_test::approx(1.0 / (1.0 + std::exp(-1.0))).margin(0.015));
  auto const three = frequencies(logits, {.temperature = 1.0, .top_k = 3});
  CHECK(three[0] > 0.0);
  CHECK(three[2] == 0.0);
  CHECK(frequencies(logits, {.temperature = 1.0, .top_k = 1})[1] == quire_test::approx(1.0));
  CHECK(frequencies(logits, {.temperature = 1.0, .top_k = 9})[2] > 0.0);
}

TEST_CASE("S39: top-p keeps the smallest set that reaches p, at least one token") {
  auto const logits = std::vector<float>{std::log(0.15F), std::log(0.5F), std::log(0.05F), std::log(0.3F)};
  auto const some = frequencies(logits, {.temperature = 1.0, .top_p = 0.7});
  CHECK(some[0] == 0.0);
  CHECK(some[2] == 0.0);
  CHECK(some[1] == quire_test::approx(0.5 / 0.8).margin(0.015));
  CHECK(some[3] == quire_test::approx(0.3 / 0.8).margin(0.015));
  CHECK(frequencies(logits, {.temperature = 1.0, .top_p = 0.01})[1] == quire_test::approx(1.0));
  auto const most = frequencies(logits, {.temperature = 1.0, .top_p = 0.9});
  CHECK(most[0] > 0.0);
  CHECK(most[2] == 0.0);
  auto const both = frequencies(logits, {.temperature = 1.0, .top_k = 3, .top_p = 0.9}); // of what top-k has left
  CHECK(both[0] > 0.0);
}

TEST_CASE("S39: infinite and equal logits are no trap") {
  CHECK(chosen({1, infinity, 3}, {.temperature = 1.0}) == token_id{1});
  CHECK(chosen({1, infinity, 3}, {.temperature = 1.0, .top_k = 2, .top_p = 0.5}) == token_id{1});
  auto const even = frequencies({4, 4}, {.temperature = 1.0});
  CHECK(even[0] == quire_test::approx(0.5).margin(0.015));
  for (std::uint64_t seed = 0; seed < 200; ++seed) { // probabilities that vanish are never drawn
    CHECK(chosen({0, -800, -900}, {.temperature = 0.5}, seed) == token_id{0});
  }
}

TEST_CASE("sampling options: impossible ones are refused with a reason") {
  CHECK_NOTHROW(sampling_options{}.validate());
  CHECK_THROWS_WITH((sampling_options{.temperature = -1.0}.validate()), quire_test::ContainsSubstring("temperature"));
  CHECK_THROWS_AS((sampling_options{.temperature = std::nan("")}.validate()), config_error);
  CHECK_THROWS_AS((sampling_options{.temperature = HUGE_VAL}.validate()), config_error);
  CHECK_THROWS_WITH((sampling_options{.top_p = 0.0}.validate()), quire_test::ContainsSubstring("top_p"));
  CHECK_THROWS_AS((sampling_options{.top_p = 1.5}.validate()), config_error);
  CHECK_THROWS_AS((sampling_options{.top_p = std::nan("")}.validate()), config_error);
}

TEST_CASE("S39: stop rules look at the end of the output") {
  auto const rules = stop_rules{.limit = token_count{5}, .end_tokens = {9}, .sequences = {{1, 2}, {}, {0, 1, 2}}};
  auto const check = [&](std::vector<token_id> const& output) { return rules.check(output); };
  CHECK(check({}) == stop_reason::none);
  CHECK(check({9, 1}) == stop_reason::none);
  CHECK(check({1, 9}) == stop_reason::end_token);
  CHECK(check({1, 2}) == stop_reason::stop_sequence);
  CHECK(check({2}) == stop_reason::none);
  CHECK(check({1, 2, 3}) == stop_reason::none);
  CHECK(check({3, 3, 3, 3}) == stop_reason::none);
  CHECK(check({3, 3, 3, 3, 3}) == stop_reason::limit);
  CHECK(check({3, 3, 3, 3, 9}) == stop_reason::end_token);
  CHECK(check({3, 3, 3, 1, 2}) == stop_reason::stop_sequence);
  CHECK(stop_rules{}.check({}) == stop_reason::limit);
  auto const visible = [&](std::vector<token_id> const& output) { return rules.visible(output).size(); };
  CHECK(visible({3, 9}) == 1);
  CHECK(visible({3, 1, 2}) == 1);
  CHECK(visible({3, 0, 1, 2}) == 1);
  CHECK(visible({3, 3, 3, 3, 3}) == 5);
  CHECK(visible({3}) == 1);
  CHECK(rules == stop_rules{rules});
}

TEST_CASE("stop reasons have names") {
  for (auto const reason : {stop_reason::none, stop_reason::end_token, stop_reason::stop_sequence, stop_reason::limit,
                            stop_reason::cancelled, stop_reason::timed_out, stop_reason::failed}) {
    CHECK_FALSE(name_of(reason).empty());
  }
  CHECK(name_of(stop_reason{200}) == "unknown");
}
