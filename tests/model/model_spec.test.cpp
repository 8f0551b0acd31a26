// SPDX-License-Identifier: Apache-2.0

/// \file
/// Descriptions of layers and models: what is refused, and how layers form groups.

#include "support/catch_compat.hpp"

#include <quire/core/config_error.hpp>
#include <quire/model/element_format.hpp>
#include <quire/model/layer_spec.hpp>
#include <quire/model/model_spec.hpp>

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace quire;

auto gqa(attention_rule rule = attention_rule::causal()) -> layer_spec {
  return {.query_heads = 8, .kv_heads = 2, .key_width = 64, .value_width = 64, .rule = rule};
}
auto mla() -> layer_spec {
  return {.kind = layer_kind::latent,
          .query_heads = 16,
          .key_width = 128 + 64,
          .value_width = 128,
          .latent_rank = 512,
          .rotary_width = 64};
}
auto window(std::uint32_t w) -> attention_rule { return attention_rule::sliding_window(token_count{w}); }
auto borrowing(std::uint32_t owner, attention_rule rule = attention_rule::causal()) -> layer_spec {
  auto out = gqa(rule);
  out.borrows = layer_id{owner};
  return out;
}
auto model_of(std::vector<layer_spec> layers, std::uint32_t max_positions = 4096) -> model_spec {
  return model_spec{{.name = "toy", .layers = std::move(layers), .max_positions = token_count{max_positions}}};
}
auto refusal(std::vector<layer_spec> layers) -> std::string {
  try {
    static_cast<void>(model_of(std::move(layers)));
  } catch (config_error const& error) { return error.what(); }
  return {};
}

// What every model promises, whatever was described.
void check_invariants(model_spec const& model) {
  std::set<std::uint32_t> owners;
  std::set<std::uint32_t> borrowers;
  for (std::uint32_t g = 0; g < model.groups().size(); ++g) {
    auto const& group = model.groups()[g];
    REQUIRE(group.id == group_id{g});
    REQUIRE_FALSE(group.owners.empty());
    for (auto const id : group.owners) {
      REQUIRE(model.group_of(id) == group.id);
      REQUIRE(model.owner_of(id) == id);
      REQUIRE(model.layer(id).planes() == group.planes);
      REQUIRE(model.layer(id).retains() == group.keeps);
      REQUIRE(owners.insert(id.value()).second);
    }
    for (auto const id : group.borrowers) {
      REQUIRE(model.group_of(id) == group.id);
      REQUIRE(model.group_of(model.owner_of(id)) == group.id);
      REQUIRE(model.layer(id).planes() == group.planes);
      REQUIRE(borrowers.insert(id.value()).second);
    }
  }
  REQUIRE(owners.size() + borrowers.size() == model.layers());
  for (std::uint32_t a = 0; a < model.groups().size(); ++a) {
    for (auto b = a + 1; b < model.groups().size(); ++b) {
      auto const& x = model.groups()[a];
      auto const& y = model.groups()[b];
      REQUIRE((x.kind != y.kind || x.keeps != y.keeps || x.planes != y.planes));
    }
  }
}

} // namespace

TEST_CASE("S10: MHA, GQA and MQA are told apart by their heads, and i reads ⌊i·h_kv/h_q⌋", "[model]") {
  auto layer = gqa();
  CHECK(layer.sharing() == head_sharing::gqa);
  CHECK(layer.kv_head_of(0) == 0);
  CHECK(layer.kv_head_of(3) == 0);
  CHECK(layer.kv_head_of(4) == 1);
  CHECK(layer.kv_head_of(7) == 1);
  layer.kv_heads = 8;
  CHECK(layer.sharing() == head_sharing::mha);
  CHECK(layer.kv_head_of(5) == 5);
  layer.kv_heads = 1;
  CHECK(layer.sharing() == head_sharing::mqa);
  CHECK(layer.kv_head_of(7) == 0);
}

