// SPDX-License-Identifier: Apache-2.0
// The CPU backend against the oracle on the same bytes, within the bound of cpu_scene.hpp; all memory that no key or
// value was written to is NaN.
#include "mathematics/cpu_scene.hpp"

#include <support/catch_compat.hpp>

#include <quire/attention/cpu_backend.hpp>
#include <quire/attention/element_codec.hpp>
#include <quire/model/capacity.hpp>
#include <quire/model/model_spec.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace {

using quire::attention_rule;
using quire::dtype;
using quire::token_count;
using quire::token_pos;
using quire_test::cpu_heads;
using quire_test::cpu_order;
using quire_test::cpu_params;
using quire_test::cpu_row;
using quire_test::cpu_scene;
using quire_test::cpu_shape;

/// The parameters with another rule.
auto with(attention_rule rule, auto change) -> attention_rule {
  change(rule);
  return rule;
}

/// Decode, append and prefill in one step; lanes below and above the threshold between the two paths.
auto mixed_rows() -> std::vector<cpu_row> {
  return {{.cached = 40},
          {.cached = 9, .appended = 3},
          {.cached = 0, .appended = 33},
          {.cached = 107, .appended = 26},
          {.cached = 0, .appended = 1},
          {.cached = 230, .appended = 2}};
}

auto rules() -> std::vector<attention_rule> {
  auto const window = attention_rule::sliding_window(token_count{7});
  auto const sinks = attention_rule::sink_window({.sinks = token_count{3}, .window = token_count{10}});
  return {attention_rule::causal(),
          window,
          attention_rule::sliding_window(token_count{1}),
          sinks,
          attention_rule::chunked(token_count{12}),
          with(attention_rule::causal(), [](auto& r) { r.soft_cap = 1.5F; }),
          with(attention_rule::causal(), [](auto& r) { r.alibi = true; }),
          with(window, [](auto& r) { r.learned_sink = true; }),
          with(sinks,
               [](auto& r) {
                 r.alibi = true;
                 r.learned_sink = true;
                 r.soft_cap = 20.0F;
               }),
          attention_rule::cross()};
}

auto all_nan(std::span<float const> values) -> bool {
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isnan(v); });
}

} // namespace

TEST_CASE("S43: the CPU backend agrees with the oracle in every format and block size") {
  for (auto const& format : quire_test::cpu_formats()) {
    for (auto const block : {1U, 2U, 3U, 5U, 16U, 17U}) {
      cpu_scene scene{{.params = cpu_params({}),
                       .key_format = format,
                       .value_format = format,
                       .block_tokens = block,
                       .rows = mixed_rows(),
                       .seed = block}};
      INFO(format.name() << ", blocks of " << block);
      CHECK(scene.difference() == "");
    }
  }
}

TEST_CASE("S43: the bound that the tests allow is small") {
  cpu_scene scene{{.params = cpu_params({}),
                   .key_format = {.type = dtype::f32},
                   .value_format = {.type = dtype::f32},
                   .rows = mixed_rows()}};
  for (auto const& cell : scene.expect()) {
    CHECK(cell.output_bound < 2e-4);
    CHECK(cell.lse_bound < 1e-4);
  }
}

TEST_CASE("S2: the CPU backend follows every rule") {
  for (auto const& rule : rules()) {
    for (auto const type : {dtype::f32, dtype::bf16}) {
      cpu_scene scene{{.params = cpu_params({}, rule),
                       .key_format = {.type = type},
                       .value_format = {.type = type},
                       .block_tokens = 5,
                       .rows = mixed_rows()}};
      INFO(name_of(rule.pattern) << " " << rule.extent.value() << " sinks " << rule.sinks.value() << " cap "
                                 << rule.soft_cap << " alibi " << rule.alibi << " learned " << rule.learned_sink << " "
                                 << name_of(type));
      CHECK(scene.difference() == "");
    }
  }
}

