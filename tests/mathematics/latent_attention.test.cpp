// SPDX-License-Identifier: Apache-2.0
#include <quire/attention/latent_attention.hpp>

#include "mathematics/numbers.hpp"
#include "support/catch_compat.hpp"
#include "support/throwing_contract.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace {
using namespace quire;
using quire_test::distance;
using quire_test::numbers;

// r_c and both widths differ, so that no two can be mistaken for each other.
auto shape_of(std::uint32_t rotary) -> latent_shape {
  return {.heads = 3,
          .rank = 5,
          .content_width = 4,
          .rotary_width = rotary,
          .value_width = 2,
          .scale = attention_params::usual_scale(4 + rotary)};
}
auto weights_of(latent_shape const& shape, std::uint64_t seed = 1) -> latent_weights {
  auto draw = numbers{seed};
  return {.shape = shape,
          .up_key = draw.many(std::size_t{shape.heads} * shape.content_width * shape.rank),
          .up_value = draw.many(std::size_t{shape.heads} * shape.value_width * shape.rank)};
}
auto append(std::uint32_t cached, std::uint32_t appended) -> attention_extent {
  return attention_extent::append({.cached = token_count{cached}, .appended = token_count{appended}});
}

// The definition, written out: k = [U_K c, r], v = U_V c, softmax, sum. Nothing of the library but the visibility.
auto by_hand(latent_weights const& w, std::uint32_t first, std::uint32_t rows, std::vector<double> const& q,
             std::vector<double> const& cached) -> std::vector<double> {
  auto const& s = w.shape;
  auto const width = s.content_width + s.rotary_width;
  std::vector<double> out;
  for (auto r = 0U; r < rows; ++r) {
    for (auto i = 0U; i < s.heads; ++i) {
      auto denominator = 0.0;
      auto sum = std::vector<double>(s.value_width, 0.0);
      for (auto j = 0U; j <= first + r; ++j) {
        auto const* c = cached.data() + j * (s.rank + s.rotary_width);
        auto const* query = q.data() + (r * s.heads + i) * width;
        auto score = 0.0;
        for (auto d = 0U; d < s.content_width; ++d) {
          auto k = 0.0;
          for (auto x = 0U; x < s.rank; ++x) { k += w.up_key[(i * s.content_width + d) * s.rank + x] * c[x]; }
          score += query[d] * k;
        }
        for (auto d = 0U; d < s.rotary_width; ++d) { score += query[s.content_width + d] * c[s.rank + d]; }
        auto const weight = std::exp(score / std::sqrt(static_cast<double>(width)));
        denominator += weight;
        for (auto d = 0U; d < s.value_width; ++d) {
          for (auto x = 0U; x < s.rank; ++x) {
            sum[d] += weight * w.up_value[(i * s.value_width + d) * s.rank + x] * c[x];
          }
        }
      }
      for (auto const v : sum) { out.push_back(v / denominator); }
    }
  }
  return out;
}
} // namespace

TEST_CASE("S12: absorbed and expanded forms give the definition") {
  auto const w = weights_of(shape_of(0));
  auto draw = numbers{2};
  auto const cached = draw.many(7 * 5);
  auto const q = draw.many(3 * 3 * 4, 2.0);
  auto expanded = latent_attention{w, {.form = latent_form::expanded}};
  auto absorbed = latent_attention{w, {.form = latent_form::absorbed}};
  auto const wanted = by_hand(w, 4, 3, q, cached);
  auto const a = expanded.attend(append(4, 3), q, cached, latent_phase::prefill);
  auto const b = absorbed.attend(append(4, 3), q, cached, latent_phase::prefill);
  CHECK(distance(a.output, wanted) < 1e-14);
  CHECK(distance(b.output, wanted) < 1e-14);
  CHECK(distance(a.lse, b.lse) < 1e-14);
}

