// SPDX-License-Identifier: Apache-2.0

/// \file
/// Presets against the published figures of the models (reference table, bf16).

#include "support/catch_compat.hpp"

#include <quire/model/cache_layout.hpp>
#include <quire/model/capacity.hpp>
#include <quire/model/presets.hpp>

#include <cmath>
#include <cstdint>
#include <set>
#include <string_view>

namespace {

using namespace quire;

constexpr auto k128 = token_count{131072};
constexpr double mib = 1024.0 * 1024.0;
constexpr double gib = mib * 1024.0;

struct figures {
  std::string_view name;
  std::uint32_t full, local, window, kv_heads, width;
  std::uint64_t layer_token, naive_token, growth_token;
  double fixed_mib, hybrid_gib, naive_gib;
  std::uint64_t block_kib;
};

// One row per model of the reference table; models that share a row there appear once each.
constexpr figures table[] = {
    {"llama3-8b", 32, 0, 0, 8, 128, 4096, 131072, 131072, 0.0, 16.00, 16.00, 2048},
    {"llama3.1-8b", 32, 0, 0, 8, 128, 4096, 131072, 131072, 0.0, 16.00, 16.00, 2048},
    {"llama3.1-70b", 80, 0, 0, 8, 128, 4096, 327680, 327680, 0.0, 40.00, 40.00, 5120},
    {"llama3.3-70b", 80, 0, 0, 8, 128, 4096, 327680, 327680, 0.0, 40.00, 40.00, 5120},
    {"llama3-70b", 80, 0, 0, 8, 128, 4096, 327680, 327680, 0.0, 40.00, 40.00, 5120},
    {"llama3.1-405b", 126, 0, 0, 8, 128, 4096, 516096, 516096, 0.0, 63.00, 63.00, 8064},
    {"llama3.2-1b", 16, 0, 0, 8, 64, 2048, 32768, 32768, 0.0, 4.00, 4.00, 512},
    {"llama3.2-3b", 28, 0, 0, 8, 128, 4096, 114688, 114688, 0.0, 14.00, 14.00, 1792},
    {"llama4-scout", 12, 36, 8192, 8, 128, 4096, 196608, 49152, 1152.0, 7.12, 24.00, 3072},
    {"mistral-7b-v0.1", 0, 32, 4096, 8, 128, 4096, 131072, 0, 512.0, 0.50, 16.00, 2048},
    {"mistral-7b-v0.3", 32, 0, 0, 8, 128, 4096, 131072, 131072, 0.0, 16.00, 16.00, 2048},
    {"mixtral-8x7b", 32, 0, 0, 8, 128, 4096, 131072, 131072, 0.0, 16.00, 16.00, 2048},
    {"mixtral-8x22b", 56, 0, 0, 8, 128, 4096, 229376, 229376, 0.0, 28.00, 28.00, 3584},
    {"mistral-large-2407", 88, 0, 0, 8, 128, 4096, 360448, 360448, 0.0, 44.00, 44.00, 5632},
    {"qwen2.5-0.5b", 24, 0, 0, 2, 64, 512, 12288, 12288, 0.0, 1.50, 1.50, 192},
    {"qwen2.5-7b", 28, 0, 0, 4, 128, 2048, 57344, 57344, 0.0, 7.00, 7.00, 896},
    {"qwen2.5-14b", 48, 0, 0, 8, 128, 4096, 196608, 196608, 0.0, 24.00, 24.00, 3072},
    {"qwen2.5-32b", 64, 0, 0, 8, 128, 4096, 262144, 262144, 0.0, 32.00, 32.00, 4096},
    {"qwen2.5-72b", 80, 0, 0, 8, 128, 4096, 327680, 327680, 0.0, 40.00, 40.00, 5120},
    {"qwen3-0.6b", 28, 0, 0, 8, 128, 4096, 114688, 114688, 0.0, 14.00, 14.00, 1792},
    {"qwen3-1.7b", 28, 0, 0, 8, 128, 4096, 114688, 114688, 0.0, 14.00, 14.00, 1792},
    {"qwen3-4b", 36, 0, 0, 8, 128, 4096, 147456, 147456, 0.0, 18.00, 18.00, 2304},
    {"qwen3-8b", 36, 0, 0, 8, 128, 4096, 147456, 147456, 0.0, 18.00, 18.00, 2304},
    {"qwen3-14b", 40, 0, 0, 8, 128, 4096, 163840, 163840, 0.0, 20.00, 20.00, 2560},
    {"qwen3-32b", 64, 0, 0, 8, 128, 4096, 262144, 262144, 0.0, 32.00, 32.00, 4096},
    {"qwen3-30b-a3b", 48, 0, 0, 4, 128, 2048, 98304, 98304, 0.0, 12.00, 12.00, 1536},
    {"qwen3-235b-a22b", 94, 0, 0, 4, 128, 2048, 192512, 192512, 0.0, 23.50, 23.50, 3008},
    {"gemma2-2b", 13, 13, 4096, 4, 256, 4096, 106496, 53248, 208.0, 6.70, 13.00, 1664},
    {"gemma2-9b", 21, 21, 4096, 8, 256, 8192, 344064, 172032, 672.0, 21.66, 42.00, 5376},
    {"gemma2-27b", 23, 23, 4096, 16, 128, 8192, 376832, 188416, 736.0, 23.72, 46.00, 5888},
    {"gemma3-1b", 4, 22, 512, 1, 256, 1024, 26624, 4096, 11.0, 0.51, 3.25, 416},
    {"gemma3-4b", 5, 29, 1024, 4, 256, 4096, 139264, 20480, 116.0, 2.61, 17.00, 2176},
    {"gemma3-12b", 8, 40, 1024, 8, 256, 8192, 393216, 65536, 320.0, 8.31, 48.00, 6144},
    {"gemma3-27b", 10, 52, 1024, 16, 128, 8192, 507904, 81920, 416.0, 10.41, 62.00, 7936},
    {"gpt-oss-20b", 12, 12, 128, 8, 64, 2048, 49152, 24576, 3.0, 3.00, 6.00, 768},
    {"gpt-oss-120b", 18, 18, 128, 8, 64, 2048, 73728, 36864, 4.5, 4.50, 9.00, 1152},
    {"phi-4", 40, 0, 0, 10, 128, 5120, 204800, 204800, 0.0, 25.00, 25.00, 3200},
};

auto in_unit(byte_count bytes, double unit) -> double { return static_cast<double>(bytes.value()) / unit; }

} // namespace

