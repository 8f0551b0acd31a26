// SPDX-License-Identifier: Apache-2.0
// A batch of random requests in random blocks, fed in random chunks with rows in random order, reads what the definition
// says, over memory that is NaN wherever nothing was written.
#include <quire/attention/oracle_backend.hpp>

#include "mathematics/attention_conformance.hpp"
#include "mathematics/oracle_subject.hpp"
#include "support/rc_prop.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace {
using namespace quire;
using namespace quire_test;

template <class Subject>
void random_batches() {
  auto const kv = *rc::gen::inRange(1U, 3U);
  auto rule = *rc::gen::element(attention_rule::causal(), attention_rule::sliding_window(token_count{4}),
                                attention_rule::sink_window({.sinks = token_count{1}, .window = token_count{2}}),
                                attention_rule::chunked(token_count{5}));
  rule.alibi = *rc::gen::arbitrary<bool>();
  rule.learned_sink = *rc::gen::arbitrary<bool>();
  rule.soft_cap = *rc::gen::element(0.0F, 2.0F);
  auto const p_b = *rc::gen::element(1U, 2U, 3U, 5U, 16U);
  constexpr auto requests = 3U;
  auto lengths = std::vector<std::uint32_t>(requests);
  for (auto& n : lengths) { n = *rc::gen::inRange(1U, 13U); }
  auto needed = std::uint32_t{0};
  for (auto const n : lengths) { needed += (n + p_b - 1) / p_b; }

  auto bench = backend_bench<Subject>{{conformance_params(2 * kv, kv, rule)}, needed + 2, p_b};
  auto order = std::vector<std::int32_t>(needed + 2); // blocks, dealt at random
  std::iota(order.begin(), order.end(), 0);
  for (auto i = order.size(); i > 1; --i) { std::swap(order[i - 1], order[*rc::gen::inRange<std::size_t>(0, i)]); }
  auto tables = std::vector<std::vector<std::int32_t>>(requests);
  auto next = order.begin();
  for (std::size_t r = 0; r < requests; ++r) {
    tables[r].assign(next, next + (lengths[r] + p_b - 1) / p_b);
    next += (lengths[r] + p_b - 1) / p_b;
  }
  auto fed = std::vector<std::uint32_t>(requests, 0);
  while (fed != lengths) {
    std::vector<batch_row> rows;
    for (std::uint32_t r = 0; r < requests; ++r) {
      auto const left = lengths[r] - fed[r];
      auto const n = left == 0 ? 0 : *rc::gen::inRange(rows.empty() ? 1U : 0U, left + 1);
      if (n == 0) { continue; }
      auto const used = (fed[r] + n + p_b - 1) / p_b;
      rows.push_back({.request = r,
                      .blocks = {tables[r].begin(), tables[r].begin() + used},
                      .cached = static_cast<std::int32_t>(fed[r]),
                      .queries = static_cast<std::int32_t>(n)});
      fed[r] += n;
    }
    if (rows.size() > 1 && *rc::gen::arbitrary<bool>()) { std::swap(rows.front(), rows.back()); }
    auto const arrays = bench.fixture(rows);
    RC_ASSERT(validate(arrays.view()).has_value());
    bench.write(rows);
    auto const found = bench.attend(0, rows);
    std::vector<double> output;
    std::vector<double> lse;
    for (auto const& row : rows) {
      auto const wanted = bench.expected(0, row);
      output.insert(output.end(), wanted.output.begin(), wanted.output.end());
      lse.insert(lse.end(), wanted.lse.begin(), wanted.lse.end());
    }
    RC_ASSERT(distance(found.output, output) < Subject::tolerance);
    RC_ASSERT(distance(found.lse, lse) < Subject::tolerance);
  }
}
} // namespace

TEST_CASE("S20: random batches read what the definition says") {
  quire_test::prop("double", random_batches<oracle_subject<>>);
  quire_test::prop("bf16, split keys", random_batches<oracle_subject<dtype::bf16, plane_order::split>>);
}
