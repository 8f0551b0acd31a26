// SPDX-License-Identifier: Apache-2.0

/// \file
/// Capacity figures: worked ones of the specification, and peaks against simulated sequences.

#include "support/catch_compat.hpp"

#include <quire/core/config_error.hpp>
#include <quire/model/capacity.hpp>
#include <quire/model/model_spec.hpp>
#include <quire/model/parallel_split.hpp>
#include <quire/model/resident_range.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace {

using namespace quire;

constexpr std::uint64_t kib = 1024;
constexpr std::uint64_t mib = 1024 * kib;
constexpr std::uint64_t gib = 1024 * mib;

auto heads(std::uint32_t kv, attention_rule rule = attention_rule::causal()) -> layer_spec {
  return {.query_heads = 32, .kv_heads = kv, .key_width = 128, .value_width = 128, .rule = rule};
}
auto stack(std::vector<layer_spec> layers, std::uint32_t max_positions = 1U << 20) -> model_spec {
  return model_spec{{.layers = std::move(layers), .max_positions = token_count{max_positions}}};
}
auto uniform(layer_spec const& layer, std::uint32_t layers) -> model_spec {
  return stack(std::vector<layer_spec>(layers, layer));
}
auto mla() -> layer_spec {
  return {.kind = layer_kind::latent,
          .query_heads = 32,
          .key_width = 128 + 64,
          .value_width = 128,
          .latent_rank = 512,
          .rotary_width = 64};
}

} // namespace

TEST_CASE("S10: 32 layers of 32 heads of 128 at 8192 tokens", "[model]") {
  struct row {
    std::uint32_t kv;
    std::uint64_t token, sequence;
  };
  for (auto const& [kv, token, sequence] :
       {row{32, 524288, 4 * gib}, row{8, 128 * kib, 1 * gib}, row{1, 16 * kib, 128 * mib}}) {
    auto const model = uniform(heads(kv), 32);
    CHECK(bytes_per_token(model).value() == token);
    CHECK(sequence_bytes(model, token_count{8192}).value() == sequence);
    CHECK(sequence_bytes(model, token_count{4 * 8192}).value() == 4 * sequence);   // four requests
    CHECK(paged_sequence_bytes(model, token_count{8192}, {}).value() == sequence); // 16 divides 8192
  }
}

TEST_CASE("S10: bytes follow the KV heads, not the query heads", "[model]") {
  auto const mha = uniform(heads(32), 4);
  auto const gqa = uniform(heads(8), 4);
  CHECK(bytes_per_token(mha).value() == 4 * bytes_per_token(gqa).value());
  CHECK(step_read_bytes(mha, token_pos{99}).value() == 4 * step_read_bytes(gqa, token_pos{99}).value());
}

TEST_CASE("S10: shapes, windows and formats may differ per layer", "[model]") {
  layer_spec odd{.query_heads = 6, .kv_heads = 3, .key_width = 10, .value_width = 4};
  odd.value_format = {.type = dtype::int4, .scales = scale_spec::per_token_head(dtype::f16)};
  // 3 · (10 · 2 + 2 + 2) = 72
  auto const model = stack({odd, heads(8), heads(8, attention_rule::sliding_window(token_count{100}))});
  CHECK(bytes_per_token(model).value() == 72 + 4096 + 4096);
  CHECK(growth_per_token(model).value() == 72 + 4096);
  CHECK(fixed_sequence_bytes(model).value() == 100 * 4096);
  CHECK(sequence_bytes(model, token_count{50}).value() == 50 * (72 + 4096 + 4096));
  CHECK(sequence_bytes(model, token_count{1000}).value() == 1000 * (72 + 4096) + 100 * 4096);
  CHECK(naive_sequence_bytes(model, token_count{1000}).value() == 1000 * (72 + 4096 + 4096));
}

TEST_CASE("S13: 32 latent layers at 8192 tokens are 288 MiB", "[model]") {
  auto const model = uniform(mla(), 32);
  CHECK(sequence_bytes(model, token_count{8192}).value() == 288 * mib);
  CHECK(sequence_bytes(parallel_split{.tensor = 8}.per_rank(model, 0), token_count{8192}).value() == 288 * mib);
}

TEST_CASE("case 100: 61 latent layers are 70,272 bytes per token in one plane", "[model]") {
  auto const model = uniform(mla(), 61);
  CHECK(bytes_per_token(model).value() == 70272);
  CHECK(bytes_per_token(model).value() != 124928); // forgets the rotary key and counts two planes
  CHECK(model.groups()[0].planes.size() == 1);
  auto indexed = mla(); // side caches are added explicitly
  indexed.side.push_back({.kind = plane_kind::index_key, .width = 128, .format = {.type = dtype::fp8_e4m3}});
  CHECK(bytes_per_token(uniform(indexed, 61)).value() == 70272 + 61 * 128);
}

TEST_CASE("case 144: borrowers store nothing, but read", "[model]") {
  auto borrower = heads(8);
  borrower.borrows = layer_id{0};
  auto const model = stack({heads(8), borrower, borrower});
  CHECK(bytes_per_token(model).value() == 4096);
  CHECK(block_bytes(model, token_count{16}).value() == 16 * 4096);
  CHECK(sequence_bytes(model, token_count{10}).value() == 40960);
  CHECK(step_read_bytes(model, token_pos{9}).value() == 3 * 40960);
}

TEST_CASE("S5: cross caches count along their source only", "[model]") {
  auto cross = heads(8, attention_rule::cross());
  cross.kind = layer_kind::cross;
  auto const model = stack({heads(8), cross});
  CHECK(bytes_per_token(model).value() == 4096);
  CHECK(sequence_bytes(model, token_count{10}).value() == 40960);
  CHECK(source_bytes(model, token_count{7}).value() == 7 * 4096);
  CHECK(source_bytes(uniform(heads(8), 2), token_count{7}).value() == 0);
}

