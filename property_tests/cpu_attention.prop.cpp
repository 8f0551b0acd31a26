// SPDX-License-Identifier: Apache-2.0
// The CPU backend against the oracle over random heads, widths, formats, layouts, rules, block sizes and batches, with
// NaN in all memory that was not written and in every block that no query sees.
#include "mathematics/cpu_scene.hpp"
#include "support/rc_prop.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using quire::attention_rule;
using quire::token_count;
using quire_test::prop;

template <class T = std::uint32_t>
auto between(T first, T last) -> T {
  return *rc::gen::inRange<T>(first, static_cast<T>(last + 1));
}
template <class T>
auto one_of(std::vector<T> const& choices) -> T {
  return choices[between<std::size_t>(0, choices.size() - 1)];
}

auto any_rule() -> attention_rule {
  auto out = attention_rule::causal();
  switch (between(0U, 4U)) {
  case 0: break;
  case 1: out = attention_rule::sliding_window(token_count{between(1U, 60U)}); break;
  case 2:
    out = attention_rule::sink_window({.sinks = token_count{between(1U, 9U)}, .window = token_count{between(1U, 40U)}});
    break;
  case 3: out = attention_rule::chunked(token_count{between(1U, 50U)}); break;
  default: out = attention_rule::cross(); break;
  }
  out.alibi = out.pattern != quire::attention_pattern::cross && between(0U, 3U) == 0;
  out.learned_sink = between(0U, 3U) == 0;
  out.soft_cap = between(0U, 3U) == 0 ? 2.0F : 0.0F;
  return out;
}

auto any_shape() -> quire_test::cpu_shape {
  auto const kv = between(1U, 4U);
  auto const group = one_of<std::uint32_t>({1, 1, 2, 3, 4, 7, 16});
  auto const formats = quire_test::cpu_formats();
  auto const width = [] { return one_of<std::uint32_t>({4, 8, 12, 16, 24, 32, 48, 64, 96}); }; // groups of 4 divide all
  auto out = quire_test::cpu_shape{.params = quire_test::cpu_params({kv * group, kv, width(), width()}, any_rule()),
                                   .key_format = one_of(formats),
                                   .value_format = one_of(formats),
                                   .block_tokens = one_of<std::uint32_t>({1, 2, 3, 5, 16, 17}),
                                   .order = static_cast<quire_test::cpu_order>(between(0U, 3U)),
                                   .drop_invisible = between(0U, 1U) == 1,
                                   .seed = between<std::uint64_t>(0, 1'000'000)};
  auto const rows = between(1U, 4U);
  for (std::uint32_t r = 0; r < rows; ++r) {
    out.rows.push_back({.cached = one_of<std::uint32_t>({0, 1, 15, 16, 47, 95, 96, 97, 130}) + between(0U, 3U),
                        .appended = one_of<std::uint32_t>({1, 1, 1, 2, 5, 13, 49})});
  }
  if (out.params.value_width <= out.params.key_width && between(0U, 7U) == 0) {
    out.latent = true;
    out.value_format = out.key_format;
  }
  return out;
}

} // namespace

TEST_CASE("S43: the CPU backend agrees with the oracle on anything", "[attention]") {
  prop("any shape", [] {
    quire_test::cpu_scene scene{any_shape()};
    auto const& shape = scene.shape();
    RC_LOG() << shape.params.query_heads << '/' << shape.params.kv_heads << " heads of " << shape.params.key_width
             << " and " << shape.params.value_width << ", " << name_of(shape.params.rule.pattern) << ' '
             << shape.key_format.name() << ' ' << shape.value_format.name() << ", blocks of " << shape.block_tokens
             << ", order " << static_cast<int>(shape.order) << (shape.latent ? ", latent" : "") << '\n';
    RC_ASSERT(scene.difference() == std::string{});
  });
}

TEST_CASE("S43: the CPU backend gives the same bits for every cut of rows and heads", "[attention]") {
  prop("any cut", [] {
    quire_test::cpu_scene scene{any_shape()};
    auto const want = scene.attend();
    auto got = scene.empty_result();
    auto const heads = scene.shape().params.kv_heads;
    auto const rows = static_cast<std::int32_t>(scene.shape().rows.size());
    auto const head = between(0U, heads);
    auto const row = between<std::int32_t>(0, rows);
    scene.attend_into(got, {.last_row = row, .last_head = head});
    scene.attend_into(got, {.last_row = row, .first_head = head});
    scene.attend_into(got, {.first_row = row, .last_head = head});
    scene.attend_into(got, {.first_row = row, .first_head = head});
    RC_ASSERT((got == want));
  });
}