TEST_CASE("S10: the CPU backend serves any number of heads and any width") {
  for (auto const heads :
       {cpu_heads{1, 1, 1, 1}, cpu_heads{3, 3, 7, 5}, cpu_heads{6, 1, 64, 64}, cpu_heads{12, 2, 24, 40},
        cpu_heads{14, 2, 80, 16}, cpu_heads{64, 1, 16, 16}, cpu_heads{16, 16, 128, 128}, cpu_heads{5, 1, 100, 33}}) {
    for (auto const& format :
         {quire::element_format{.type = dtype::bf16},
          quire::element_format{.type = dtype::int8, .scales = quire::scale_spec::per_token_head()}}) {
      cpu_scene scene{{.params = cpu_params(heads),
                       .key_format = format,
                       .value_format = format,
                       .block_tokens = 3,
                       .rows = {{.cached = 100}, {.cached = 2, .appended = 9}, {.cached = 0, .appended = 4}}}};
      INFO(heads.query << " query heads, " << heads.kv << " KV heads, widths " << heads.key_width << " and "
                       << heads.value_width << ", " << format.name());
      CHECK(scene.difference() == "");
    }
  }
}

TEST_CASE("S13: the CPU backend reads the values of a latent layer out of its keys") {
  for (auto const heads : {cpu_heads{16, 1, 48, 32}, cpu_heads{4, 1, 24, 20}}) {
    for (auto const& format :
         {quire::element_format{.type = dtype::bf16},
          quire::element_format{.type = dtype::int8, .scales = quire::scale_spec::per_token_head()},
          quire::element_format{.type = dtype::fp8_e4m3, .scales = quire::scale_spec::per_group(8)}}) {
      cpu_scene scene{{.params = cpu_params(heads),
                       .key_format = format,
                       .value_format = format,
                       .block_tokens = 4,
                       .rows = {{.cached = 60}, {.cached = 3, .appended = 5}},
                       .latent = true}};
      INFO(format.name());
      CHECK(scene.difference() == "");
    }
  }
}

TEST_CASE("S2: the CPU backend reads and writes every order of a plane") {
  for (auto const order : {cpu_order::nhd, cpu_order::hnd, cpu_order::split, cpu_order::transposed}) {
    for (auto const& format : quire_test::cpu_formats()) {
      cpu_scene scene{{.params = cpu_params({}),
                       .key_format = format,
                       .value_format = format,
                       .block_tokens = 5,
                       .rows = mixed_rows(),
                       .order = order}};
      INFO("order " << static_cast<int>(order) << ", " << format.name());
      CHECK(scene.difference() == "");
    }
  }
}

TEST_CASE("S2: the CPU backend takes keys and values of different formats") {
  cpu_scene scene{{.params = cpu_params({}),
                   .key_format = {.type = dtype::bf16},
                   .value_format = {.type = dtype::int8, .scales = quire::scale_spec::per_token_head()},
                   .rows = mixed_rows()}};
  CHECK(scene.difference() == "");
}

TEST_CASE("S20: contiguous, padded, ragged and paged inputs give the same bits") {
  for (auto const rule : {attention_rule::causal(), attention_rule::sliding_window(token_count{11})}) {
    for (auto const type : {dtype::f32, dtype::f16, dtype::bf16}) {
      auto shape = cpu_shape{.params = cpu_params({}, rule),
                             .key_format = {.type = type},
                             .value_format = {.type = type},
                             .rows = mixed_rows()};
      shape.block_tokens = 200; // one block per row: a padded tensor [rows, 200, heads, width]
      cpu_scene padded{shape};
      auto const want = padded.attend();
      for (auto const block : {1U, 3U, 16U, 133U}) { // 1: a ragged tensor [tokens, heads, width]
        shape.block_tokens = block;
        cpu_scene paged{shape};
        INFO(name_of(type) << ", blocks of " << block);
        // other block sizes shuffle differently, but draw the same numbers afterwards only if the tables are alike: copy
        for (std::int32_t row = 0; row < padded.view().rows; ++row) {
          for (std::uint32_t t = 0; t < static_cast<std::uint32_t>(padded.view().row_length(row)); ++t) {
            for (std::uint32_t h = 0; h < shape.params.kv_heads; ++h) {
              for (std::uint32_t d = 0; d < 32; ++d) {
                auto const at = quire::tensor_place{.token = t, .head = h, .dim = d};
                paged.set(paged.key(), row, at, padded.stored(padded.key(), row, at));
                paged.set(paged.value(), row, at, padded.stored(padded.value(), row, at));
              }
            }
          }
        }
        auto got = paged.empty_result();
        CHECK(paged.backend()
                  .attend(quire::layer_id{0}, paged.view(), {.query = padded.query()},
                          {.output = got.output, .lse = got.lse})
                  .has_value());
        CHECK(got == want);
      }
    }
  }
}

