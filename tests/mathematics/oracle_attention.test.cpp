// SPDX-License-Identifier: Apache-2.0
#include <quire/attention/alibi_slopes.hpp>
#include <quire/attention/oracle_attention.hpp>
#include <quire/attention/strided_tensor.hpp>

#include "mathematics/numbers.hpp"
#include "support/catch_compat.hpp"
#include "support/throwing_contract.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <set>
#include <span>
#include <vector>

namespace {
using namespace quire;
using quire_test::distance;
using quire_test::numbers;
using tensor = strided_tensor<double>;

constexpr auto inf = std::numeric_limits<double>::infinity();

auto append(std::uint32_t cached, std::uint32_t appended) -> attention_extent {
  return attention_extent::append({.cached = token_count{cached}, .appended = token_count{appended}});
}
auto interval(std::uint32_t begin, std::uint32_t end) -> position_interval {
  return {.begin = token_pos{begin}, .end = token_pos{end}};
}

// Queries [q, h_q, d_k], keys [n, h_kv, d_k] and values [n, h_kv, d_v] with random entries.
struct problem {
  attention_params params;
  std::uint32_t keys;
  std::vector<double> q;
  std::vector<double> k;
  std::vector<double> v;

  problem(attention_params given, std::uint32_t queries, std::uint32_t positions, std::uint64_t seed)
      : params{std::move(given)}, keys{positions} {
    auto draw = numbers{seed};
    q = draw.many(std::size_t{queries} * params.query_heads * params.key_width, 2.0);
    k = draw.many(std::size_t{positions} * params.kv_heads * params.key_width, 2.0);
    v = draw.many(std::size_t{positions} * params.kv_heads * params.value_width);
  }
  [[nodiscard]] auto query() const -> tensor {
    return tensor::packed(q, {.heads = params.query_heads, .width = params.key_width});
  }
  [[nodiscard]] auto key() const -> tensor {
    return tensor::packed(k, {.heads = params.kv_heads, .width = params.key_width});
  }
  [[nodiscard]] auto value() const -> tensor {
    return tensor::packed(v, {.heads = params.kv_heads, .width = params.value_width});
  }
  [[nodiscard]] auto run(attention_extent const& extent) const -> attention_output {
    return oracle_attention(params, extent, query(), key(), value());
  }
};

// The formula of S2 as it is written, in extended precision, without the usual subtraction of the maximum: nothing of
// the oracle is used. `sees` and `head_of` are the reader's own.
struct formula {
  std::function<bool(std::uint32_t query, std::uint32_t key)> sees;
  std::function<std::uint32_t(std::uint32_t)> head_of;
  std::function<long double(std::uint32_t query, std::uint32_t key, std::uint32_t head)> bias = [](auto, auto, auto) {
    return 0.0L;
  };
  long double cap = 0.0L;
  std::vector<double> sink = {};

