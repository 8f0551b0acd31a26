// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Real models, described as far as their caches go.
///
/// `presets::find("llama3-8b")` serves command lines, `presets::llama3_8b()` serves code. Keys and values are
/// bf16; names ending in `-fp8` use the FlashMLA latent entry of 656 bytes. Models with recurrent layers are
/// described by their attention layers, with the state that the engine keeps besides as a figure.

#include <quire/core/types.hpp>
#include <quire/model/attention_rule.hpp>
#include <quire/model/detail/preset_table.hpp>
#include <quire/model/dtype.hpp>
#include <quire/model/element_format.hpp>
#include <quire/model/layer_spec.hpp>
#include <quire/model/model_spec.hpp>
#include <quire/model/plane_spec.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility> // std::move

namespace quire::presets {

/// What the recurrent layers of a hybrid keep per sequence, outside quire.
struct state_figures {
  byte_count recurrent_f32{};  ///< [bytes] recurrent state in f32.
  byte_count recurrent_bf16{}; ///< [bytes] the same in bf16.
  byte_count convolution{};    ///< [bytes] convolution state in bf16.

  /// Same figures.
  friend constexpr auto operator==(state_figures const&, state_figures const&) noexcept -> bool = default;
};

/// \cond INTERNAL
namespace detail {

[[nodiscard]] inline auto layer_of(preset_row const& row, std::uint32_t index) -> layer_spec {
  layer_spec out{.query_heads = row.query_heads, .kv_heads = row.kv_heads};
  out.key_width = row.width;
  out.value_width = row.width;
  if (row.kv_heads == 0) {
    out.kind = layer_kind::latent;
    out.key_width = row.width + rotary_width;
    out.latent_rank = latent_rank;
    out.rotary_width = rotary_width;
  }
  if (row.fp8_latent) {
    out.key_format = {.type = dtype::fp8_e4m3,
                      .scales = scale_spec::per_group(128, dtype::f32, scale_placement::in_row)};
  }
  if (row.index_key) {
    auto const scales = scale_spec::per_group(index_key_width, dtype::f32, scale_placement::in_row);
    out.side.push_back({.kind = plane_kind::index_key,
                        .heads = 1,
                        .width = index_key_width,
                        .format = {.type = dtype::fp8_e4m3, .scales = scales}});
  }
  auto const& pattern = row.pattern;
  if (pattern.period == 0 || index % pattern.period != pattern.full_at) {
    auto const extent = token_count{pattern.extent};
    out.rule = pattern.chunked ? attention_rule::chunked(extent) : attention_rule::sliding_window(extent);
  }
  out.rule.soft_cap = row.soft_cap;
  out.rule.learned_sink = row.learned_sink;
  return out;
}

[[nodiscard]] inline auto build(preset_row const& row) -> model_spec {
  model_description out{.name = std::string{row.name}, .max_positions = token_count{row.max_positions}};
  for (std::uint32_t i = 0; i < row.layers; ++i) { out.layers.push_back(layer_of(row, i)); }
  out.unmanaged_state = byte_count{row.state_f32 + row.convolution};
  return model_spec{std::move(out)};
}

[[nodiscard]] constexpr auto row_of(std::string_view name) noexcept -> preset_row const* {
  for (auto const& row : preset_rows) {
    if (row.name == name) { return &row; }
  }
  return nullptr;
}

} // namespace detail
/// \endcond

/// The names of all presets, in families. \complexity O(1) \source B13
[[nodiscard]] constexpr auto names() noexcept -> std::span<std::string_view const> { return detail::preset_names; }

/// The preset with the name \p name. \returns nothing if no preset has it; `names()` lists them.
/// \complexity O(presets + layers) \source B13
[[nodiscard]] inline auto find(std::string_view name) -> std::optional<model_spec> {
  auto const* const row = detail::row_of(name);
  return row == nullptr ? std::nullopt : std::optional{detail::build(*row)};
}

/// What the recurrent layers of the preset \p name keep per sequence; zeros for models without any.
/// `model_spec::unmanaged_state` is the f32 figure plus the convolution state. \returns nothing if no preset has
/// the name. \complexity O(presets)
[[nodiscard]] constexpr auto state_of(std::string_view name) noexcept -> std::optional<state_figures> {
  auto const* const row = detail::row_of(name);
  if (row == nullptr) { return std::nullopt; }
  return state_figures{.recurrent_f32 = byte_count{row->state_f32},
                       .recurrent_bf16 = byte_count{row->state_f32 / 2},
                       .convolution = byte_count{row->convolution}};
}

/// Llama-3-8B.
[[nodiscard]] inline auto llama3_8b() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("llama3-8b")]);
}
/// Llama-3.1-8B.
[[nodiscard]] inline auto llama3_1_8b() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("llama3.1-8b")]);
}
/// Llama-3-70B.
[[nodiscard]] inline auto llama3_70b() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("llama3-70b")]);
}
/// Llama-3.1-70B.
[[nodiscard]] inline auto llama3_1_70b() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("llama3.1-70b")]);
}
/// Llama-3.3-70B.
[[nodiscard]] inline auto llama3_3_70b() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("llama3.3-70b")]);
}
/// Llama-3.1-405B.
[[nodiscard]] inline auto llama3_1_405b() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("llama3.1-405b")]);
}
/// Llama-3.2-1B.
[[nodiscard]] inline auto llama3_2_1b() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("llama3.2-1b")]);
}
/// Llama-3.2-3B.
[[nodiscard]] inline auto llama3_2_3b() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("llama3.2-3b")]);
}
/// Llama-4-Scout: chunks of 8192, every fourth layer full.
[[nodiscard]] inline auto llama4_scout() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("llama4-scout")]);
}
/// Mistral-7B v0.1: windows of 4096 in all layers.
[[nodiscard]] inline auto mistral_7b_v0_1() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("mistral-7b-v0.1")]);
}
/// Mistral-7B v0.3 (v0.2 too): no windows.
[[nodiscard]] inline auto mistral_7b_v0_3() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("mistral-7b-v0.3")]);
}
/// Mixtral-8x7B.
[[nodiscard]] inline auto mixtral_8x7b() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("mixtral-8x7b")]);
}
/// Mixtral-8x22B.
[[nodiscard]] inline auto mixtral_8x22b() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("mixtral-8x22b")]);
}
/// Mistral-Large-2407.
[[nodiscard]] inline auto mistral_large_2407() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("mistral-large-2407")]);
}
/// Qwen2.5-0.5B.
[[nodiscard]] inline auto qwen2_5_0_5b() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("qwen2.5-0.5b")]);
}
/// Qwen2.5-7B.
[[nodiscard]] inline auto qwen2_5_7b() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("qwen2.5-7b")]);
}
/// Qwen2.5-14B.
[[nodiscard]] inline auto qwen2_5_14b() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("qwen2.5-14b")]);
}
/// Qwen2.5-32B.
[[nodiscard]] inline auto qwen2_5_32b() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("qwen2.5-32b")]);
}
/// Qwen2.5-72B.
[[nodiscard]] inline auto qwen2_5_72b() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("qwen2.5-72b")]);
}
/// Qwen3-0.6B.
[[nodiscard]] inline auto qwen3_0_6b() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("qwen3-0.6b")]);
}
/// Qwen3-1.7B.
[[nodiscard]] inline auto qwen3_1_7b() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("qwen3-1.7b")]);
}
/// Qwen3-4B.
[[nodiscard]] inline auto qwen3_4b() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("qwen3-4b")]);
}
/// Qwen3-8B.
[[nodiscard]] inline auto qwen3_8b() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("qwen3-8b")]);
}
/// Qwen3-14B.
[[nodiscard]] inline auto qwen3_14b() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("qwen3-14b")]);
}
/// Qwen3-32B.
[[nodiscard]] inline auto qwen3_32b() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("qwen3-32b")]);
}
/// Qwen3-30B-A3B.
[[nodiscard]] inline auto qwen3_30b_a3b() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("qwen3-30b-a3b")]);
}
/// Qwen3-235B-A22B.
[[nodiscard]] inline auto qwen3_235b_a22b() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("qwen3-235b-a22b")]);
}
/// Gemma-2-2B: windows in every other layer.
[[nodiscard]] inline auto gemma2_2b() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("gemma2-2b")]);
}
/// Gemma-2-9B: windows in every other layer.
[[nodiscard]] inline auto gemma2_9b() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("gemma2-9b")]);
}
/// Gemma-2-27B: windows in every other layer.
[[nodiscard]] inline auto gemma2_27b() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("gemma2-27b")]);
}
/// Gemma-3-1B: windows in five of six layers.
[[nodiscard]] inline auto gemma3_1b() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("gemma3-1b")]);
}
/// Gemma-3-4B: windows in five of six layers.
[[nodiscard]] inline auto gemma3_4b() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("gemma3-4b")]);
}
/// Gemma-3-12B: windows in five of six layers.
[[nodiscard]] inline auto gemma3_12b() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("gemma3-12b")]);
}
/// Gemma-3-27B: windows in five of six layers.
[[nodiscard]] inline auto gemma3_27b() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("gemma3-27b")]);
}
/// gpt-oss-20b: windows of 128 in every other layer, learned sinks.
[[nodiscard]] inline auto gpt_oss_20b() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("gpt-oss-20b")]);
}
/// gpt-oss-120b: windows of 128 in every other layer, learned sinks.
[[nodiscard]] inline auto gpt_oss_120b() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("gpt-oss-120b")]);
}
/// phi-4 (14B).
[[nodiscard]] inline auto phi_4() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("phi-4")]);
}
/// DeepSeek-V2-Lite.
[[nodiscard]] inline auto deepseek_v2_lite() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("deepseek-v2-lite")]);
}
/// DeepSeek-V2-Lite, fp8 latent.
[[nodiscard]] inline auto deepseek_v2_lite_fp8() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("deepseek-v2-lite-fp8")]);
}
/// DeepSeek-V2.
[[nodiscard]] inline auto deepseek_v2() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("deepseek-v2")]);
}
/// DeepSeek-V2, fp8 latent.
[[nodiscard]] inline auto deepseek_v2_fp8() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("deepseek-v2-fp8")]);
}
/// DeepSeek-V3, R1 and V3.1.
[[nodiscard]] inline auto deepseek_v3() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("deepseek-v3")]);
}
/// DeepSeek-V3, R1 and V3.1, fp8 latent.
[[nodiscard]] inline auto deepseek_v3_fp8() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("deepseek-v3-fp8")]);
}
/// DeepSeek-V3.2: as V3 with indexer keys.
[[nodiscard]] inline auto deepseek_v3_2() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("deepseek-v3.2")]);
}
/// DeepSeek-V3.2: as V3 with indexer keys, fp8 latent.
[[nodiscard]] inline auto deepseek_v3_2_fp8() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("deepseek-v3.2-fp8")]);
}
/// Kimi-K2.
[[nodiscard]] inline auto kimi_k2() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("kimi-k2")]);
}
/// Kimi-K2, fp8 latent.
[[nodiscard]] inline auto kimi_k2_fp8() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("kimi-k2-fp8")]);
}
/// Qwen3-Next-80B: 12 of 48 layers, the others are recurrent.
[[nodiscard]] inline auto qwen3_next_80b() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("qwen3-next-80b")]);
}
/// Jamba-v0.1: 4 of 32 layers, the others are recurrent.
[[nodiscard]] inline auto jamba_v0_1() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("jamba-v0.1")]);
}
/// MiniMax-Text-01: 10 of 80 layers, the others are recurrent.
[[nodiscard]] inline auto minimax_text_01() -> model_spec {
  return detail::build(detail::preset_rows[detail::preset_index("minimax-text-01")]);
}

} // namespace quire::presets