TEST_CASE("S19: the order of rows changes no bit of a row") {
  cpu_scene scene{{.params = cpu_params({}),
                   .key_format = {.type = dtype::bf16},
                   .value_format = {.type = dtype::bf16},
                   .rows = {{.cached = 40}, {.cached = 90}, {.cached = 3}}}};
  auto const both = scene.attend();
  auto const cell = std::size_t{4} * 32; // query heads · width
  for (std::int32_t row = 0; row < 3; ++row) {
    auto const alone = scene.attend({.first_row = row, .last_row = row + 1});
    auto const at = static_cast<std::ptrdiff_t>(cell) * row;
    CHECK(std::equal(both.output.begin() + at, both.output.begin() + at + static_cast<std::ptrdiff_t>(cell),
                     alone.output.begin() + at));
  }
}

TEST_CASE("cases 125 to 128: what lies behind a length or outside a window never shows") {
  // cpu_scene fills all memory with NaN first and drops dead blocks; tables point at nothing but what is needed
  for (auto const& rule : rules()) {
    if (rule.pattern == quire::attention_pattern::cross) { continue; }
    for (auto const block : {1U, 4U, 17U}) {
      cpu_scene scene{{.params = cpu_params({}, rule),
                       .key_format = {.type = dtype::bf16},
                       .value_format = {.type = dtype::bf16},
                       .block_tokens = block,
                       .rows = mixed_rows(),
                       .drop_invisible = true}};
      INFO(name_of(rule.pattern) << ", blocks of " << block);
      CHECK(scene.difference() == "");
    }
  }
}

TEST_CASE("S2: NaN in a later new token does not reach an earlier one") {
  for (auto const appended : {3U, 40U}) {
    for (auto const poison : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
      cpu_scene scene{{.params = cpu_params({.query = 2, .kv = 2}),
                       .key_format = {.type = dtype::f32},
                       .value_format = {.type = dtype::f32},
                       .block_tokens = 4,
                       .rows = {{.cached = 20, .appended = appended}}}};
      auto const clean = scene.attend();
      auto const last = 20 + appended - 1;
      for (std::uint32_t d = 0; d < 32; ++d) {
        scene.set(scene.key(), 0, {.token = last, .head = 0, .dim = d}, poison);
        scene.set(scene.value(), 0, {.token = last, .head = 0, .dim = d}, poison);
      }
      auto const got = scene.attend();
      auto const cells = std::size_t{appended - 1} * 2; // the last row sees it
      // not bit for bit: lanes are added one by one where one of them meets NaN
      for (std::size_t i = 0; i < cells * 32; ++i) { CHECK(std::fabs(got.output[i] - clean.output[i]) < 1e-5F); }
      CHECK(all_nan(std::span{got.output}.subspan(cells * 32, 32)));         // last row, head 0
      CHECK(got.output[(cells + 1) * 32] == clean.output[(cells + 1) * 32]); // last row, head 1
    }
  }
}

TEST_CASE("S9: a decode step reads the keys and values it sees, and nothing else") {
  for (auto const rule : {attention_rule::causal(), attention_rule::sliding_window(token_count{6}),
                          attention_rule::chunked(token_count{8}),
                          attention_rule::sink_window({.sinks = token_count{2}, .window = token_count{5}})}) {
    auto const params = cpu_params({.query = 2, .kv = 1, .key_width = 16, .value_width = 8}, rule);
    cpu_scene scene{{.params = params,
                     .key_format = {.type = dtype::bf16},
                     .value_format = {.type = dtype::bf16},
                     .block_tokens = 4,
                     .rows = {{.cached = 18}}}};
    auto bytes = std::uint64_t{0};
    for (auto& tensor : scene.tensors()) {
      for (std::size_t at = 0; at < tensor.size(); at += 2) {
        auto const kept = std::array{tensor[at], tensor[at + 1]};
        tensor[at] = std::byte{0xC0}; // NaN
        tensor[at + 1] = std::byte{0x7F};
        auto const got = scene.attend();
        bytes += std::any_of(got.output.begin(), got.output.end(), [](float v) { return std::isnan(v); }) ? 2U : 0U;
        tensor[at] = kept[0];
        tensor[at + 1] = kept[1];
      }
    }
    auto const model = quire::model_spec{
        {.layers = {{.query_heads = 2, .kv_heads = 1, .key_width = 16, .value_width = 8, .rule = rule}},
         .max_positions = token_count{1000}}};
    CHECK(bytes == quire::step_read_bytes(model, token_pos{18}).value());
  }
}