TEST_CASE("S13: with a decoupled rotary key, shared by all heads, scaled by the query width") {
  auto const w = weights_of(shape_of(2));
  auto const rope = resolved_rope{{.width = 2, .base = 10.0}, {}};
  auto draw = numbers{3};
  auto cached = draw.many(7 * 7);
  auto q = draw.many(3 * 3 * 6, 2.0);
  for (auto j = 0U; j < 7; ++j) { rope.rotate(std::span{cached}.subspan(j * 7 + 5, 2), token_pos{j}); }
  for (auto r = 0U; r < 3; ++r) {
    for (auto i = 0U; i < 3; ++i) { rope.rotate(std::span{q}.subspan((r * 3 + i) * 6 + 4, 2), token_pos{4 + r}); }
  }
  auto expanded = latent_attention{w, {.form = latent_form::expanded, .rotation = latent_rotation::decoupled}};
  auto absorbed = latent_attention{w, {.form = latent_form::absorbed, .rotation = latent_rotation::decoupled}};
  auto const wanted = by_hand(w, 4, 3, q, cached);
  CHECK(distance(expanded.attend(append(4, 3), q, cached, latent_phase::decode).output, wanted) < 1e-14);
  CHECK(distance(absorbed.attend(append(4, 3), q, cached, latent_phase::decode).output, wanted) < 1e-14);
  SECTION("the scale of the rank would be another result") {
    auto wrong = w;
    wrong.shape.scale = attention_params::usual_scale(5);
    auto other = latent_attention{wrong, {.form = latent_form::absorbed, .rotation = latent_rotation::decoupled}};
    CHECK(distance(other.attend(append(4, 3), q, cached, latent_phase::decode).output, wanted) > 1e-3);
  }
  SECTION("windows hold for both forms") {
    auto const rule = attention_rule::sliding_window(token_count{2});
    auto narrow_expanded = latent_attention{
        w, {.form = latent_form::expanded, .rotation = latent_rotation::decoupled, .inside = {}, .rule = rule}};
    auto narrow_absorbed = latent_attention{
        w, {.form = latent_form::absorbed, .rotation = latent_rotation::decoupled, .inside = {}, .rule = rule}};
    auto extent = append(4, 3);
    extent.keys.begin = token_pos{3}; // what a window of 2 still needs
    auto const kept = std::span{cached}.subspan(3 * 7);
    CHECK(distance(narrow_expanded.attend(extent, q, kept, latent_phase::decode).output,
                   narrow_absorbed.attend(append(4, 3), q, cached, latent_phase::decode).output) < 1e-14);
    CHECK(narrow_expanded.work(latent_phase::decode).expansion == 4 * 3 * 5 * 6); // rows at hand, not the context
  }
}

TEST_CASE("S12: the output projection merges with U_V") {
  auto const w = weights_of(shape_of(0));
  auto draw = numbers{4};
  auto const cached = draw.many(6 * 5);
  auto const q = draw.many(2 * 3 * 4);
  constexpr auto hidden = 7U;
  auto const output = draw.many(hidden * 3 * 2); // [hidden, heads · d_v]
  auto const merged = w.merge_output(output, hidden);
  REQUIRE(merged.size() == hidden * 3 * 5);
  auto layer = latent_attention{w, {.form = latent_form::absorbed}};
  auto const expanded = layer.attend(append(4, 2), q, cached, latent_phase::decode);
  auto const mixed = layer.mix(append(4, 2), q, cached, latent_phase::decode);
  CHECK(mixed.width == 5);
  auto const product = [](std::vector<double> const& matrix, std::span<double const> x) {
    std::vector<double> y(hidden, 0.0);
    for (std::size_t row = 0; row < hidden; ++row) {
      for (std::size_t k = 0; k < x.size(); ++k) { y[row] += matrix[row * x.size() + k] * x[k]; }
    }
    return y;
  };
  for (std::size_t row = 0; row < 2; ++row) {
    CHECK(distance(product(output, std::span{expanded.output}.subspan(row * 6, 6)),
                   product(merged, std::span{mixed.output}.subspan(row * 15, 15))) < 1e-14);
  }
}