TEST_CASE("S9: a decode step reads the visible positions of every layer", "[model]") {
  auto const model =
      stack({heads(8), heads(8, attention_rule::sliding_window(token_count{4})),
             heads(8, attention_rule::chunked(token_count{8})),
             heads(8, attention_rule::sink_window({.sinks = token_count{2}, .window = token_count{4}}))});
  // query 18 sees 19, 4 (15..18), 3 (16..18) and 2 + 4 positions
  CHECK(step_read_bytes(model, token_pos{18}).value() == (19 + 4 + 3 + 6) * 4096);
  CHECK(step_read_bytes(model, token_pos{0}).value() == 4 * 4096);
}

TEST_CASE("S16: unshared requests need ⌈L/p_b⌉ blocks and waste fewer than p_b slots", "[model]") {
  for (std::uint32_t block = 1; block <= 17; ++block) {
    for (std::uint32_t length = 0; length <= 70; ++length) {
      auto const blocks =
          peak_blocks(retention::full(), token_count{length}, {.block_tokens = token_count{block}}).value();
      REQUIRE(blocks * block >= length);
      REQUIRE(blocks * block < length + block);
    }
  }
}

TEST_CASE("S27: a paged window holds at most ⌈(w−1)/p_b⌉ + 1 blocks while it decodes", "[model]") {
  for (std::uint32_t window = 1; window <= 40; ++window) {
    for (std::uint32_t block = 1; block <= 17; ++block) {
      auto const most = peak_blocks(retention::sliding_window(token_count{window}), token_count{10000},
                                    {.block_tokens = token_count{block}});
      REQUIRE(most.value() == (window - 1 + block - 1) / block + 1);
    }
  }
}

TEST_CASE("S16: peak blocks are what a simulated sequence reaches, for every retention, block and step", "[model]") {
  std::vector<retention> all{retention::full()};
  for (std::uint32_t extent = 1; extent <= 13; ++extent) {
    for (std::uint32_t sinks = 0; sinks <= 4; ++sinks) {
      all.push_back(retention::sink_window({.sinks = token_count{sinks}, .window = token_count{extent}}));
    }
    all.push_back(retention::chunked(token_count{extent}));
  }
  for (auto const& keeps : all) {
    for (std::uint32_t block = 1; block <= 9; ++block) {
      for (std::uint32_t step = 1; step <= 5; ++step) {
        std::uint32_t peak = 0;
        for (std::uint32_t phase = 0; phase < step; ++phase) { // a first step of another length shifts the others
          std::uint32_t cached = 0;
          while (cached + step <= 240) {
            auto const now = cached == 0 && phase > 0 ? phase : step;
            auto const stays = resident_range(token_pos{cached}, keeps, token_count{block});
            peak = std::max(peak, stays.kept_blocks(token_count{cached + now}).value());
            cached += now;
            auto const bound = peak_blocks(keeps, token_count{cached},
                                           {.block_tokens = token_count{block}, .step = token_count{step}});
            REQUIRE(stays.kept_blocks(token_count{cached}) <= bound);
          }
        }
        if (!keeps.keeps_all()) { // and the bound is reached
          CAPTURE(name_of(keeps.kind), keeps.extent.value(), keeps.sinks.value(), block, step);
          REQUIRE(peak_blocks(keeps, token_count{240}, {.block_tokens = token_count{block}, .step = token_count{step}})
                      .value() == peak);
        }
      }
    }
  }
}

TEST_CASE("S29: peak positions are what a decoding sequence reaches", "[model]") {
  for (std::uint32_t extent = 1; extent <= 13; ++extent) {
    for (std::uint32_t sinks = 0; sinks <= 4; ++sinks) {
      for (auto const& keeps : {retention::sink_window({.sinks = token_count{sinks}, .window = token_count{extent}}),
                                retention::chunked(token_count{extent}), retention::full()}) {
        std::uint32_t peak = 0;
        for (std::uint32_t length = 1; length <= 60; ++length) {
          peak = std::max(
              peak, resident_range(token_pos{length - 1}, keeps, token_count{1}).kept(token_count{length}).value());
          REQUIRE(peak_positions(keeps, token_count{length}).value() == peak);
        }
      }
    }
  }
}

TEST_CASE("S30: a ring holds all its slots, however long the sequence is", "[model]") {
  auto const ring = retention::ring({.capacity = token_count{20}, .window = token_count{16}});
  CHECK(peak_positions(ring, token_count{3}) == token_count{20});
  CHECK(peak_blocks(ring, token_count{1000}, {.block_tokens = token_count{8}}) == block_count{3});
}

TEST_CASE("S10: block sizes add padding, and are refused at 0 tokens", "[model]") {
  auto const model = uniform(heads(8), 2);
  CHECK(paged_sequence_bytes(model, token_count{17}, {}).value() == 2 * 2 * 16 * 4096);
  CHECK_THROWS_AS(paged_sequence_bytes(model, token_count{17}, {.block_tokens = token_count{0}}), config_error);
  CHECK_THROWS_AS(peak_blocks(retention::full(), token_count{1}, {.step = token_count{0}}), config_error);
}

TEST_CASE("case 115: capacities beyond 64 bits are refused, not wrapped", "[model]") {
  layer_spec const huge{.query_heads = 1U << 31, .kv_heads = 1U << 31, .key_width = 1U << 30, .value_width = 1};
  CHECK_THROWS_AS(sequence_bytes(uniform(huge, 2), token_count{1U << 20}), config_error);
  CHECK_THROWS_AS(bytes_per_token(uniform(huge, 8)), config_error);
}
