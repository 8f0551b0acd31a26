// SPDX-License-Identifier: Apache-2.0
#include <quire/attention/equivalence_checker.hpp>
#include <quire/attention/key_loss.hpp>
#include <quire/attention/oracle_attention.hpp>
#include <quire/attention/strided_tensor.hpp>

#include "support/catch_compat.hpp"
#include "support/throwing_contract.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace {
using namespace quire;
constexpr auto inf = std::numeric_limits<double>::infinity();
auto const bad = std::numeric_limits<double>::quiet_NaN();

auto bound(double total) -> equivalence_bound { return {.accumulation = total}; }
auto checked(double allowed, std::vector<double> const& reference, std::vector<double> const& candidate,
             compared_values values = compared_values::logits) -> equivalence_report {
  auto checker = equivalence_checker{bound(allowed), values};
  checker.compare(reference, candidate);
  return checker.report();
}
} // namespace

TEST_CASE("S7: the checker calls the lost key of the worked case structural") {
  auto const params = attention_params{.key_width = 1, .value_width = 2, .scale = 1.0};
  auto const q = std::array{1.0};
  auto const k = std::array{0.0, std::log(2.0), std::log(3.0)};
  auto const v = std::array{1.0, 0.0, 0.0, 2.0, 3.0, 3.0};
  auto const run = [&](std::uint32_t keys) {
    auto extent = attention_extent::append({.cached = token_count{2}, .appended = token_count{1}});
    extent.keys.end = token_pos{keys};
    return oracle_attention(params, extent, strided_tensor<double>::packed(q, {.width = 1}),
                            strided_tensor<double>::packed(k, {.width = 1}),
                            strided_tensor<double>::packed(v, {.width = 2}));
  };
  auto const right = run(3).output;
  auto const wrong = run(2).output;
  CHECK(wrong[0] == quire_test::approx(1.0 / 3));
  CHECK(wrong[1] == quire_test::approx(4.0 / 3));
  // even bf16 arithmetic is far from explaining it
  auto const allowed =
      equivalence_bound::of(right, right, {.arithmetic = dtype::bf16, .terms = 3, .stages = 2, .magnitude = 3.0});
  auto checker = equivalence_checker{allowed};
  checker.compare(right, wrong);
  checker.look_for(right, wrong);
  CHECK(checker.report().verdict == equivalence_verdict::structural);
  CHECK(checker.report().max_abs == quire_test::approx(4.0 / 3));
  CHECK(checker.report().effect == checker.report().max_abs);
  // and what a key of that weight does is known without running again
  CHECK(key_loss(right, std::span{v}.subspan(4, 2), 0.5) == quire_test::approx(4.0 / 3).epsilon(1e-14));
  CHECK(key_loss(right, std::span{v}.subspan(0, 2), 1.0 / 6) == quire_test::approx(13.0 / 30).epsilon(1e-14));
  auto same = equivalence_checker{allowed};
  same.compare(right, run(3).output);
  same.look_for(right, wrong);
  CHECK(same.report().verdict == equivalence_verdict::numeric);
}