TEST_CASE("S12: absorbing through a rotation is refused, and would be wrong") {
  auto const shape = shape_of(0);
  auto const w = weights_of(shape);
  auto const rope = resolved_rope{{.width = 4, .base = 10.0}, {}};
  CHECK_THROWS_WITH(
      (latent_attention{w, {.form = latent_form::absorbed, .rotation = latent_rotation::inside, .inside = rope}}),
      quire_test::ContainsSubstring("cannot be absorbed through a rotation"));
  CHECK_THROWS_AS(require_absorbable(latent_form::absorbed, latent_rotation::inside), config_error);
  CHECK_NOTHROW(require_absorbable(latent_form::expanded, latent_rotation::inside));
  CHECK_NOTHROW(require_absorbable(latent_form::absorbed, latent_rotation::decoupled));

  // expanded it works: keys are turned after they have been made, like those of any cache
  auto draw = numbers{5};
  auto const cached = draw.many(5 * 5);
  auto q = draw.many(1 * 3 * 4);
  for (auto i = 0U; i < 3; ++i) { rope.rotate(std::span{q}.subspan(i * 4, 4), token_pos{4}); }
  auto inside =
      latent_attention{w, {.form = latent_form::expanded, .rotation = latent_rotation::inside, .inside = rope}};
  auto const found = inside.attend(append(4, 1), q, cached, latent_phase::decode);
  std::vector<double> keys;
  std::vector<double> values;
  for (auto j = 0U; j < 5; ++j) {
    auto k = w.expand_key(std::span{cached}.subspan(j * 5, 5));
    auto const v = w.expand_value(std::span{cached}.subspan(j * 5, 5));
    for (auto i = 0U; i < 3; ++i) { rope.rotate(std::span{k}.subspan(i * 4, 4), token_pos{j}); }
    keys.insert(keys.end(), k.begin(), k.end());
    values.insert(values.end(), v.begin(), v.end());
  }
  auto const wanted =
      oracle_attention(shape.expanded({}), append(4, 1), strided_tensor<double>::packed(q, {.heads = 3, .width = 4}),
                       strided_tensor<double>::packed(keys, {.heads = 3, .width = 4}),
                       strided_tensor<double>::packed(values, {.heads = 3, .width = 2}));
  CHECK(distance(found.output, wanted.output) < 1e-14);
  // the refused product, U_K^T q with q turned and the keys not, is another number
  auto pretend = latent_attention{w, {.form = latent_form::absorbed}};
  CHECK(distance(pretend.attend(append(4, 1), q, cached, latent_phase::decode).output, wanted.output) > 1e-3);
}

TEST_CASE("S12: contradicting shapes are refused with the reason") {
  auto const w = weights_of(shape_of(2));
  CHECK_THROWS_AS((latent_attention{w, {.rotation = latent_rotation::none}}), config_error);
  CHECK_THROWS_AS((latent_attention{weights_of(shape_of(0)), {.rotation = latent_rotation::decoupled}}), config_error);
  CHECK_THROWS_AS((latent_attention{weights_of(shape_of(0)), {.rotation = latent_rotation::inside}}), config_error);
  auto const wide = resolved_rope{{.width = 6}, {}};
  CHECK_THROWS_AS((latent_attention{weights_of(shape_of(0)), {.rotation = latent_rotation::inside, .inside = wide}}),
                  config_error);
  auto broken = weights_of(shape_of(0));
  broken.up_key.pop_back();
  CHECK_THROWS_WITH((latent_attention{broken, {}}), quire_test::ContainsSubstring("up_key"));
  broken = weights_of(shape_of(0));
  broken.up_value.push_back(0.0);
  CHECK_THROWS_WITH((latent_attention{broken, {}}), quire_test::ContainsSubstring("up_value"));
  broken = weights_of(shape_of(0));
  broken.shape.scale = 0.0;
  CHECK_THROWS_WITH((latent_attention{broken, {}}), quire_test::ContainsSubstring("scale"));
  broken = weights_of(shape_of(0));
  broken.shape.rank = 0;
  CHECK_THROWS_AS((latent_attention{broken, {}}), config_error);
  auto fine = latent_attention{weights_of(shape_of(0)), {}};
  auto const q = std::vector<double>(12);
  CHECK_THROWS_AS(fine.attend(append(0, 1), q, std::vector<double>(4), latent_phase::decode),
                  quire_test::contract_violation);
  CHECK_THROWS_AS(fine.attend(append(0, 2), q, std::vector<double>(10), latent_phase::decode),
                  quire_test::contract_violation);
}