  [[nodiscard]] auto operator()(problem const& on, std::uint32_t first, std::uint32_t rows) const -> attention_output {
    auto const& p = on.params;
    auto out = attention_output::empty({.rows = rows, .heads = p.query_heads, .width = p.value_width});
    for (auto r = 0U; r < rows; ++r) {
      for (auto i = 0U; i < p.query_heads; ++i) {
        auto const g = head_of(i);
        auto denominator = 0.0L;
        auto numerator = std::vector<long double>(p.value_width, 0.0L);
        for (auto j = 0U; j < on.keys; ++j) {
          if (!sees(first + r, j)) { continue; }
          auto s = 0.0L;
          for (auto d = 0U; d < p.key_width; ++d) {
            s += static_cast<long double>(on.q[(r * p.query_heads + i) * p.key_width + d]) *
                 static_cast<long double>(on.k[(j * p.kv_heads + g) * p.key_width + d]);
          }
          s = s * static_cast<long double>(p.scale) + bias(first + r, j, i);
          if (cap > 0.0L) { s = cap * std::tanh(s / cap); }
          denominator += std::exp(s);
          for (auto d = 0U; d < p.value_width; ++d) {
            numerator[d] += std::exp(s) * static_cast<long double>(on.v[(j * p.kv_heads + g) * p.value_width + d]);
          }
        }
        auto const place = tensor_place{.token = r, .head = i};
        out.lse_at(place) = static_cast<double>(std::log(denominator));
        if (!sink.empty()) { denominator += std::exp(static_cast<long double>(sink[i])); }
        for (auto d = 0U; d < p.value_width; ++d) {
          out.at(place)[d] = denominator == 0.0L ? 0.0 : static_cast<double>(numerator[d] / denominator);
        }
      }
    }
    return out;
  }
};

void check_equal(attention_output const& a, attention_output const& b, double tolerance = 1e-13) {
  CHECK(distance(a.output, b.output) <= tolerance);
  CHECK(distance(a.lse, b.lse) <= tolerance);
}
auto params(std::uint32_t h_q, std::uint32_t h_kv, attention_rule rule = {}) -> attention_params {
  return {.query_heads = h_q, .kv_heads = h_kv, .key_width = 5, .value_width = 3, .scale = 0.4, .rule = rule};
}
auto causal(std::uint32_t query, std::uint32_t key) -> bool { return key <= query; }

// One layer, one head, q = 1, k = (0, ln 2, ln 3): weights 1/6, 2/6, 3/6.
struct worked_case {
  attention_params params = {.key_width = 1, .value_width = 2, .scale = 1.0};
  std::vector<double> q = {1.0};
  std::vector<double> k = {0.0, std::log(2.0), std::log(3.0)};
  std::vector<double> v = {1.0, 0.0, 0.0, 2.0, 3.0, 3.0};
};
} // namespace

TEST_CASE("S7: the worked case") {
  auto const c = worked_case{};
  auto const query = tensor::packed(c.q, {.width = 1});
  auto const key = tensor::packed(c.k, {.width = 1});
  auto const value = tensor::packed(c.v, {.width = 2});
  auto const weights = oracle_weights(c.params, append(2, 1), {}, query, key);
  CHECK(distance(weights, std::vector{1.0 / 6, 2.0 / 6, 3.0 / 6}) < 1e-15);
  auto const out = oracle_attention(c.params, append(2, 1), query, key, value);
  CHECK(distance(out.output, std::vector{10.0 / 6, 13.0 / 6}) < 1e-15);
  CHECK(out.lse[0] == quire_test::approx(std::log(6.0)).epsilon(1e-15));
  auto const dropped = oracle_attention(c.params, append(2, 1).over(interval(0, 2)), query, key, value);
  CHECK(distance(dropped.output, std::vector{1.0 / 3, 4.0 / 3}) < 1e-15);
}