TEST_CASE("S4: differences are measured") {
  auto const report = checked(1.0, {1.0, -2.0, 0.5, 0.0}, {1.25, -2.0, 0.25, 0.0});
  CHECK(report.rows == 1);
  CHECK(report.max_abs == 0.25);
  CHECK(report.max_rel == 0.5); // 0.25 of 0.5
  SECTION("the divergence is that of the distributions") {
    auto const p = std::array{0.5, 0.25, 0.25};
    auto const q = std::array{0.25, 0.25, 0.5};
    auto const expected = 0.5 * std::log(2.0) - 0.25 * std::log(2.0);
    auto const as_logits = [](auto const& of) {
      return std::vector{std::log(of[0]) + 7.0, std::log(of[1]) + 7.0, std::log(of[2]) + 7.0};
    };
    CHECK(checked(1.0, as_logits(p), as_logits(q)).max_kl == quire_test::approx(expected).epsilon(1e-13));
    CHECK(checked(1.0, {p.begin(), p.end()}, {q.begin(), q.end()}, compared_values::probabilities).max_kl ==
          quire_test::approx(expected).epsilon(1e-14));
    CHECK(checked(1.0, {0.0, 1.0}, {0.5, 0.5}, compared_values::probabilities).max_kl ==
          quire_test::approx(std::log(2.0)));
    CHECK(checked(1.0, {0.5, 0.5}, {0.0, 1.0}, compared_values::probabilities).max_kl == inf);
    CHECK(checked(1.0, as_logits(p), as_logits(p)).max_kl == 0.0);
    CHECK(checked(1.0, {1e5, 0.0}, {1e5, 0.0}).max_kl == 0.0);
  }
  SECTION("the worst of all rows is kept") {
    auto checker = equivalence_checker{bound(1.0)};
    checker.compare(std::vector{1.0, 0.0}, std::vector{1.0, 0.125});
    checker.compare(std::vector{1.0, 0.0}, std::vector{0.5, 0.0});
    checker.compare(std::vector{1.0, 0.0}, std::vector{1.0, 0.25});
    CHECK(checker.report().rows == 3);
    CHECK(checker.report().max_abs == 0.5);
    CHECK(checker.report().worst_row == 1);
  }
  SECTION("single precision is compared as it is") {
    auto const single = std::vector{0.1F, 0.2F};
    auto checker = equivalence_checker{bound(1e-8)};
    checker.compare(std::vector{0.1, 0.2}, single);
    CHECK(checker.report().max_abs > 0.0);
    CHECK(checker.report().max_abs < 1e-8);
    checker.compare(single, single);
    CHECK(checker.report().rows == 2);
  }
}

TEST_CASE("S4: flips come with the margin of the two best") {
  SECTION("a near tie within the bound is numeric") {
    auto const report = checked(0.01, {3.0, 1.0, 3.005}, {3.004, 1.0, 3.001});
    REQUIRE(report.flips.size() == 1);
    CHECK(report.flips[0].row == 0);
    CHECK(report.flips[0].reference == 2);
    CHECK(report.flips[0].candidate == 0);
    CHECK(report.flips[0].margin == quire_test::approx(0.005).epsilon(1e-9));
    CHECK(report.verdict == equivalence_verdict::numeric);
    CHECK(report.flips[0].margin <= 2.0 * report.bound.total()); // post (3)
  }
  SECTION("a clear winner that loses is structural") {
    auto const report = checked(0.01, {3.0, 1.0, 5.0}, {3.0, 1.0, 2.0});
    REQUIRE(report.flips.size() == 1);
    CHECK(report.flips[0].margin == 2.0);
    CHECK(report.verdict == equivalence_verdict::structural);
  }
  SECTION("equal texts, different numbers") {
    auto const report = checked(0.01, {3.0, 1.0, 9.0}, {2.0, 1.0, 9.0});
    CHECK(report.flips.empty());
    CHECK(report.verdict == equivalence_verdict::structural);
  }
  SECTION("one value has nothing to flip with") { CHECK(checked(1.0, {1.0}, {1.5}).flips.empty()); }
}

TEST_CASE("S4: the verdict follows the bound, and what the run can tell") {
  auto const reference = std::vector{1.0, 0.0};
  SECTION("post (1): above is structural, at the bound is not") {
    CHECK(checked(0.25, reference, {1.25, 0.0}).verdict == equivalence_verdict::numeric);
    CHECK(checked(0.25, reference, {1.25 + 1e-12, 0.0}).verdict == equivalence_verdict::structural);
    CHECK(checked(0.0, reference, reference).verdict == equivalence_verdict::numeric);
  }
  SECTION("post (2): a fault that would not show proves nothing") {
    auto const judge = [&](double effect, double difference) {
      auto checker = equivalence_checker{bound(0.25)};
      checker.compare(reference, std::vector{1.0 + difference, 0.0});
      checker.look_for(reference, std::vector{1.0 - effect, 0.0});
      return checker.report().verdict;
    };
    CHECK(judge(0.5, 0.25) == equivalence_verdict::below_resolution); // effect = 2 · bound: still both ways
    CHECK(judge(0.625, 0.25) == equivalence_verdict::numeric);
    CHECK(judge(0.0, 0.0) == equivalence_verdict::below_resolution);
    CHECK(judge(0.25, 0.375) == equivalence_verdict::structural); // something else is wrong
  }
  SECTION("the fault's largest effect over the rows counts") {
    auto checker = equivalence_checker{bound(0.25)};
    checker.compare(reference, reference);
    checker.look_for(reference, std::vector{1.0, 0.0});
    CHECK(checker.report().verdict == equivalence_verdict::below_resolution);
    checker.look_for(reference, std::vector{1.0, 3.0});
    CHECK(checker.report().verdict == equivalence_verdict::numeric);
    checker.look_for(reference, std::vector{1.0, 0.0});
    CHECK(checker.report().effect == 3.0);
  }
}

