// SPDX-License-Identifier: Apache-2.0
// Low-rank attention: absorbed equals expanded, for every shape, rule and split of the keys.
#include <quire/attention/latent_attention.hpp>

#include "mathematics/numbers.hpp"
#include "support/rc_prop.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace {
using namespace quire;
} // namespace

TEST_CASE("S12: absorbed equals expanded") {
  quire_test::prop("outputs, log-sum-exps and the merged projection agree", [] {
    auto shape = latent_shape{.heads = *rc::gen::inRange(1U, 5U),
                              .rank = *rc::gen::inRange(1U, 7U),
                              .content_width = *rc::gen::inRange(1U, 6U),
                              .rotary_width = 2 * *rc::gen::inRange(0U, 3U),
                              .value_width = *rc::gen::inRange(1U, 5U)};
    shape.scale = attention_params::usual_scale(shape.query_width());
    auto draw = quire_test::numbers{*rc::gen::arbitrary<std::uint32_t>()};
    auto const weights =
        latent_weights{.shape = shape,
                       .up_key = draw.many(std::size_t{shape.heads} * shape.content_width * shape.rank),
                       .up_value = draw.many(std::size_t{shape.heads} * shape.value_width * shape.rank)};
    auto const rotation = shape.rotary_width > 0 ? latent_rotation::decoupled : latent_rotation::none;
    auto const rule = *rc::gen::element(attention_rule::causal(), attention_rule::sliding_window(token_count{3}),
                                        attention_rule::chunked(token_count{4}));
    auto const extent = attention_extent::append(
        {.cached = token_count{*rc::gen::inRange(0U, 8U)}, .appended = token_count{*rc::gen::inRange(1U, 5U)}});
    auto const rows = std::size_t{extent.queries.value()};
    auto const cached = draw.many(std::size_t{extent.keys.size().value()} * shape.cached_width());
    auto const queries = draw.many(rows * shape.heads * shape.query_width(), 2.0);

    auto expanded =
        latent_attention{weights, {.form = latent_form::expanded, .rotation = rotation, .inside = {}, .rule = rule}};
    auto absorbed =
        latent_attention{weights, {.form = latent_form::absorbed, .rotation = rotation, .inside = {}, .rule = rule}};
    auto const a = expanded.attend(extent, queries, cached, latent_phase::prefill);
    auto const b = absorbed.attend(extent, queries, cached, latent_phase::prefill);
    RC_ASSERT(quire_test::distance(a.output, b.output) < 1e-12);
    RC_ASSERT(quire_test::distance(a.lse, b.lse) < 1e-12);

    auto const hidden = *rc::gen::inRange(1U, 4U);
    auto const projection = draw.many(std::size_t{hidden} * shape.heads * shape.value_width);
    auto const merged = weights.merge_output(projection, hidden);
    auto const mixed = absorbed.mix(extent, queries, cached, latent_phase::prefill);
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t h = 0; h < hidden; ++h) {
        auto apart = 0.0;
        auto joined = 0.0;
        auto const wide = std::size_t{shape.heads} * shape.value_width;
        auto const narrow = std::size_t{shape.heads} * shape.rank;
        for (std::size_t i = 0; i < wide; ++i) { apart += projection[h * wide + i] * a.output[row * wide + i]; }
        for (std::size_t i = 0; i < narrow; ++i) { joined += merged[h * narrow + i] * mixed.output[row * narrow + i]; }
        RC_ASSERT(std::fabs(apart - joined) < 1e-12);
      }
    }
    auto const whole = latent_work::of(
        shape, latent_form::absorbed,
        latent_work::forward{.cached = extent.keys.size() - extent.queries, .appended = extent.queries}, rule);
    auto twice = whole;
    twice += whole;
    RC_ASSERT(absorbed.work(latent_phase::prefill) == twice);
  });
}