TEST_CASE("S2: the oracle is the formula") {
  SECTION("MHA, GQA and MQA") {
    for (auto const h_kv : {1U, 2U, 3U, 6U}) {
      auto const p = problem{params(6, h_kv), 4, 9, h_kv};
      auto const reader = formula{.sees = causal, .head_of = [&](auto i) { return i / (6 / h_kv); }};
      check_equal(p.run(append(5, 4)), reader(p, 5, 4));
    }
  }
  SECTION("a window counts the query's own position") {
    auto const p = problem{params(2, 1, attention_rule::sliding_window(token_count{3})), 6, 9, 11};
    auto const reader =
        formula{.sees = [](auto q, auto k) { return k <= q && k + 3 > q; }, .head_of = [](auto) { return 0U; }};
    check_equal(p.run(append(3, 6)), reader(p, 3, 6));
  }
  SECTION("B8: retained sinks stay visible beyond the window") {
    auto const rule = attention_rule::sink_window({.sinks = token_count{2}, .window = token_count{3}});
    auto const p = problem{params(2, 2, rule), 7, 9, 12};
    auto const reader = formula{.sees = [](auto q, auto k) { return k <= q && (k < 2 || k + 3 > q); },
                                .head_of = [](auto i) { return i; }};
    check_equal(p.run(append(2, 7)), reader(p, 2, 7));
  }
  SECTION("B8: a chunk begins anew") {
    auto const p = problem{params(2, 1, attention_rule::chunked(token_count{4})), 9, 9, 13};
    auto const reader =
        formula{.sees = [](auto q, auto k) { return k <= q && k / 4 == q / 4; }, .head_of = [](auto) { return 0U; }};
    check_equal(p.run(append(0, 9)), reader(p, 0, 9));
  }
  SECTION("S5: cross attention sees the whole source from every row") {
    auto const p = problem{params(4, 2, attention_rule::cross()), 3, 7, 14};
    auto const reader = formula{.sees = [](auto, auto) { return true; }, .head_of = [](auto i) { return i / 2; }};
    check_equal(p.run(attention_extent::cross({.queries = token_count{3}, .source = token_count{7}})), reader(p, 0, 3));
  }
  SECTION("bidirectional attention sees later positions") {
    auto const p = problem{params(2, 2, attention_rule::bidirectional()), 6, 6, 15};
    auto const reader = formula{.sees = [](auto, auto) { return true; }, .head_of = [](auto i) { return i; }};
    check_equal(p.run(append(0, 6)), reader(p, 0, 6));
  }
  SECTION("B8: ALiBi measures from the query, before the soft-cap") {
    auto rule = attention_rule::causal();
    rule.alibi = true;
    rule.soft_cap = 1.5F;
    auto given = params(4, 2, rule);
    given.alibi_slopes = alibi_slopes(4);
    auto const p = problem{given, 5, 8, 16};
    auto const reader =
        formula{.sees = causal,
                .head_of = [](auto i) { return i / 2; },
                .bias =
                    [](auto q, auto k, auto i) {
                      return std::exp2(-2.0L * (i + 1)) * (static_cast<long double>(k) - static_cast<long double>(q));
                    },
                .cap = 1.5L};
    check_equal(p.run(append(3, 5)), reader(p, 3, 5)); // the log-sum-exp too: it moves with the reference point
  }
  SECTION("B8: a learned sink is in the denominator, and not in the log-sum-exp") {
    auto rule = attention_rule::causal();
    rule.learned_sink = true;
    auto given = params(2, 1, rule);
    given.sink_logits = {0.75, -1.25};
    auto const p = problem{given, 4, 6, 17};
    auto const reader = formula{.sees = causal, .head_of = [](auto) { return 0U; }, .sink = {0.75, -1.25}};
    check_equal(p.run(append(2, 4)), reader(p, 2, 4));
    auto const weights = oracle_weights(given, append(2, 4), {.token = 1, .head = 1}, p.query(), p.key());
    auto total = 0.0;
    for (auto const w : weights) { total += w; }
    auto const lse = p.run(append(2, 4)).lse_at({.token = 1, .head = 1});
    CHECK(total == quire_test::approx(std::exp(lse) / (std::exp(lse) + std::exp(-1.25))).epsilon(1e-14));
  }
  SECTION("a bias of the caller's, per query, key and head") {
    auto const p = problem{params(2, 1), 3, 5, 18};
    auto const bias = [](score_place const& at) {
      return 0.125 * at.query.value() - 0.5 * at.key.value() + 2.0 * at.head * (at.key.value() % 2);
    };
    auto const reader =
        formula{.sees = causal,
                .head_of = [](auto) { return 0U; },
                .bias = [](auto q, auto k, auto i) { return 0.125L * q - 0.5L * k + 2.0L * i * (k % 2); }};
    check_equal(oracle_attention(p.params, append(2, 3), p.query(), p.key(), p.value(), bias), reader(p, 2, 3));
  }
  SECTION("single-precision inputs are computed on in double") {
    auto const p = problem{params(2, 1), 3, 5, 19};
    auto const narrow = [](std::vector<double> const& from) { return std::vector<float>(from.begin(), from.end()); };
    auto const wide = [](std::vector<float> const& from) { return std::vector<double>(from.begin(), from.end()); };
    auto const q = narrow(p.q);
    auto const k = narrow(p.k);
    auto const v = narrow(p.v);
    auto same = p;
    same.q = wide(q);
    same.k = wide(k);
    same.v = wide(v);
    auto const out =
        oracle_attention(p.params, append(2, 3), strided_tensor<float>::packed(q, {.heads = 2, .width = 5}),
                         strided_tensor<float>::packed(k, {.heads = 1, .width = 5}),
                         strided_tensor<float>::packed(v, {.heads = 1, .width = 3}));
    CHECK(out == same.run(append(2, 3)));
  }
}