TEST_CASE("B13: at least 36 presets with distinct names", "[model]") {
  auto const names = presets::names();
  CHECK(names.size() >= 36);
  CHECK(std::set<std::string_view>(names.begin(), names.end()).size() == names.size());
  for (auto const name : names) {
    auto const model = presets::find(name);
    REQUIRE(model);
    CHECK(model->name() == name);
  }
  CHECK_FALSE(presets::find("llama3-9b"));
  CHECK_FALSE(presets::find(""));
  CHECK_FALSE(presets::state_of("llama3-9b"));
  CHECK(*presets::find("llama3-8b") == presets::llama3_8b());
  CHECK(*presets::find("deepseek-v3.2-fp8") == presets::deepseek_v3_2_fp8());
}

TEST_CASE("S10: presets have every figure of the reference table", "[model]") {
  for (auto const& row : table) {
    INFO(row.name);
    auto const found = presets::find(row.name);
    REQUIRE(found);
    auto const& model = *found;

    std::uint32_t full = 0;
    std::uint32_t local = 0;
    for (auto const& group : model.groups()) {
      CHECK(layer_bytes_per_token(group).value() == row.layer_token);
      CHECK(group.planes.size() == 2);
      CHECK(group.planes[0].heads == row.kv_heads);
      CHECK(group.planes[0].width == row.width);
      CHECK(group.planes[1].heads == row.kv_heads);
      CHECK(group.planes[1].width == row.width);
      if (group.keeps.keeps_all()) {
        full += group.layers();
      } else {
        local += group.layers();
        CHECK(group.keeps.extent.value() == row.window);
        CHECK((group.keeps.kind == retention_kind::chunked) == (row.name == "llama4-scout"));
      }
    }
    CHECK(full == row.full);
    CHECK(local == row.local);
    CHECK(model.groups().size() == (row.full > 0 ? 1U : 0U) + (row.local > 0 ? 1U : 0U));

    CHECK(bytes_per_token(model).value() == row.naive_token);
    CHECK(growth_per_token(model).value() == row.growth_token);
    CHECK(in_unit(fixed_sequence_bytes(model), mib) == row.fixed_mib);
    CHECK(std::abs(in_unit(sequence_bytes(model, k128), gib) - row.hybrid_gib) <= 0.005); // printed with two digits
    CHECK(in_unit(naive_sequence_bytes(model, k128), gib) == row.naive_gib);
    CHECK(block_bytes(model, token_count{16}).value() == row.block_kib * 1024);
  }
}

TEST_CASE("S13: latent presets have the published bytes per token", "[model]") {
  struct row {
    std::string_view name;
    std::uint32_t layers;
    std::uint64_t token;
  };
  constexpr row rows[] = {
      {"deepseek-v2-lite", 27, 31104},     {"deepseek-v2", 60, 69120},       {"deepseek-v3", 61, 70272},
      {"deepseek-v2-lite-fp8", 27, 17712}, {"deepseek-v2-fp8", 60, 39360},   {"deepseek-v3-fp8", 61, 40016},
      {"deepseek-v3.2", 61, 78324},        {"deepseek-v3.2-fp8", 61, 48068}, {"kimi-k2", 61, 70272},
      {"kimi-k2-fp8", 61, 40016},
  };
  for (auto const& one : rows) {
    INFO(one.name);
    auto const model = presets::find(one.name);
    REQUIRE(model);
    CHECK(model->layers() == one.layers);
    REQUIRE(model->groups().size() == 1);
    CHECK(model->groups()[0].planes[0].kind == plane_kind::latent);
    CHECK(bytes_per_token(*model).value() == one.token);
    CHECK(growth_per_token(*model).value() == one.token);
    CHECK(fixed_sequence_bytes(*model) == byte_count{});
  }
}

