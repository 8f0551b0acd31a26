// SPDX-License-Identifier: Apache-2.0

/// \file
/// The planner: lines that add up, counts that are maximal, and refusals that say why.

#include "support/catch_compat.hpp"

#include <quire/core/config_error.hpp>
#include <quire/model/capacity.hpp>
#include <quire/model/capacity_report.hpp>
#include <quire/model/presets.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace quire;

constexpr std::uint64_t mib = 1024 * 1024;
constexpr std::uint64_t gib = 1024 * mib;

void check_invariants(capacity_report const& report) {
  std::uint64_t sum = 0;
  for (auto const& line : report.lines()) { sum += line.bytes.value(); }
  REQUIRE(sum == report.memory.value()); // (1)
  REQUIRE(report.sequences >= 1);        // (2)
  std::uint64_t blocks = 0;
  std::uint64_t each = (report.tables + report.state).value() / report.sequences;
  for (auto const& group : report.groups) {
    REQUIRE(std::uint64_t{group.blocks.value()} >= std::uint64_t{report.sequences} * group.per_sequence.value()); // (3)
    blocks += group.blocks.value() * group.block_bytes.value();
    each += group.per_sequence.value() * group.block_bytes.value();
  }
  REQUIRE(blocks == (report.data + report.scales + report.padding).value());
  auto const cache = report.memory - report.weights - report.workspace;
  REQUIRE(report.sequences == cache.value() / each); // one more does not fit
}

auto refusal(model_spec const& model, capacity_request const& request) -> std::string {
  try {
    static_cast<void>(plan_capacity(model, request));
  } catch (config_error const& error) { return error.what(); }
  return {};
}

} // namespace

TEST_CASE("B13: Llama-3-8B in 64 GiB beside 16 GiB of weights", "[model]") {
  auto const report =
      plan_capacity(presets::llama3_8b(),
                    {.memory = byte_count{80 * gib}, .weights = byte_count{16 * gib}, .context = token_count{8192}});
  check_invariants(report);
  // one request: 512 blocks of 2 MiB and 512 table entries of 4 bytes: 1 GiB + 2 KiB; 64 GiB hold 63
  REQUIRE(report.groups.size() == 1);
  CHECK(report.groups[0].block_bytes.value() == 2 * mib);
  CHECK(report.groups[0].per_sequence == block_count{512});
  CHECK(report.sequences == 63);
  CHECK(report.tables.value() == 63 * 2048);
  // what is left is 1 GiB − 126 KiB: 511 more blocks
  CHECK(report.groups[0].blocks == block_count{63 * 512 + 511});
  CHECK(report.tokens == (63ULL * 512 + 511) * 16);
  CHECK(report.unused.value() == 2 * mib - 63 * 2048);
  CHECK(report.scales == byte_count{});
  CHECK(report.padding == byte_count{});
  CHECK(report.fragmentation.value() == 63ULL * 15 * 131072);
}

TEST_CASE("B13: two tensor ranks store half each", "[model]") {
  auto const report = plan_capacity(presets::llama3_8b(), {.memory = byte_count{80 * gib},
                                                           .weights = byte_count{8 * gib},
                                                           .context = token_count{8192},
                                                           .split = {.tensor = 2}});
  check_invariants(report);
  CHECK(report.groups[0].block_bytes.value() == 1 * mib);
  CHECK(report.sequences == 143); // 72 GiB / (512 MiB + 2 KiB)
}

TEST_CASE("B13: context ranks share a request", "[model]") {
  auto const plan = [](std::uint32_t ranks) {
    return plan_capacity(presets::llama3_1_8b(),
                         {.memory = byte_count{40 * gib}, .context = token_count{131072}, .split = {.context = ranks}});
  };
  check_invariants(plan(4));
  CHECK(plan(1).groups[0].per_sequence == block_count{8192});
  CHECK(plan(4).groups[0].per_sequence == block_count{2048});
  CHECK(plan(3).groups[0].per_sequence == block_count{2731}); // the fullest rank
  CHECK(plan(1).sequences == 2);
  CHECK(plan(4).sequences == 9);
  CHECK(plan(4).tokens == 4ULL * plan(4).groups[0].blocks.value() * 16);
}

TEST_CASE("S29: window groups take their peak, the rest goes to full groups", "[model]") {
  auto const report = plan_capacity(presets::gemma3_27b(), {.memory = byte_count{100 * gib},
                                                            .weights = byte_count{54 * gib},
                                                            .workspace = byte_count{2 * gib},
                                                            .context = token_count{131072}});
  check_invariants(report);
  REQUIRE(report.groups.size() == 2);
  auto const& local = report.groups[0]; // layer 0 slides
  auto const& full = report.groups[1];
  CHECK(local.per_sequence == block_count{65}); // ⌈1023/16⌉ + 1
  CHECK(full.per_sequence == block_count{8192});
  CHECK(report.sequences == 4); // 44 GiB / 10.4 GiB
  CHECK(local.blocks == block_count{4 * 65});
  CHECK(full.blocks.value() > 4 * 8192);
  CHECK(report.tokens == std::uint64_t{full.blocks.value()} * 16);
  CHECK(report.workspace.value() == 2 * gib);
}