TEST_CASE("S4: not a number and infinities") {
  CHECK(checked(1.0, {1.0, 0.0}, {bad, 0.0}).verdict == equivalence_verdict::structural);
  CHECK(checked(1.0, {1.0, 0.0}, {bad, 0.0}).max_abs == inf);
  CHECK(checked(1.0, {bad, 0.0}, {1.0, 0.0}).verdict == equivalence_verdict::structural);
  CHECK(checked(1.0, {1.0, 0.0}, {1.0, inf}).verdict == equivalence_verdict::structural);
  CHECK(checked(1.0, {1.0, -inf}, {1.0, -inf}).verdict == equivalence_verdict::numeric); // a masked token
  CHECK(checked(1.0, {1.0, -inf}, {1.0, -inf}).max_kl == 0.0);
  CHECK(checked(1.0, {1.0, -inf}, {1.0, 0.0}).verdict == equivalence_verdict::structural);
  CHECK(checked(1.0, {inf, 0.0}, {-inf, 0.0}).verdict == equivalence_verdict::structural);
}

TEST_CASE("S4: no evidence is no equivalence") {
  auto checker = equivalence_checker{bound(1.0)};
  using violation = quire_test::contract_violation;
  CHECK_THROWS_AS(checker.report(), violation);
  CHECK_THROWS_AS(checker.compare(std::vector<double>{}, std::vector<double>{}), violation);
  CHECK_THROWS_AS(checker.compare(std::vector{1.0}, std::vector{1.0, 2.0}), violation);
  CHECK_THROWS_AS(checker.look_for(std::vector{1.0}, std::vector{1.0, 2.0}), violation);
  CHECK_THROWS_AS(checker.report(), violation);
  CHECK_THROWS_AS(equivalence_checker{bound(-1.0)}, config_error);
  CHECK_THROWS_AS(equivalence_checker{bound(bad)}, config_error);
  CHECK_THROWS_AS(equivalence_checker{bound(inf)}, config_error);
}

TEST_CASE("S4: the bound is storage twice, and accumulation") {
  auto const sums = accumulation_error{.arithmetic = dtype::f32, .terms = 1024, .stages = 3, .magnitude = 2.0};
  auto const growth = 1024.0 * 0x1.0p-24;
  CHECK(sums.bound() == quire_test::approx(3.0 * growth / (1.0 - growth) * 2.0).epsilon(1e-14));
  auto const made = equivalence_bound::of(std::vector{1.0, 2.0, -inf}, std::vector{1.5, 1.75, -inf}, sums);
  CHECK(made.storage == 0.5);
  CHECK(made.total() == 1.0 + sums.bound());
  CHECK_THROWS_AS((equivalence_checker{equivalence_bound::of(std::vector{1.0}, std::vector{bad}, sums)}), config_error);
  CHECK_THROWS_AS(equivalence_bound::of(std::vector{1.0}, std::vector<double>{}, sums), quire_test::contract_violation);
  CHECK_THROWS_AS((accumulation_error{.arithmetic = dtype::int8}.bound()), config_error);
  CHECK_THROWS_AS((accumulation_error{.arithmetic = dtype::bf16, .terms = 256}.bound()), config_error);
  CHECK(unit_roundoff(dtype::f64) == std::numeric_limits<double>::epsilon() / 2);
  CHECK(unit_roundoff(dtype::f32) == static_cast<double>(std::numeric_limits<float>::epsilon()) / 2);
}

TEST_CASE("S4: the loss of the only key is without limit") {
  CHECK(key_loss(std::vector{1.0}, std::vector{1.0}, 1.0) == inf);
  CHECK(key_loss(std::vector{1.0, 0.0}, std::vector{1.0, 4.0}, 0.0) == 0.0);
  CHECK_THROWS_AS(key_loss(std::vector{1.0}, std::vector{1.0, 2.0}, 0.5), quire_test::contract_violation);
  CHECK_THROWS_AS(key_loss(std::vector{1.0}, std::vector{1.0}, 1.5), quire_test::contract_violation);
}