TEST_CASE("S10: impossible layers are refused, and the text says which and what would work", "[model]") {
  auto const expect = [](void (*spoil)(layer_spec&), std::string const& text) {
    auto layer = gqa();
    spoil(layer);
    auto const said = refusal({gqa(), layer});
    CHECK_THAT(said, quire_test::ContainsSubstring("toy, layer 1"));
    CHECK_THAT(said, quire_test::ContainsSubstring(text));
  };
  expect([](layer_spec& l) { l.kv_heads = 3; },
         "8 query heads cannot share 3 KV heads evenly: use kv_heads out of 1, 2, 4, 8");
  expect([](layer_spec& l) { l.kv_heads = 16; }, "use kv_heads out of");
  expect([](layer_spec& l) { l.kv_heads = 0; }, "kv_heads is 0");
  expect([](layer_spec& l) { l.query_heads = 0; }, "query_heads is 0");
  expect([](layer_spec& l) { l.key_width = 0; }, "key_width is 0");
  expect([](layer_spec& l) { l.value_width = 0; }, "value_width is 0");
  expect([](layer_spec& l) { l.latent_rank = 512; }, "belong to latent layers");
  expect([](layer_spec& l) { l.rotary_width = 64; }, "belong to latent layers");
  expect([](layer_spec& l) { l.kind = layer_kind::state; }, "recurrent state layers are not built yet");
  expect([](layer_spec& l) { l.kind = layer_kind::cross; }, "cross");
  expect([](layer_spec& l) { l.rule = attention_rule::cross(); }, "cross");
  expect([](layer_spec& l) { l.rule = {.pattern = attention_pattern::sliding_window}; }, "window of 0");
  expect([](layer_spec& l) { l.rule = {.pattern = attention_pattern::chunked}; }, "chunks of 0");
  expect([](layer_spec& l) { l.key_format.scales.granularity = scale_granularity::group; }, "scale group size");
  expect([](layer_spec& l) { l.key_format.scales.group = 4; }, "scale group size");
  expect([](layer_spec& l) { l.value_format.scales = scale_spec::per_token_head(dtype::int4); }, "below 8 bits");
  expect(
      [](layer_spec& l) {
        l.value_format.scales = scale_spec::per_block_head();
        l.value_format.scales.placement = scale_placement::in_row;
      },
      "own_plane");
  expect([](layer_spec& l) { l.side.push_back({.kind = plane_kind::side, .width = 0}); }, "side plane: has width 0");
  expect([](layer_spec& l) { l.side.push_back({.kind = plane_kind::side, .heads = 0, .width = 1}); }, "0 heads");
}

TEST_CASE("S13: impossible latent layers are refused", "[model]") {
  auto const expect = [](void (*spoil)(layer_spec&), std::string const& text) {
    auto layer = mla();
    spoil(layer);
    CHECK_THAT(refusal({layer}), quire_test::ContainsSubstring(text));
  };
  CHECK(refusal({mla()}).empty());
  expect([](layer_spec& l) { l.kv_heads = 1; }, "no KV heads");
  expect([](layer_spec& l) { l.latent_rank = 0; }, "latent_rank is 0");
  expect([](layer_spec& l) { l.rotary_width = 192; }, "rotary_width must be less");
}

TEST_CASE("S5: a bidirectional layer is refused, a cross layer forms its own group", "[model]") {
  CHECK_THAT(refusal({gqa(attention_rule::bidirectional())}), quire_test::ContainsSubstring("no append-only cache"));
  auto cross = gqa(attention_rule::cross());
  cross.kind = layer_kind::cross;
  auto const model = model_of({gqa(), cross, gqa(), cross});
  check_invariants(model);
  REQUIRE(model.groups().size() == 2);
  CHECK(model.groups()[0].kind == group_kind::self);
  CHECK(model.groups()[1].kind == group_kind::cross);
  CHECK(model.groups()[1].layers() == 2);
  cross.keeps = retention::sliding_window(token_count{4});
  CHECK_THAT(refusal({cross}), quire_test::ContainsSubstring("retained in full"));
}