TEST_CASE("S12: a low-rank form fitted after training is an approximate mode with a name") {
  auto w = weights_of(shape_of(0));
  CHECK_FALSE(w.approximate_mode());
  w.fitted = true;
  CHECK(w.approximate_mode() == "low_rank_fitted/5");
}

TEST_CASE("S12: multiplications are counted per phase and form") {
  auto const shape = shape_of(2);
  // counted by walking every product that the definition names
  auto const walk = [&](latent_form form, std::uint32_t cached, std::uint32_t appended) {
    latent_work out;
    for (auto i = 0U; i < shape.heads; ++i) {
      auto const per_vector = [&](std::uint32_t rows) { return std::uint64_t{rows} * shape.rank; };
      if (form == latent_form::expanded) {
        for (auto j = 0U; j < cached + appended; ++j) {
          out.expansion += per_vector(shape.content_width) + per_vector(shape.value_width);
        }
      } else {
        for (auto r = 0U; r < appended; ++r) {
          out.absorption += per_vector(shape.content_width) + per_vector(shape.value_width);
        }
      }
      for (auto r = 0U; r < appended; ++r) {
        for (auto j = 0U; j <= cached + r; ++j) {
          out.scores += form == latent_form::expanded ? shape.content_width + shape.rotary_width
                                                      : shape.rank + shape.rotary_width;
          out.sums += form == latent_form::expanded ? shape.value_width : shape.rank;
        }
      }
    }
    return out;
  };
  auto draw = numbers{6};
  for (auto const form : {latent_form::expanded, latent_form::absorbed}) {
    auto layer = latent_attention{weights_of(shape), {.form = form, .rotation = latent_rotation::decoupled}};
    static_cast<void>(layer.attend(append(0, 4), draw.many(4 * 3 * 6), draw.many(4 * 7), latent_phase::prefill));
    CHECK(layer.work(latent_phase::prefill) == walk(form, 0, 4));
    CHECK(layer.work(latent_phase::decode) == latent_work{});
    auto expected = walk(form, 4, 1);
    expected += walk(form, 5, 1);
    static_cast<void>(layer.attend(append(4, 1), draw.many(3 * 6), draw.many(5 * 7), latent_phase::decode));
    static_cast<void>(layer.mix(append(5, 1), draw.many(3 * 6), draw.many(6 * 7), latent_phase::decode));
    CHECK(layer.work(latent_phase::prefill) == walk(form, 0, 4));
    CHECK(layer.work(latent_phase::decode).expansion == expected.expansion);
    CHECK(layer.work(latent_phase::decode).scores == expected.scores);
    CHECK(layer.work(latent_phase::decode).total() == expected.total());
    CHECK(latent_work::of(shape, form, latent_work::forward{.cached = token_count{4}, .appended = token_count{3}}) ==
          walk(form, 4, 3));
  }
  SECTION("why both forms exist: decode absorbs, prefill expands") {
    auto const mla = latent_shape{
        .heads = 128, .rank = 512, .content_width = 128, .rotary_width = 64, .value_width = 128, .scale = 0.07};
    auto const of = [&](latent_form form, std::uint32_t cached, std::uint32_t appended) {
      return latent_work::of(mla, form,
                             latent_work::forward{.cached = token_count{cached}, .appended = token_count{appended}})
          .total();
    };
    CHECK(of(latent_form::absorbed, 8191, 1) < of(latent_form::expanded, 8191, 1));
    CHECK(of(latent_form::expanded, 0, 4096) < of(latent_form::absorbed, 0, 4096));
    CHECK_THROWS_AS(of(latent_form::absorbed, 0xFFFFFFFF, 0xFFFFFFFF), config_error);
  }
}