TEST_CASE("S2: a row that sees no key gives zeros and an empty log-sum-exp") {
  for (auto const appended : {1U, 20U}) {
    cpu_scene scene{{.params = cpu_params({}),
                     .key_format = {.type = dtype::bf16},
                     .value_format = {.type = dtype::bf16},
                     .rows = {{.cached = 30, .appended = appended}}}};
    auto const nothing = quire::cpu_range{.keys = {.begin = token_pos{1000}, .end = token_pos{2000}}};
    auto const got = scene.attend(nothing);
    CHECK(std::all_of(got.output.begin(), got.output.end(), [](float v) { return v == 0.0F; }));
    CHECK(std::all_of(got.lse.begin(), got.lse.end(),
                      [](float v) { return v == -std::numeric_limits<float>::infinity(); }));
  }
  cpu_scene empty{{.params = cpu_params({}),
                   .key_format = {.type = dtype::bf16},
                   .value_format = {.type = dtype::bf16},
                   .rows = {{.cached = 5, .appended = 0}, {.cached = 5}}}};
  CHECK(empty.difference() == "");
}

TEST_CASE("S43: bias joins the scores, and −∞ hides") {
  for (auto const appended : {1U, 25U}) {
    for (auto const& format :
         {quire::element_format{.type = dtype::bf16},
          quire::element_format{.type = dtype::int8, .scales = quire::scale_spec::per_token_head()}}) {
      cpu_scene scene{{.params = cpu_params({}),
                       .key_format = format,
                       .value_format = format,
                       .block_tokens = 3,
                       .rows = {{.cached = 37, .appended = appended}}}};
      auto const bias = [](quire::score_place const& at) {
        return at.key.value() % 5 == 2 ? -std::numeric_limits<double>::infinity()
                                       : 0.25 * (at.key.value() % 3) - 0.5 * at.head;
      };
      CHECK(scene.compare(scene.attend({}, bias), scene.expect(bias)) == "");
      auto const hide_all = [](quire::score_place const&) { return -std::numeric_limits<double>::infinity(); };
      auto const got = scene.attend({}, hide_all);
      CHECK(std::all_of(got.output.begin(), got.output.end(), [](float v) { return v == 0.0F; }));
    }
  }
}

TEST_CASE("S43: parts of rows and heads on two threads give the bits of one call") {
  cpu_scene scene{{.params = cpu_params({.query = 8, .kv = 4}),
                   .key_format = {.type = dtype::bf16},
                   .value_format = {.type = dtype::bf16},
                   .rows = mixed_rows()}};
  auto const want = scene.attend();
  auto got = scene.empty_result();
  auto const lower = quire::cpu_range{.last_head = 2};
  auto const upper = quire::cpu_range{.first_head = 2};
  std::thread other{[&] { scene.attend_into(got, lower); }};
  scene.attend_into(got, upper);
  other.join();
  CHECK(got == want);

  auto rows = scene.empty_result();
  scene.attend_into(rows, {.first_row = 1, .last_row = 3});
  CHECK(all_nan(std::span{rows.lse}.first(8))); // row 0 was not written
  scene.attend_into(rows, {.last_row = 1});
  scene.attend_into(rows, {.first_row = 3});
  CHECK(rows == want);
}

TEST_CASE("S2: parts of the keys merge to the whole, sinks once") {
  auto const rule = with(attention_rule::causal(), [](auto& r) { r.learned_sink = true; });
  cpu_scene scene{{.params = cpu_params({}, rule),
                   .key_format = {.type = dtype::bf16},
                   .value_format = {.type = dtype::bf16},
                   .rows = mixed_rows()}};
  auto const cut = token_pos{13};
  auto const first = quire::cpu_range{.keys = {.begin = token_pos{0}, .end = cut}};
  auto const second = quire::cpu_range{.keys = {.begin = cut, .end = token_pos{1'000'000}}};
  auto all = scene.attend(first);
  CHECK(scene.compare(all, scene.expect(quire::no_bias{}, first)) == "");
  auto const more = scene.attend(second);
  auto const width = std::size_t{scene.shape().params.value_width};
  for (std::size_t c = 0; c < scene.cells(); ++c) {
    auto const output = std::span{all.output}.subspan(c * width, width);
    quire::merge_into(output, all.lse[c], std::span<float const>{more.output}.subspan(c * width, width), more.lse[c]);
    quire::apply_sink(output, all.lse[c], static_cast<float>(scene.shape().params.sink_logits[c % 4]));
  }
  CHECK(scene.compare(all, scene.expect()) == "");
}