TEST_CASE("B13: scales, padding and unmanaged state have their own lines", "[model]") {
  auto const int8 = presets::llama3_8b().with_format({.type = dtype::int8, .scales = scale_spec::per_token_head()});
  capacity_request const request{.memory = byte_count{8 * gib}, .context = token_count{4096}};
  auto const report = plan_capacity(int8, request);
  check_invariants(report);
  CHECK(report.scales.value() * 32 == report.data.value()); // 4 bytes beside 128
  CHECK(report.padding == byte_count{});
  auto padded = request;
  padded.pages.block_tokens = token_count{1};
  padded.alignment = byte_count{4096};
  auto const wasteful = plan_capacity(int8, padded);
  check_invariants(wasteful);
  CHECK(wasteful.padding > wasteful.data);

  auto const jamba =
      plan_capacity(presets::jamba_v0_1(), {.memory = byte_count{4 * gib}, .context = token_count{4096}});
  check_invariants(jamba);
  CHECK(jamba.state.value() == jamba.sequences * presets::jamba_v0_1().unmanaged_state().value());
}

TEST_CASE("B13: the plan adds up for every preset, block size and split", "[model]") {
  for (auto const name : presets::names()) {
    auto const model = presets::find(name).value();
    for (std::uint32_t block : {1U, 3U, 16U, 64U}) {
      for (std::uint32_t stages : {1U, 2U}) {
        for (std::uint32_t step : {1U, 2048U}) {
          INFO(name);
          auto const report =
              plan_capacity(model, {.memory = byte_count{512 * gib + 12345},
                                    .weights = byte_count{7 * gib},
                                    .workspace = byte_count{777},
                                    .context = token_count{8192},
                                    .pages = {.block_tokens = token_count{block}, .step = token_count{step}},
                                    .split = {.pipeline = stages},
                                    .stage = stages - 1});
          check_invariants(report);
        }
      }
    }
  }
}

TEST_CASE("B13: impossible plans are refused with the reason", "[model]") {
  auto const model = presets::llama3_8b();
  capacity_request const good{
      .memory = byte_count{80 * gib}, .weights = byte_count{16 * gib}, .context = token_count{8192}};
  CHECK(refusal(model, good).empty());

  auto request = good;
  request.context = token_count{8193};
  CHECK_THAT(refusal(model, request), quire_test::ContainsSubstring("exceeds the model's 8192"));
  request.context = token_count{0};
  CHECK_THAT(refusal(model, request), quire_test::ContainsSubstring("context of 0 tokens"));
  request = good;
  request.weights = request.memory;
  CHECK_THAT(refusal(model, request), quire_test::ContainsSubstring("leaves nothing for a cache"));
  request = good;
  request.split.tensor = 3;
  CHECK_THAT(refusal(model, request), quire_test::ContainsSubstring("over 3 tensor ranks"));
  request = good;
  request.split.pipeline = 33;
  CHECK_THAT(refusal(model, request), quire_test::ContainsSubstring("at most 32 stages"));
  request = good;
  request.stage = 1;
  CHECK_THAT(refusal(model, request), quire_test::ContainsSubstring("stages count from 0"));
  request = good;
  request.pages.block_tokens = token_count{0};
  CHECK_THAT(refusal(model, request), quire_test::ContainsSubstring("0 tokens"));
  request = good;
  request.weights = byte_count{80 * gib - 64 * mib};
  // 64 MiB hold 31 blocks of 2 MiB with their table entries
  CHECK_THAT(refusal(model, request), quire_test::ContainsSubstring("use at most 496 tokens"));
  request.weights = byte_count{80 * gib - 1 * mib};
  CHECK_THAT(refusal(model, request), quire_test::ContainsSubstring("use more memory or more ranks"));
  request = good;
  request.weights = byte_count{UINT64_MAX};
  request.workspace = byte_count{1};
  CHECK_FALSE(refusal(model, request).empty());
}

TEST_CASE("case 115: a plan that a 32-bit index cannot address is refused", "[model]") {
  capacity_request request{.memory = byte_count{8192 * gib},
                           .context = token_count{8192},
                           .pages = {.block_tokens = token_count{4096}},
                           .index = index_width::int32};
  auto const model = presets::llama3_8b();
  // 4096 tokens of 8 · 128 elements: 512 blocks per plane, but 16,384 are planned
  CHECK_THAT(refusal(model, request), quire_test::ContainsSubstring("use at most 512 blocks, or a 64-bit index"));
  request.index = index_width::int64;
  CHECK(refusal(model, request).empty());
}

TEST_CASE("S30: rings are planned by their slots and never split over context ranks", "[model]") {
  layer_spec layer{.query_heads = 8,
                   .kv_heads = 8,
                   .key_width = 128,
                   .value_width = 128,
                   .rule = attention_rule::sliding_window(token_count{100})};
  layer.keeps = retention::ring({.capacity = token_count{128}, .window = token_count{100}});
  auto const model = model_spec{{.layers = {layer}, .max_positions = token_count{4096}}};
  auto const report = plan_capacity(model, {.memory = byte_count{64 * mib}, .context = token_count{4096}});
  check_invariants(report);
  CHECK(report.groups[0].per_sequence == block_count{8});
  CHECK(report.tokens == std::uint64_t{report.sequences} * 4096);
  CHECK_THAT(refusal(model, {.memory = byte_count{64 * mib}, .context = token_count{4096}, .split = {.context = 2}}),
             quire_test::ContainsSubstring("rings cannot be split"));
}
