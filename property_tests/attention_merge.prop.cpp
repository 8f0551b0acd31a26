// SPDX-License-Identifier: Apache-2.0
// Any split of the keys, merged in any order and grouping, gives the whole.
#include <quire/attention/oracle_attention.hpp>
#include <quire/attention/strided_tensor.hpp>

#include "mathematics/numbers.hpp"
#include "support/rc_prop.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace {
using namespace quire;
using quire_test::distance;

/// One problem, drawn: everything but the numbers themselves, which follow from the seed.
struct drawn {
  attention_params params;
  attention_extent extent;
  std::vector<double> q;
  std::vector<double> k;
  std::vector<double> v;

  drawn() {
    auto const groups = *rc::gen::inRange(1U, 4U);
    params = {.query_heads = 0,
              .kv_heads = *rc::gen::inRange(1U, 4U),
              .key_width = *rc::gen::inRange(1U, 6U),
              .value_width = *rc::gen::inRange(1U, 5U),
              .scale = 0.5};
    params.query_heads = groups * params.kv_heads;
    switch (*rc::gen::inRange(0, 4)) {
    case 0: break;
    case 1: params.rule = attention_rule::sliding_window(token_count{*rc::gen::inRange(1U, 12U)}); break;
    case 2:
      params.rule = attention_rule::sink_window(
          {.sinks = token_count{*rc::gen::inRange(0U, 4U)}, .window = token_count{*rc::gen::inRange(1U, 8U)}});
      break;
    default: params.rule = attention_rule::chunked(token_count{*rc::gen::inRange(1U, 9U)}); break;
    }
    params.rule.soft_cap = *rc::gen::element(0.0F, 1.0F, 20.0F);
    extent = attention_extent::append(
        {.cached = token_count{*rc::gen::inRange(0U, 14U)}, .appended = token_count{*rc::gen::inRange(1U, 5U)}});
    auto draw = quire_test::numbers{*rc::gen::arbitrary<std::uint32_t>()};
    auto const keys = std::size_t{extent.keys.size().value()};
    // large scores too: parts whose weight underflows
    auto const size = *rc::gen::element(1.0, 8.0, 60.0);
    q = draw.many(std::size_t{extent.queries.value()} * params.query_heads * params.key_width, size);
    k = draw.many(keys * params.kv_heads * params.key_width, size);
    v = draw.many(keys * params.kv_heads * params.value_width);
  }
  [[nodiscard]] auto over(position_interval keys) const -> attention_output {
    return oracle_partial(params, extent.over(keys),
                          strided_tensor<double>::packed(q, {.heads = params.query_heads, .width = params.key_width}),
                          strided_tensor<double>::packed(k, {.heads = params.kv_heads, .width = params.key_width}),
                          strided_tensor<double>::packed(v, {.heads = params.kv_heads, .width = params.value_width}));
  }
};

auto agree(attention_output const& a, attention_output const& b) -> bool {
  return distance(a.output, b.output) < 1e-12 && distance(a.lse, b.lse) < 1e-10;
}
} // namespace

TEST_CASE("S2: partial results merge") {
  quire_test::prop("a split at any places, in any grouping and order, gives the whole", [] {
    auto const p = drawn{};
    auto const whole = p.over(p.extent.keys);
    // cut places, some equal: empty parts are allowed
    std::vector<attention_output> parts;
    auto at = p.extent.keys.begin;
    while (at < p.extent.keys.end) {
      auto const next = at + token_count{*rc::gen::inRange(0U, (p.extent.keys.end - at).value() + 1)};
      parts.push_back(p.over({.begin = at, .end = next}));
      at = next == at && parts.size() > 6 ? p.extent.keys.end : next;
      if (at == p.extent.keys.end && next != p.extent.keys.end) {
        parts.push_back(p.over({.begin = next, .end = p.extent.keys.end}));
      }
    }
    // what a part did not compute is garbage, never 0
    for (auto& part : parts) {
      for (std::size_t cell = 0; cell < part.lse.size(); ++cell) {
        if (part.lse[cell] != -std::numeric_limits<double>::infinity()) { continue; }
        for (std::size_t d = 0; d < part.width; ++d) {
          part.output[cell * part.width + d] = std::numeric_limits<double>::quiet_NaN();
        }
      }
    }
    while (parts.size() > 1) { // merge any two
      auto const i = *rc::gen::inRange<std::size_t>(0, parts.size());
      auto const j = (i + *rc::gen::inRange<std::size_t>(1, parts.size())) % parts.size();
      auto merged = merge(parts[i], parts[j]);
      parts[i] = std::move(merged);
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(j));
    }
    // a single part may have been cut nowhere: merging with nothing is then what removes the garbage
    auto const none = attention_output::empty(
        {.rows = p.extent.queries.value(), .heads = p.params.query_heads, .width = p.params.value_width});
    RC_ASSERT(agree(merge(parts[0], none), whole));
    RC_ASSERT(agree(merge(none, parts[0]), whole));
  });

  quire_test::prop("(a · b) · c = a · (b · c)", [] {
    auto const p = drawn{};
    auto const first = p.extent.keys.begin + token_count{*rc::gen::inRange(0U, p.extent.keys.size().value() + 1)};
    auto const second = first + token_count{*rc::gen::inRange(0U, (p.extent.keys.end - first).value() + 1)};
    auto const a = p.over({.begin = p.extent.keys.begin, .end = first});
    auto const b = p.over({.begin = first, .end = second});
    auto const c = p.over({.begin = second, .end = p.extent.keys.end});
    RC_ASSERT(agree(merge(merge(a, b), c), merge(a, merge(b, c))));
    RC_ASSERT(agree(merge(a, b), merge(b, a)));
  });
}

TEST_CASE("S27: a window is full attention under a mask") {
  quire_test::prop("whatever the rule, its keys alone are enough, and hiding the others does the same", [] {
    auto const p = drawn{};
    auto full = p.params;
    full.rule = attention_rule::causal();
    full.rule.soft_cap = 0.0F;
    auto rule = p.params;
    rule.rule.soft_cap = 0.0F; // under a soft-cap a bias of −∞ does not hide
    auto const query = strided_tensor<double>::packed(p.q, {.heads = full.query_heads, .width = full.key_width});
    auto const key = strided_tensor<double>::packed(p.k, {.heads = full.kv_heads, .width = full.key_width});
    auto const value = strided_tensor<double>::packed(p.v, {.heads = full.kv_heads, .width = full.value_width});
    auto const masked = oracle_attention(full, p.extent, query, key, value, [&](score_place const& at) {
      return p.params.rule.visible(at.query, at.key) ? 0.0 : -std::numeric_limits<double>::infinity();
    });
    RC_ASSERT(oracle_attention(rule, p.extent, query, key, value) == masked);
  });
}
