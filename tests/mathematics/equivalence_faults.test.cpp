// SPDX-License-Identifier: Apache-2.0
// The equivalence checker over a small transformer: every planted fault is structural, a key without weight is below
// resolution, and arithmetic is numeric.
#include <quire/attention/equivalence_checker.hpp>

#include "mathematics/toy_network.hpp"
#include "support/catch_compat.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace {
using namespace quire;
using namespace quire_test;

auto tokens_of(std::uint64_t seed, std::size_t n) -> std::vector<std::uint32_t> {
  auto draw = numbers{seed};
  std::vector<std::uint32_t> out(n);
  for (auto& token : out) { token = draw.below(11); }
  return out;
}
auto flat(std::vector<std::vector<double>> const& rows) -> std::vector<double> {
  std::vector<double> out;
  for (auto const& row : rows) { out.insert(out.end(), row.begin(), row.end()); }
  return out;
}

/// A prompt of 6 tokens at once, 2 more together, then single steps: the logits of all positions, through the cache. Two
/// other requests come before, so that their blocks are there to be mistaken for this one's.
template <class Real>
auto cached_run(toy_engine<Real> engine, std::vector<std::uint32_t> const& tokens) -> std::vector<std::vector<Real>> {
  static_cast<void>(engine.feed(1, tokens_of(91, tokens.size())));
  static_cast<void>(engine.feed(2, tokens_of(92, 3)));
  std::vector<std::vector<Real>> out;
  auto const take = [&](std::size_t begin, std::size_t count) {
    auto const from = tokens.begin() + static_cast<std::ptrdiff_t>(begin);
    for (auto& row : engine.feed(3, {from, from + static_cast<std::ptrdiff_t>(count)})) {
      out.push_back(std::move(row));
    }
  };
  take(0, 6);
  take(6, 2);
  for (std::size_t at = 8; at < tokens.size(); ++at) { take(at, 1); }
  return out;
}

struct setting {
  toy_weights weights;
  std::vector<std::uint32_t> tokens;
  std::vector<std::vector<double>> reference;

  setting(toy_weights given, std::size_t n)
      : weights{std::move(given)}, tokens{tokens_of(5, n)}, reference{toy_reference(weights, tokens)} {}

  [[nodiscard]] auto bound(dtype storage, dtype arithmetic) const -> equivalence_bound {
    return equivalence_bound::of(flat(reference), flat(toy_reference(weights, tokens, storage)),
                                 weights.sums(arithmetic, tokens.size()));
  }
  template <class Real>
  [[nodiscard]] auto check(toy_engine<Real> const& engine, equivalence_bound const& allowed,
                           toy_key const* looked_for = nullptr) const -> equivalence_report {
    auto checker = equivalence_checker{allowed};
    auto const found = cached_run(engine, tokens);
    REQUIRE(found.size() == reference.size());
    for (std::size_t at = 0; at < found.size(); ++at) { checker.compare(reference[at], found[at]); }
    if (looked_for != nullptr) {
      auto const faulty = toy_reference(weights, tokens, dtype::f64, looked_for);
      for (std::size_t at = 0; at < found.size(); ++at) { checker.look_for(reference[at], faulty[at]); }
    }
    return checker.report();
  }
};

auto const structural = equivalence_verdict::structural;
auto const numeric = equivalence_verdict::numeric;
} // namespace

TEST_CASE("S4: an engine without a fault is numeric in every arithmetic and order") {
  auto const s = setting{toy_weights{1}, 12};
  auto const in_f32 = s.bound(dtype::f32, dtype::f32);
  CHECK(s.check(toy_engine<double>{s.weights, dtype::f64}, s.bound(dtype::f64, dtype::f64)).verdict == numeric);
  CHECK(s.check(toy_engine<float>{s.weights, dtype::f32}, in_f32).verdict == numeric);
  SECTION("another order of summation") {
    auto const forward = s.check(toy_engine<float>{s.weights, dtype::f32}, in_f32);
    auto const backward = s.check(toy_engine<float>{s.weights, dtype::f32, toy_fault::none, {}, true}, in_f32);
    CHECK(backward.verdict == numeric);
    CHECK(backward.max_abs > 0.0);
    CHECK(backward.max_abs != forward.max_abs); // the orders do differ
  }
  SECTION("f32 to bf16 storage") {
    auto const in_bf16 = s.bound(dtype::bf16, dtype::f32);
    auto const report = s.check(toy_engine<float>{s.weights, dtype::bf16}, in_bf16);
    CHECK(report.verdict == numeric);
    CHECK(report.max_abs > in_f32.total()); // against the bound of another format it would be called structural
    CHECK(s.check(toy_engine<float>{s.weights, dtype::bf16}, in_f32).verdict == structural);
    CHECK(s.check(toy_engine<float>{s.weights, dtype::f16, toy_fault::none, {}, true}, s.bound(dtype::f16, dtype::f32))
              .verdict == numeric);
  }
}