TEST_CASE("S2: scores far apart neither overflow nor lose the highest") {
  for (auto const appended : {1U, 20U}) {
    auto params = cpu_params({.query = 2, .kv = 1});
    params.scale = 60.0;
    cpu_scene scene{{.params = params,
                     .key_format = {.type = dtype::f32},
                     .value_format = {.type = dtype::f32},
                     .rows = {{.cached = 300, .appended = appended}}}};
    CHECK(scene.difference() == "");
  }
}

TEST_CASE("S6: stored elements are those of the reference codec") {
  for (auto const type : {dtype::f32, dtype::f16, dtype::bf16, dtype::fp8_e4m3, dtype::int8}) {
    auto const bytes = quire::bits_of(type) / 8;
    auto const check = [&](float value) {
      std::array<std::byte, 4> got{};
      quire::detail::with_cpu_codec(type, [&]<class Codec>(Codec) { Codec::store(got.data(), value); });
      std::array<std::byte, 4> want{};
      quire::store_element(type, want, 0, static_cast<double>(value));
      auto const both_nan = type == dtype::f32 && std::isnan(value); // whose payload may change on the way to double
      if (got != want && !both_nan) {
        INFO(name_of(type) << " " << value);
        CHECK(got == want);
      }
    };
    for (std::uint32_t bits = 0; bits < 0xFFFF'0000U; bits += 0x0000'3FFDU) { check(std::bit_cast<float>(bits)); }
    for (auto const value : {0.0F,
                             -0.0F,
                             65504.0F,
                             65519.996F,
                             65520.0F,
                             448.0F,
                             463.9F,
                             464.0F,
                             0x1p-9F,
                             0x1p-10F,
                             0x1.8p-10F,
                             0x1p-24F,
                             0x1p-25F,
                             0x1.8p-25F,
                             0.5F,
                             1.5F,
                             2.5F,
                             126.5F,
                             127.5F,
                             -128.5F,
                             0x1p-133F,
                             std::numeric_limits<float>::infinity(),
                             -std::numeric_limits<float>::infinity()}) {
      check(value);
    }
    if (bytes > 2) { continue; }
    // every stored element, in every place of a vector
    for (std::uint32_t code = 0; code < (1U << (8 * bytes)); ++code) {
      std::array<std::byte, 64> row{};
      for (std::size_t at = 0; at < row.size(); at += bytes) {
        for (std::size_t b = 0; b < bytes; ++b) { row[at + b] = static_cast<std::byte>(code >> (8 * b)); }
      }
      auto const want = quire::decode_element(type, code);
      auto const same = [&](float got) {
        return std::isnan(want) ? std::isnan(got)
                                : static_cast<double>(got) == want && std::signbit(got) == std::signbit(want);
      };
      quire::detail::with_cpu_codec(type, [&]<class Codec>(Codec) {
        auto a = quire::detail::cpu_f32{};
        auto b = quire::detail::cpu_f32{};
        Codec::chunk(row.data(), a, b);
        auto const v = Codec::vector(row.data());
        auto good = same(Codec::load(row.data()));
        for (std::size_t i = 0; i < quire::detail::cpu_lanes; ++i) {
          good = good && same(a[i]) && same(b[i]) && same(v[i]);
        }
        if (!good) {
          INFO(name_of(type) << " code " << code);
          CHECK(good);
        }
      });
    }
  }
  SUCCEED();
}

TEST_CASE("S6: scales per token and group keep the largest element") {
  for (auto const type : {dtype::int8, dtype::fp8_e4m3}) {
    for (auto const& scales : {quire::scale_spec::per_token_head(), quire::scale_spec::per_group(8)}) {
      cpu_scene scene{{.params = cpu_params({}),
                       .key_format = {.type = type, .scales = scales},
                       .value_format = {.type = type, .scales = scales},
                       .rows = {{.cached = 30}}}};
      auto const& given = scene.new_key(0);
      auto const relative = type == dtype::int8 ? 0.5 / 127.0 : 1.0 / 16.0;
      for (std::uint32_t t = 0; t < 31; ++t) {
        for (std::uint32_t h = 0; h < 2; ++h) {
          for (std::uint32_t d = 0; d < 32; ++d) {
            auto const want = static_cast<double>(given[(t * 2 + h) * 32 + d]);
            auto const got = scene.stored(scene.key(), 0, {.token = t, .head = h, .dim = d});
            REQUIRE(std::fabs(got - want) <= relative * 1.0 + 1e-6);
            auto const place = scene.view().locate(0, token_pos{t});
            auto const loaded = scene.key().load({.block = place.block, .token = place.offset, .head = h, .dim = d});
            REQUIRE(static_cast<double>(loaded) == quire_test::approx(got));
          }
        }
      }
    }
  }
}

