// SPDX-License-Identifier: Apache-2.0
#include <quire/attention/lse_base.hpp>
#include <quire/attention/merge_weights.hpp>
#include <quire/attention/partial_attention.hpp>

#include "mathematics/numbers.hpp"
#include "support/catch_compat.hpp"
#include "support/throwing_contract.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

namespace {
using namespace quire;
constexpr auto inf = std::numeric_limits<double>::infinity();
auto const bad = std::numeric_limits<double>::quiet_NaN();
} // namespace

TEST_CASE("S2: (0, -inf) is the identity of merging, from both sides") {
  auto const none = partial_attention::empty(2);
  auto const some = partial_attention{.output = {0.25, -3.0}, .lse = 1.5};
  CHECK(none.saw_nothing());
  CHECK_FALSE(some.saw_nothing());
  CHECK(merge(none, some) == some);
  CHECK(merge(some, none) == some);
  CHECK(merge(none, none) == none);
}

TEST_CASE("S2: two parts merge by their sums of exponentials") {
  // one key of weight 1 with value 1, three keys of weight 1 with value 5
  auto const one = partial_attention{.output = {1.0}, .lse = 0.0};
  auto const three = partial_attention{.output = {5.0}, .lse = std::log(3.0)};
  auto const both = merge(one, three);
  CHECK(both.output[0] == quire_test::approx(4.0).epsilon(1e-15));
  CHECK(both.lse == quire_test::approx(std::log(4.0)).epsilon(1e-15));
  CHECK(merge(three, one).output[0] == quire_test::approx(4.0).epsilon(1e-15));
}

TEST_CASE("S2: weight 0 never multiplies garbage") {
  auto const some = partial_attention{.output = {0.25, -3.0}, .lse = 1.5};
  for (auto const garbage : {bad, inf, -inf}) {
    auto const unwritten = partial_attention{.output = {garbage, garbage}, .lse = -inf};
    CHECK(merge(some, unwritten) == some);
    CHECK(merge(unwritten, some) == some);
    CHECK(merge(unwritten, unwritten) == partial_attention::empty(2)); // post (3): zeros, not what was there
    CHECK(merge(partial_attention::empty(2), unwritten) == partial_attention::empty(2));
  }
  SECTION("nor does a weight that underflows to 0") {
    auto const far = partial_attention{.output = {bad, inf}, .lse = -2000.0};
    CHECK(merge(some, far).output == some.output);
    CHECK(merge(far, some).output == some.output);
  }
}

TEST_CASE("S2: merging is stable for large and small sums") {
  auto const a = partial_attention{.output = {1.0}, .lse = 1e5};
  auto const b = partial_attention{.output = {3.0}, .lse = 1e5};
  CHECK(merge(a, b).output[0] == 2.0);
  CHECK(merge(a, b).lse == quire_test::approx(1e5 + std::log(2.0)).epsilon(1e-15));
  auto const c = partial_attention{.output = {1.0}, .lse = -1e5};
  CHECK(merge(c, c).output[0] == 1.0);
  CHECK(std::isfinite(merge(c, c).lse)); // no finite stand-in for -inf: -1e5 is a valid sum
}

TEST_CASE("S2: a NaN that a key did produce is not hidden") {
  auto const broken = partial_attention{.output = {bad}, .lse = bad};
  auto const fine = partial_attention{.output = {1.0}, .lse = 0.0};
  CHECK(std::isnan(merge(broken, fine).lse));
  CHECK(std::isnan(merge(fine, broken).output[0]));
  CHECK(std::isnan(merge(broken, partial_attention::empty(1)).lse));
}

TEST_CASE("S2: other libraries' +inf for an empty row is refused, not given all weight") {
  auto const theirs = partial_attention{.output = {0.0}, .lse = inf};
  auto const ours = partial_attention{.output = {1.0}, .lse = 0.0};
  CHECK_THROWS_AS(merge(ours, theirs), quire_test::contract_violation);
  CHECK_THROWS_AS(merge(theirs, ours), quire_test::contract_violation);
  CHECK_THROWS_AS(merge(ours, partial_attention::empty(2)), quire_test::contract_violation);
}

TEST_CASE("S2: single precision merges in place") {
  auto output = std::array{1.0F, 2.0F};
  auto lse = 0.0F;
  auto const other = std::array{3.0F, std::numeric_limits<float>::quiet_NaN()};
  merge_into(std::span<float>{output}, lse, other, -std::numeric_limits<float>::infinity());
  CHECK(output == std::array{1.0F, 2.0F});
  merge_into(std::span<float>{output}, lse, std::array{3.0F, 6.0F}, 0.0F);
  CHECK(output[0] == quire_test::approx(2.0));
  CHECK(output[1] == quire_test::approx(4.0));
  CHECK(lse == quire_test::approx(std::log(2.0)));
}

TEST_CASE("S2: the weights of a merge add up to 1") {
  auto draw = quire_test::numbers{7};
  for (auto i = 0; i < 200; ++i) {
    auto const weights = merge_weights<double>::of({.first = 300.0 * draw.next(), .second = 300.0 * draw.next()});
    CHECK(weights.first + weights.second == quire_test::approx(1.0).epsilon(1e-15));
    CHECK(weights.first >= 0.0);
    CHECK(weights.second >= 0.0);
  }
  auto const none = merge_weights<double>::of({.first = -inf, .second = -inf});
  CHECK(none.first == 0.0);
  CHECK(none.second == 0.0);
  CHECK(none.lse == -inf);
}

TEST_CASE("B8: a learned sink takes its share once, after the last merge") {
  // e^0 + e^0 against a sink of e^{ln 2}: half of the weight is gone
  auto output = std::vector{4.0, -2.0};
  apply_sink(std::span{output}, std::log(2.0), std::log(2.0));
  CHECK(output[0] == quire_test::approx(2.0).epsilon(1e-15));
  CHECK(output[1] == quire_test::approx(-1.0).epsilon(1e-15));
  SECTION("an empty row stays empty whatever was there") {
    output = {bad, inf};
    apply_sink(std::span{output}, -inf, 3.0);
    CHECK(output == std::vector{0.0, 0.0});
    output = {bad, inf};
    apply_sink(std::span{output}, -inf, -inf);
    CHECK(output == std::vector{0.0, 0.0});
  }
  SECTION("a logit of -inf is no sink") {
    auto const before = output;
    apply_sink(std::span{output}, 1.0, -inf);
    CHECK(output == before);
  }
  SECTION("a very large logit leaves nothing") {
    apply_sink(std::span{output}, 0.0, 1e4);
    CHECK(output == std::vector{0.0, 0.0});
  }
}

TEST_CASE("S2: a log-sum-exp of base 2 is converted, and both signs of an empty row are one") {
  CHECK(natural_lse(3.0, lse_base::natural) == 3.0);
  CHECK(natural_lse(3.0, lse_base::two) == quire_test::approx(std::log(8.0)).epsilon(1e-15));
  for (auto const base : {lse_base::natural, lse_base::two}) {
    CHECK(natural_lse(inf, base) == -inf);
    CHECK(natural_lse(-inf, base) == -inf);
    CHECK(std::isnan(natural_lse(bad, base)));
  }
}