TEST_CASE("S10: an empty model, or one without positions, is refused", "[model]") {
  CHECK_THAT(refusal({}), quire_test::ContainsSubstring("without layers"));
  CHECK_THROWS_WITH(model_of({gqa()}, 0), quire_test::ContainsSubstring("max_positions is 0"));
  CHECK_THROWS_AS(model_of({gqa()}).with_max_positions(token_count{0}), config_error);
}

TEST_CASE("S29: layers of equal planes and retention form groups, in the order of their first layer", "[model]") {
  auto wide = gqa();
  wide.value_width = 32;
  auto fp8 = gqa();
  fp8.key_format = {.type = dtype::fp8_e4m3};
  auto sink = gqa();
  sink.rule.learned_sink = true; // another rule, the same cache
  auto more_queries = gqa();
  more_queries.query_heads = 16;
  auto const model =
      model_of({gqa(window(16)), gqa(), wide, gqa(window(16)), fp8, sink, gqa(window(32)), more_queries});
  check_invariants(model);
  REQUIRE(model.groups().size() == 5);
  CHECK(model.groups()[0].owners == std::vector{layer_id{0}, layer_id{3}});
  CHECK(model.groups()[1].owners == std::vector{layer_id{1}, layer_id{5}, layer_id{7}});
  CHECK(model.groups()[2].owners == std::vector{layer_id{2}});
  CHECK(model.groups()[3].owners == std::vector{layer_id{4}});
  CHECK(model.groups()[4].owners == std::vector{layer_id{6}});
}

TEST_CASE("case 119: a window that no sequence exceeds is full attention, everywhere", "[model]") {
  auto const model = model_of({gqa(), gqa(window(32768))}, 512);
  check_invariants(model);
  REQUIRE(model.groups().size() == 1); // one pool, not two
  CHECK(model.groups()[0].keeps == retention::full());
  CHECK(model.layer(layer_id{1}).rule == attention_rule::causal());

  auto const longer = model_of({gqa(), gqa(window(32768))}, 65536);
  CHECK(longer.groups().size() == 2);
  CHECK(longer.with_max_positions(token_count{512}) == model);
  CHECK(model_of({gqa(window(512))}, 512).groups()[0].keeps == retention::full());
  CHECK(model_of({gqa(window(511))}, 512).groups()[0].keeps == retention::sliding_window(token_count{511}));

  auto ring = gqa(window(512));
  ring.keeps = retention::ring({.capacity = token_count{600}, .window = token_count{512}});
  CHECK(model_of({ring}, 512).groups()[0].keeps == retention::full());
  CHECK(model_of({ring}, 513).groups()[0].keeps.kind == retention_kind::ring);
}

TEST_CASE("case 120: a pattern longer than the stack leaves only the groups that layers have", "[model]") {
  std::uint32_t const pattern[] = {128, 32768};
  std::vector<layer_spec> layers;
  for (std::uint32_t i = 0; i < 1; ++i) { layers.push_back(gqa(window(pattern[i % 2]))); }
  auto const model = model_of(layers, 65536);
  REQUIRE(model.groups().size() == 1);
  CHECK(model.groups()[0].keeps == retention::sliding_window(token_count{128}));
}

TEST_CASE("case 143: a borrower has its owner's group and is written through its owner only", "[model]") {
  auto const model =
      model_of({gqa(), gqa(window(16)), borrowing(0), borrowing(1, window(16)), borrowing(1, window(8))});
  check_invariants(model);
  REQUIRE(model.groups().size() == 2);
  CHECK(model.groups()[0].owners == std::vector{layer_id{0}});
  CHECK(model.groups()[0].borrowers == std::vector{layer_id{2}});
  CHECK(model.groups()[1].owners == std::vector{layer_id{1}});
  CHECK(model.groups()[1].borrowers == std::vector{layer_id{3}, layer_id{4}});
  CHECK(model.owner_of(layer_id{3}) == layer_id{1});
  CHECK_FALSE(model.layer(layer_id{3}).owns_cache());
}