TEST_CASE("S22: a slot of −1 is not written, and nothing beside the slots is") {
  cpu_scene scene{{.params = cpu_params({}),
                   .key_format = {.type = dtype::bf16},
                   .value_format = {.type = dtype::int8, .scales = quire::scale_spec::per_token_head()},
                   .block_tokens = 4,
                   .rows = {{.cached = 9, .appended = 2}}}};
  auto const before = scene.tensors();
  auto view = scene.view();
  std::vector<std::int64_t> slots{view.slot.begin(), view.slot.end()};
  auto const kept = slots[1];
  slots[1] = -1;
  view.slot = slots;
  auto const key = std::vector<float>(std::size_t{2} * 2 * 32, 1.0F);
  REQUIRE(scene.backend().write(quire::layer_id{0}, view, {.key = key, .value = key}).has_value());
  auto changed = std::size_t{0};
  for (std::size_t t = 0; t < before.size(); ++t) {
    auto const row = scene.tensors()[t].size() / (scene.key().layout.blocks * 4); // bytes per token: nhd
    for (std::size_t at = 0; at < before[t].size(); ++at) {
      auto const differs = before[t][at] != scene.tensors()[t][at];
      changed += differs ? 1 : 0;
      if (differs) { REQUIRE(static_cast<std::int64_t>(at / row) == slots[0]); }
    }
  }
  CHECK(changed > 0);
  CHECK(kept != -1);
}

TEST_CASE("S6: scales travel with their block") {
  auto const format = quire::element_format{.type = dtype::int8, .scales = quire::scale_spec::per_token_head()};
  cpu_scene scene{{.params = cpu_params({}),
                   .key_format = format,
                   .value_format = format,
                   .block_tokens = 4,
                   .rows = {{.cached = 7}}}};
  auto const want = scene.attend();
  // the first block moves to a block that is not in the table
  auto const old = scene.table()[0];
  auto spare = 0;
  while (std::find(scene.table().begin(), scene.table().end(), spare) != scene.table().end()) { ++spare; }
  std::array const actions{quire::action{.kind = quire::action_kind::move,
                                         .group = quire::group_id{0},
                                         .source = quire::block_id{static_cast<std::uint32_t>(old)},
                                         .target = quire::block_id{static_cast<std::uint32_t>(spare)}},
                           quire::action{.kind = quire::action_kind::scrub,
                                         .group = quire::group_id{0},
                                         .target = quire::block_id{static_cast<std::uint32_t>(old)}}};
  REQUIRE(scene.backend().run(actions).has_value());
  scene.table()[0] = spare;
  CHECK(scene.attend() == want);
}

TEST_CASE("S6: lossy formats name their execution mode") {
  auto const mode = [](quire::element_format key, quire::element_format value) {
    cpu_scene scene{{.params = cpu_params({}), .key_format = key, .value_format = value, .rows = {{.cached = 3}}}};
    return scene.backend().execution_mode();
  };
  CHECK(mode({.type = dtype::bf16}, {.type = dtype::f16}) == "exact");
  auto const int8 = quire::element_format{.type = dtype::int8, .scales = quire::scale_spec::per_token_head()};
  CHECK(mode(int8, int8) == "key=int8/token_head:f32+value=int8/token_head:f32");
  CHECK(mode({.type = dtype::bf16}, {.type = dtype::fp8_e4m3, .scales = quire::scale_spec::per_tensor()}) ==
        "value=fp8_e4m3/tensor:f32");
  auto const model = quire::model_spec{{.layers = {{.query_heads = 4,
                                                    .kv_heads = 2,
                                                    .key_width = 32,
                                                    .value_width = 32,
                                                    .key_format = int8,
                                                    .value_format = int8}},
                                        .max_positions = token_count{10}}};
  CHECK(mode(int8, int8) == model.execution_mode());
}