TEST_CASE("S13: the fp8 latent entry is 512 + 4 scales + 64 bf16 = 656 bytes in one plane", "[model]") {
  auto const model = presets::deepseek_v3_fp8();
  auto const& planes = model.groups()[0].planes;
  REQUIRE(planes.size() == 1);
  CHECK(planes[0].row_bytes() == byte_count{656});
  CHECK(planes[0].scales_per_row() == 4);
  CHECK(planes[0].own_scale_bytes(token_count{64}) == byte_count{});
  CHECK(model.execution_mode() == "latent=fp8_e4m3/group128:f32/in_row");
  CHECK(presets::deepseek_v3().execution_mode() == "exact");
}

TEST_CASE("S13: the indexer of DeepSeek-V3.2 adds 132 bytes per layer", "[model]") {
  auto const model = presets::deepseek_v3_2();
  auto const& planes = model.groups()[0].planes;
  REQUIRE(planes.size() == 2);
  CHECK(planes[1].kind == plane_kind::index_key);
  CHECK(planes[1].bytes_per_token() == byte_count{132});
}

TEST_CASE("S10: hybrids count their attention layers and report their state", "[model]") {
  CHECK(bytes_per_token(presets::qwen3_next_80b()) == byte_count{24576});
  CHECK(bytes_per_token(presets::jamba_v0_1()) == byte_count{16384});
  CHECK(bytes_per_token(presets::minimax_text_01()) == byte_count{40960});

  auto const close = [](byte_count bytes, double megabytes) {
    return std::abs(static_cast<double>(bytes.value()) / 1e6 - megabytes);
  };
  auto const qwen = presets::state_of("qwen3-next-80b").value();
  CHECK(close(qwen.recurrent_f32, 75.5) < 0.05);
  CHECK(close(qwen.recurrent_bf16, 37.7) < 0.05);
  CHECK(close(qwen.convolution, 1.77) < 0.005);
  auto const jamba = presets::state_of("jamba-v0.1").value();
  CHECK(close(jamba.recurrent_f32, 14.7) < 0.05);
  CHECK(close(jamba.recurrent_bf16, 7.3) < 0.05);
  CHECK(close(jamba.convolution, 1.8) < 0.05);
  auto const minimax = presets::state_of("minimax-text-01").value();
  CHECK(close(minimax.recurrent_f32, 293.6) < 0.05);
  CHECK(close(minimax.recurrent_bf16, 146.8) < 0.05);
  CHECK(minimax.convolution == byte_count{});
  CHECK(presets::qwen3_next_80b().unmanaged_state() == qwen.recurrent_f32 + qwen.convolution);
  CHECK(presets::state_of("llama3-8b").value() == presets::state_figures{});
}

TEST_CASE("B8: presets tell chunks, learned sinks and soft-caps apart", "[model]") {
  auto const oss = presets::gpt_oss_20b();
  CHECK(oss.layer(layer_id{0}).rule.learned_sink);
  CHECK(oss.layer(layer_id{0}).rule.sinks == token_count{}); // a logit retains nothing
  CHECK(oss.group(oss.group_of(layer_id{0})).keeps == retention::sliding_window(token_count{128}));
  CHECK(oss.layer(layer_id{1}).rule.pattern == attention_pattern::causal);

  auto const gemma2 = presets::gemma2_9b();
  CHECK(gemma2.layer(layer_id{0}).rule.soft_cap == 50.0F);
  CHECK(gemma2.layer(layer_id{0}).rule.pattern == attention_pattern::sliding_window);
  CHECK(gemma2.layer(layer_id{1}).rule.pattern == attention_pattern::causal);
  auto const gemma3 = presets::gemma3_27b();
  CHECK(gemma3.layer(layer_id{4}).rule.pattern == attention_pattern::sliding_window);
  CHECK(gemma3.layer(layer_id{5}).rule.pattern == attention_pattern::causal);
  CHECK(gemma3.layer(layer_id{5}).rule.soft_cap == 0.0F);
  auto const scout = presets::llama4_scout();
  CHECK(scout.layer(layer_id{3}).rule.pattern == attention_pattern::causal);
  CHECK(scout.layer(layer_id{2}).rule.pattern == attention_pattern::chunked);
}

TEST_CASE("S29: one flat pool wastes what the reference says", "[model]") {
  auto const ratio = [](model_spec const& model) {
    return static_cast<double>(naive_sequence_bytes(model, k128).value()) /
           static_cast<double>(sequence_bytes(model, k128).value());
  };
  CHECK(ratio(presets::gemma3_27b()) == quire_test::approx(6.0).margin(0.05));
  CHECK(ratio(presets::llama4_scout()) == quire_test::approx(3.4).margin(0.05));
  CHECK(ratio(presets::gpt_oss_120b()) == quire_test::approx(2.0).margin(0.05));
  CHECK(ratio(presets::gemma3_1b()) == quire_test::approx(6.4).margin(0.05));
}