TEST_CASE("case 143: impossible borrowing is refused with what would work", "[model]") {
  CHECK_THAT(refusal({gqa(), borrowing(0), borrowing(1)}), quire_test::ContainsSubstring("borrow from layer 0"));
  CHECK_THAT(refusal({gqa(), borrowing(1)}), quire_test::ContainsSubstring("does not come before it"));
  CHECK_THAT(refusal({gqa(), borrowing(7)}), quire_test::ContainsSubstring("does not come before it"));
  CHECK_THAT(refusal({borrowing(1), gqa()}), quire_test::ContainsSubstring("does not come before it"));
  CHECK_THAT(refusal({gqa(window(8)), borrowing(0)}), quire_test::ContainsSubstring("sees more than layer 0 keeps"));
  auto other = borrowing(0);
  other.kv_heads = 4;
  CHECK_THAT(refusal({gqa(), other}), quire_test::ContainsSubstring("other KV heads"));
  auto retaining = borrowing(0);
  retaining.keeps = retention::ring({.capacity = token_count{8}, .window = token_count{8}});
  CHECK_FALSE(refusal({gqa(), retaining}).empty());
}

TEST_CASE("S6: keeping less than the rule sees needs a name", "[model]") {
  auto evicting = gqa();
  evicting.keeps = retention::sink_window({.sinks = token_count{4}, .window = token_count{64}});
  CHECK_THAT(refusal({evicting}), quire_test::ContainsSubstring("name the approximate mode"));
  auto const model =
      model_spec{{.layers = {evicting}, .max_positions = token_count{4096}, .approximation = "streaming"}};
  CHECK(model.execution_mode() == "streaming");
  CHECK(model.groups()[0].keeps.kind == retention_kind::sink_window);

  auto generous = gqa(window(64));
  generous.keeps = retention::full();
  CHECK(model_of({generous}).execution_mode() == "exact");
  auto chunked = gqa(attention_rule::chunked(token_count{64}));
  chunked.keeps = retention::sliding_window(token_count{63});
  CHECK_FALSE(refusal({chunked}).empty());
  chunked.keeps = retention::sliding_window(token_count{64});
  CHECK(refusal({chunked}).empty());
}

TEST_CASE("S6: quantised caches have a mode that tells formats apart", "[model]") {
  auto const base = model_of({gqa(), gqa(window(16))});
  CHECK(base.execution_mode() == "exact");
  auto const int8 = base.with_format({.type = dtype::int8, .scales = scale_spec::per_token_head()});
  CHECK(int8.execution_mode() == "key=int8/token_head:f32+value=int8/token_head:f32");
  auto const fp8 = base.with_format({.type = dtype::fp8_e4m3});
  CHECK(fp8.execution_mode() == "key=fp8_e4m3+value=fp8_e4m3");
  CHECK(fp8 != base);
  CHECK(fp8.with_format({}) == base);
  CHECK(base.with_format({.type = dtype::f32}).execution_mode() == "exact");
  check_invariants(int8);
}

TEST_CASE("S32: the position configuration is kept as opaque bytes and compared", "[model]") {
  model_description description{.layers = {gqa()}, .max_positions = token_count{64}};
  auto const plain = model_spec{description};
  description.position_config = {std::byte{1}, std::byte{2}};
  auto const scaled = model_spec{description};
  CHECK(plain != scaled);
  CHECK(scaled.description().position_config.size() == 2);
  description.name = "renamed"; // S35: a name is no identity
  CHECK(model_spec{description} == scaled);
}

TEST_CASE("case 99: key and value widths are explicit and may differ", "[model]") {
  // hidden 2560, 32 heads, head size 128: not 2560/32 = 80
  layer_spec const layer{.query_heads = 32, .kv_heads = 32, .key_width = 128, .value_width = 96};
  auto const planes = layer.planes();
  REQUIRE(planes.size() == 2);
  CHECK(planes[0].bytes_per_token() == byte_count{32 * 128 * 2});
  CHECK(planes[1].bytes_per_token() == byte_count{32 * 96 * 2});
}