TEST_CASE("S43: the CPU backend refuses what it cannot serve, with the reason") {
  auto const refused = [](auto change, std::string const& text) {
    cpu_scene scene{{.params = cpu_params({}),
                     .key_format = {.type = dtype::int8, .scales = quire::scale_spec::per_token_head()},
                     .value_format = {.type = dtype::bf16},
                     .rows = {{.cached = 3}}}};
    auto layers = scene.layers();
    change(layers.front());
    CHECK_THROWS_WITH(quire::cpu_backend{layers}, quire_test::ContainsSubstring(text));
  };
  refused([](auto& l) { l.params.kv_heads = 3; }, "use a divisor");
  refused([](auto& l) { l.params.rule = attention_rule::bidirectional(); }, "bidirectional");
  refused([](auto& l) { l.key.format.type = dtype::fp8_e5m2; }, "no fast path");
  refused([](auto& l) { l.key.format.scales = quire::scale_spec::per_block_head(); },
          "cannot be known when its first token is written");
  refused([](auto& l) { l.key.format.scales = quire::scale_spec::per_group(5); }, "do not divide");
  refused([](auto& l) { l.key.format.scales.type = dtype::bf16; }, "read as f32");
  refused([](auto& l) { l.key.scale_layout = {}; }, "cpu_plane::scales_for");
  refused([](auto& l) { l.key.scale = 2.0F; }, "per_tensor");
  refused([](auto& l) { l.key.tensor = l.key.tensor.first(5); }, "smaller than its layout");
  refused([](auto& l) { l.key.scale_tensor = l.key.scale_tensor.first(5); }, "the tensor of the scales has 5 bytes");
  refused([](auto& l) { l.value->format.scales = quire::scale_spec::per_token_head(); }, "takes no scales");
  refused([](auto& l) { l.value->format.type = dtype::f32; }, "element_bits");
  refused([](auto& l) { l.params.value_width = 16; }, "other heads or width");
  refused([](auto& l) { l.group = quire::group_id{1}; }, "count from 0");
  refused(
      [](auto& l) {
        l.value.reset();
        l.params.value_width = 64;
      },
      "d_v must not exceed d_k");
}

TEST_CASE("S43: a view that points at no block is a broken contract") {
  cpu_scene scene{{.params = cpu_params({}),
                   .key_format = {.type = dtype::bf16},
                   .value_format = {.type = dtype::bf16},
                   .block_tokens = 4,
                   .rows = {{.cached = 9}}}};
  auto const good = scene.table()[1];
  for (auto const bad : {-1, 1000}) {
    scene.table()[1] = bad;
    CHECK_THROWS(scene.attend());
  }
  scene.table()[1] = good;
  CHECK(scene.difference() == "");
  auto out = scene.empty_result();
  CHECK_THROWS(scene.backend().attend(quire::layer_id{1}, scene.view(), {.query = scene.query()},
                                      {.output = out.output, .lse = out.lse}));
  CHECK_THROWS(scene.backend().attend(quire::layer_id{0}, scene.view(), {.query = std::span{scene.query()}.first(3)},
                                      {.output = out.output, .lse = out.lse}));
}

TEST_CASE("S43: exponential and hyperbolic tangent are as good as they say") {
  using namespace quire::detail;
  auto worst = 0.0;
  for (auto x = -87.0; x < 88.0; x += 0.00137) {
    auto const at = static_cast<float>(x);
    auto const want = std::exp(static_cast<double>(at));
    worst = std::max(worst, std::fabs(static_cast<double>(cpu_exp(cpu_splat(at))[0]) - want) / want);
  }
  CHECK(worst < 0x1p-22);
  CHECK(cpu_exp(cpu_splat(-87.4F))[0] == 0.0F);
  CHECK(cpu_exp(cpu_splat(-cpu_infinity))[0] == 0.0F);
  CHECK(cpu_exp(cpu_splat(0.0F))[0] == 1.0F);
  CHECK(std::isnan(cpu_exp(cpu_splat(std::numeric_limits<float>::quiet_NaN()))[0]));
  worst = 0.0;
  for (auto x = -12.0; x < 12.0; x += 0.00021) {
    auto const at = static_cast<float>(x);
    auto const want = std::tanh(static_cast<double>(at));
    if (want != 0.0) {
      worst = std::max(worst, std::fabs((static_cast<double>(cpu_tanh(cpu_splat(at))[0]) - want) / want));
    }
  }
  CHECK(worst < 0x1p-21);
}