TEST_CASE("S2: the causal rule holds inside the new block") {
  auto const p = problem{params(2, 1), 4, 7, 21};
  auto const before = p.run(append(3, 4));
  // change the key and value of new position 5: rows 0 and 1 (positions 3 and 4) must not notice, 2 and 3 must
  auto changed = p;
  for (auto d = 0U; d < 5; ++d) { changed.k[5 * 5 + d] += 1.0; }
  for (auto d = 0U; d < 3; ++d) { changed.v[5 * 3 + d] -= 2.0; }
  auto const after = changed.run(append(3, 4));
  for (auto row = 0U; row < 4; ++row) {
    for (auto head = 0U; head < 2; ++head) {
      auto const place = tensor_place{.token = row, .head = head};
      CHECK((before.part(place) == after.part(place)) == (row < 2));
    }
  }
}

TEST_CASE("S2: hidden keys are not read at all") {
  auto const p =
      problem{params(1, 1, attention_rule::sink_window({.sinks = token_count{1}, .window = token_count{3}})), 2, 9, 22};
  std::set<std::uint32_t> seen;
  auto const watch = [&](tensor_place const& at) {
    seen.insert(at.token);
    return p.key()(at);
  };
  static_cast<void>(oracle_attention(p.params, append(6, 2), p.query(), watch, p.value()));
  CHECK(seen == std::set<std::uint32_t>{0, 4, 5, 6, 7}); // rows 6 and 7: sink 0, windows 4..6 and 5..7
}

TEST_CASE("S2: a row without keys is (0, -inf)") {
  auto const p = problem{params(2, 1, attention_rule::sliding_window(token_count{2})), 2, 6, 23};
  auto const none = p.run(append(4, 2).over(interval(0, 2))); // nobody sees 0 and 1 any more
  CHECK(none == attention_output::empty({.rows = 2, .heads = 2, .width = 3}));
  SECTION("no keys at all") { CHECK(p.run(append(4, 2).over(interval(3, 3))) == none); }
  SECTION("every score -inf: the values are not read") {
    auto broken = p;
    std::fill(broken.v.begin(), broken.v.end(), std::numeric_limits<double>::quiet_NaN());
    auto const out = oracle_attention(broken.params, append(4, 2), broken.query(), broken.key(), broken.value(),
                                      [](score_place const&) { return -inf; });
    CHECK(out == none);
  }
  SECTION("no queries: nothing") { CHECK(p.run(append(4, 0)).rows() == 0); }
  SECTION("a learned sink changes nothing about it") {
    auto with_sink = p;
    with_sink.params.rule.learned_sink = true;
    with_sink.params.sink_logits = {1.0, 2.0};
    CHECK(with_sink.run(append(4, 2).over(interval(0, 2))) == none);
  }
}

TEST_CASE("S2: a visible NaN is told, not hidden") {
  auto p = problem{params(1, 1), 2, 4, 24};
  p.k[1 * 5] = std::numeric_limits<double>::quiet_NaN();
  auto const out = p.run(append(2, 2));
  CHECK(std::isnan(out.lse[0]));
  CHECK(std::isnan(out.output[0]));
  p.k[1 * 5] = inf; // a score of +inf has no softmax
  p.q.assign(p.q.size(), 1.0);
  CHECK(std::isnan(p.run(append(2, 2)).lse[0]));
}