TEST_CASE("S4: every planted fault is structural, exact and rounded") {
  auto const s = setting{toy_weights{1}, 12};
  auto const key = toy_key{.layer = 0, .position = 2};
  auto const faults = std::vector<std::pair<char const*, toy_fault>>{
      {"dropped key", toy_fault::dropped_key},
      {"doubled key", toy_fault::doubled_key},
      {"position off by one", toy_fault::position_off_by_one},
      {"wrong head map", toy_fault::wrong_head_map},
      {"mask hides the query's own position", toy_fault::mask_hides_self},
      {"mask leaks inside a step", toy_fault::mask_leaks},
      {"stale block", toy_fault::stale_block},
      {"swapped rows", toy_fault::swapped_rows},
      {"last layer only", toy_fault::last_layer_only},
  };
  for (auto const storage : {dtype::f32, dtype::bf16}) {
    auto const allowed = s.bound(storage, dtype::f32);
    for (auto const& [name, fault] : faults) {
      auto const report = s.check(toy_engine<float>{s.weights, storage, fault, key}, allowed);
      INFO(name << ", " << name_of(storage) << ": " << report.max_abs << " against " << allowed.total());
      CHECK(report.verdict == structural);
    }
    // the key does weigh more than the bound: a right run is numeric although its loss is looked for
    auto const right = s.check(toy_engine<float>{s.weights, storage}, allowed, &key);
    CHECK(right.effect > 2.0 * allowed.total());
    CHECK(right.verdict == numeric);
  }
}

TEST_CASE("S4: a window one position too short is structural") {
  auto const s = setting{toy_weights{2, attention_rule::sliding_window(token_count{4})}, 12};
  for (auto const storage : {dtype::f32, dtype::bf16}) {
    auto const allowed = s.bound(storage, dtype::f32);
    CHECK(s.check(toy_engine<float>{s.weights, storage}, allowed).verdict == numeric);
    CHECK(s.check(toy_engine<float>{s.weights, storage, toy_fault::window_too_short}, allowed).verdict == structural);
  }
}

TEST_CASE("S4: all layers are cached, never only the last") {
  // with one layer the last is all there is; with two the fault shows
  auto const s = setting{toy_weights{3}, 10};
  auto const allowed = s.bound(dtype::f32, dtype::f32);
  auto one = toy_weights{3};
  one.layers = 1;
  auto const single = setting{one, 10};
  CHECK(single
            .check(toy_engine<float>{single.weights, dtype::f32, toy_fault::last_layer_only},
                   single.bound(dtype::f32, dtype::f32))
            .verdict == numeric);
  CHECK(s.check(toy_engine<float>{s.weights, dtype::f32, toy_fault::last_layer_only}, allowed).verdict == structural);
}

TEST_CASE("S4: a fault on a vanishing key is below resolution") {
  auto rule = attention_rule::causal();
  rule.alibi = true;
  auto const s = setting{toy_weights{4, rule, {1.2, 1.2, 1.2, 1.2}}, 16};
  auto const allowed = s.bound(dtype::f32, dtype::f32);
  // the first key weighs for the queries next to it and, with e^(-1.2 · distance), no more for those behind: dropped, it
  // shows at the former, and of the latter the checker has to say that they cannot tell
  auto const first = toy_key{.layer = 2, .position = 0};
  CHECK(s.check(toy_engine<float>{s.weights, dtype::f32, toy_fault::dropped_key, first}, allowed, &first).verdict ==
        structural);

  auto const tail = [&](toy_fault fault) {
    auto checker = equivalence_checker{allowed};
    auto const found = cached_run(toy_engine<float>{s.weights, dtype::f32, fault, first}, s.tokens);
    auto const faulty = toy_reference(s.weights, s.tokens, dtype::f64, &first);
    for (std::size_t at = 12; at < found.size(); ++at) {
      checker.compare(s.reference[at], found[at]);
      checker.look_for(s.reference[at], faulty[at]);
    }
    return checker.report();
  };
  auto const with = tail(toy_fault::dropped_key);
  auto const without = tail(toy_fault::none);
  CHECK(with.effect > 0.0);
  CHECK(with.effect <= 2.0 * allowed.total());
  CHECK(with.verdict == equivalence_verdict::below_resolution);
  CHECK(without.verdict == equivalence_verdict::below_resolution); // and it says so of the right run too
}

TEST_CASE("S4: quantised caches are not exact ones") {
  // an fp8 cache is a named approximate mode: against the exact bound it is structural, against its own it is numeric
  auto const s = setting{toy_weights{1}, 12};
  auto const engine = toy_engine<float>{s.weights, dtype::fp8_e4m3};
  CHECK(s.check(engine, s.bound(dtype::bf16, dtype::f32)).verdict == structural);
  CHECK(s.check(engine, s.bound(dtype::fp8_e4m3, dtype::f32)).verdict == numeric);
}