TEST_CASE("S2: scores far apart neither overflow nor vanish") {
  auto c = worked_case{};
  for (auto const offset : {-1e4, 1e4}) {
    auto moved = c;
    for (auto& k : moved.k) { k += offset; }
    auto const out = oracle_attention(moved.params, append(2, 1), tensor::packed(moved.q, {.width = 1}),
                                      tensor::packed(moved.k, {.width = 1}), tensor::packed(moved.v, {.width = 2}));
    CHECK(distance(out.output, std::vector{10.0 / 6, 13.0 / 6}) < 1e-11);
    CHECK(out.lse[0] == quire_test::approx(offset + std::log(6.0)).epsilon(1e-14));
  }
}

TEST_CASE("S2: parts of the keys merge to the whole, sinks applied once") {
  auto rule = attention_rule::causal();
  rule.learned_sink = true;
  rule.soft_cap = 3.0F;
  auto given = params(4, 2, rule);
  given.sink_logits = {0.5, -0.5, 1.0, 0.0};
  auto const p = problem{given, 3, 10, 25};
  auto const whole = p.run(append(7, 3));
  auto const part = [&](std::uint32_t begin, std::uint32_t end) {
    return oracle_partial(given, append(7, 3).over(interval(begin, end)), p.query(), p.key(), p.value());
  };
  auto merged = merge(merge(part(0, 1), part(1, 8)), part(8, 10)); // row 0 sees nothing of the last but 8 > 7
  apply_sinks(merged, given);
  check_equal(merged, whole, 1e-14);
  auto other = merge(part(8, 10), merge(part(0, 8), part(8, 8)));
  apply_sinks(other, given);
  check_equal(other, whole, 1e-14);
}

TEST_CASE("S27: a window equals full attention with a mask, and its older keys are not needed") {
  auto const rule = attention_rule::sliding_window(token_count{4});
  auto const windowed = problem{params(4, 2, rule), 3, 12, 26};
  auto full = windowed;
  full.params.rule = attention_rule::causal();
  auto const masked =
      oracle_attention(full.params, append(9, 3), full.query(), full.key(), full.value(),
                       [](score_place const& at) { return at.query - at.key < token_count{4} ? 0.0 : -inf; });
  check_equal(windowed.run(append(9, 3)), masked, 1e-15);
  check_equal(windowed.run(append(9, 3).over(interval(6, 12))), masked, 1e-15); // 9 − (w − 1) on
}

TEST_CASE("S20: rows computed together, one by one, and in chunks agree") {
  auto const p = problem{params(2, 1, attention_rule::sliding_window(token_count{5})), 9, 9, 27};
  auto const together = p.run(append(0, 9));
  for (auto const chunk : {1U, 2U, 4U, 9U}) {
    for (auto start = 0U; start < 9; start += chunk) {
      auto const n = std::min(chunk, 9 - start);
      auto const q = tensor::packed(std::span{p.q}.subspan(std::size_t{start} * 2 * 5), {.heads = 2, .width = 5});
      auto const out = oracle_attention(p.params, append(start, n), q, p.key(), p.value());
      for (auto row = 0U; row < n; ++row) {
        for (auto head = 0U; head < 2; ++head) {
          CHECK(out.part({.token = row, .head = head}) == together.part({.token = start + row, .head = head}));
        }
      }
    }
  }
}

TEST_CASE("S2: contradicting parameters and places outside are refused") {
  auto p = problem{params(2, 1), 1, 1, 28};
  p.params.scale = 0.0;
  CHECK_THROWS_AS(p.run(append(0, 1)), config_error);
  auto out = attention_output::empty({.rows = 1, .heads = 2, .width = 3});
  CHECK_THROWS_AS(out.at({.token = 1, .head = 0}), quire_test::contract_violation);
  CHECK_THROWS_AS(out.at({.token = 0, .head = 2}), quire_test::contract_violation);
  CHECK_THROWS_AS(merge(out, attention_output::empty({.rows = 1, .heads = 1, .width = 3})),
                  quire_test::contract_violation);
}
