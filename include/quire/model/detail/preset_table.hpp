// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The figures of the presets, one row per model. Cache shapes (layers, windows, KV heads, widths) come from the
/// models' published configurations, two independent sources where possible; query heads and longest sequences
/// from the same configurations. State sizes stand for one sequence.

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept> // std::out_of_range
#include <string_view>

/// \cond INTERNAL
namespace quire::presets::detail {

/// Which layers keep everything, and what the others see.
struct layer_pattern {
  std::uint32_t period = 1; // layer i is full iff i % period == full_at; 0: no layer is
  std::uint32_t full_at = 0;
  std::uint32_t extent = 0; // [tokens] window or chunk of the other layers
  bool chunked = false;
};

struct preset_row {
  std::string_view name;
  std::uint32_t layers = 0;
  std::uint32_t query_heads = 0;
  std::uint32_t kv_heads = 0; // 0: latent
  std::uint32_t width = 0;    // of keys and values; of content keys and values for latent layers
  std::uint32_t max_positions = 0;
  layer_pattern pattern{};
  float soft_cap = 0.0F;
  bool learned_sink = false;
  bool fp8_latent = false;       // 512 e4m3 elements with four f32 scales in the row, rotary key in bf16: 656 bytes
  bool index_key = false;        // 128 e4m3 elements with one f32 scale: 132 bytes
  std::uint64_t state_f32 = 0;   // [bytes] recurrent state in f32; half of it in bf16
  std::uint64_t convolution = 0; // [bytes] convolution state in bf16
};

inline constexpr std::uint32_t latent_rank = 512;
inline constexpr std::uint32_t rotary_width = 64;
inline constexpr std::uint32_t index_key_width = 128;

inline constexpr layer_pattern all_full{};
constexpr auto no_full(std::uint32_t window) -> layer_pattern { return {.period = 0, .extent = window}; }
constexpr auto every(std::uint32_t period, std::uint32_t full_at, std::uint32_t window) -> layer_pattern {
  return {.period = period, .full_at = full_at, .extent = window};
}
constexpr auto every_chunked(std::uint32_t period, std::uint32_t full_at, std::uint32_t chunk) -> layer_pattern {
  return {.period = period, .full_at = full_at, .extent = chunk, .chunked = true};
}

inline constexpr std::uint32_t k8 = 8192;
inline constexpr std::uint32_t k32 = 32768;
inline constexpr std::uint32_t k128 = 131072;

// clang-format off
inline constexpr std::array preset_rows{
    //         name                 layers  q  kv width  positions
    preset_row{"llama3-8b",             32, 32,  8, 128, k8},
    preset_row{"llama3.1-8b",           32, 32,  8, 128, k128},
    preset_row{"llama3-70b",            80, 64,  8, 128, k8},
    preset_row{"llama3.1-70b",          80, 64,  8, 128, k128},
    preset_row{"llama3.3-70b",          80, 64,  8, 128, k128},
    preset_row{"llama3.1-405b",        126, 128, 8, 128, k128},
    preset_row{"llama3.2-1b",           16, 32,  8,  64, k128},
    preset_row{"llama3.2-3b",           28, 24,  8, 128, k128},
    preset_row{"llama4-scout",          48, 40,  8, 128, 10485760, every_chunked(4, 3, 8192)},
    preset_row{"mistral-7b-v0.1",       32, 32,  8, 128, k32, no_full(4096)},
    preset_row{"mistral-7b-v0.3",       32, 32,  8, 128, k32},
    preset_row{"mixtral-8x7b",          32, 32,  8, 128, k32},
    preset_row{"mixtral-8x22b",         56, 48,  8, 128, 65536},
    preset_row{"mistral-large-2407",    88, 96,  8, 128, k128},
    preset_row{"qwen2.5-0.5b",          24, 14,  2,  64, k32},
    preset_row{"qwen2.5-7b",            28, 28,  4, 128, k128},
    preset_row{"qwen2.5-14b",           48, 40,  8, 128, k128},
    preset_row{"qwen2.5-32b",           64, 40,  8, 128, k128},
    preset_row{"qwen2.5-72b",           80, 64,  8, 128, k128},
    preset_row{"qwen3-0.6b",            28, 16,  8, 128, 40960},
    preset_row{"qwen3-1.7b",            28, 16,  8, 128, 40960},
    preset_row{"qwen3-4b",              36, 32,  8, 128, 40960},
    preset_row{"qwen3-8b",              36, 32,  8, 128, 40960},
    preset_row{"qwen3-14b",             40, 40,  8, 128, 40960},
    preset_row{"qwen3-32b",             64, 64,  8, 128, 40960},
    preset_row{"qwen3-30b-a3b",         48, 32,  4, 128, 40960},
    preset_row{"qwen3-235b-a22b",       94, 64,  4, 128, 40960},
    preset_row{"gemma2-2b",             26,  8,  4, 256, k8, every(2, 1, 4096), 50.0F},
    preset_row{"gemma2-9b",             42, 16,  8, 256, k8, every(2, 1, 4096), 50.0F},
    preset_row{"gemma2-27b",            46, 32, 16, 128, k8, every(2, 1, 4096), 50.0F},
    preset_row{"gemma3-1b",             26,  4,  1, 256, k32, every(6, 5, 512)},
    preset_row{"gemma3-4b",             34,  8,  4, 256, k128, every(6, 5, 1024)},
    preset_row{"gemma3-12b",            48, 16,  8, 256, k128, every(6, 5, 1024)},
    preset_row{"gemma3-27b",            62, 32, 16, 128, k128, every(6, 5, 1024)},
    preset_row{"gpt-oss-20b",           24, 64,  8,  64, k128, every(2, 1, 128), 0.0F, true},
    preset_row{"gpt-oss-120b",          36, 64,  8,  64, k128, every(2, 1, 128), 0.0F, true},
    preset_row{"phi-4",                 40, 40, 10, 128, 16384},
    preset_row{"deepseek-v2-lite",      27, 16,  0, 128, 163840},
    preset_row{"deepseek-v2-lite-fp8",  27, 16,  0, 128, 163840, all_full, 0.0F, false, true},
    preset_row{"deepseek-v2",           60, 128, 0, 128, 163840},
    preset_row{"deepseek-v2-fp8",       60, 128, 0, 128, 163840, all_full, 0.0F, false, true},
    preset_row{"deepseek-v3",           61, 128, 0, 128, 163840},
    preset_row{"deepseek-v3-fp8",       61, 128, 0, 128, 163840, all_full, 0.0F, false, true},
    preset_row{"deepseek-v3.2",         61, 128, 0, 128, 163840, all_full, 0.0F, false, false, true},
    preset_row{"deepseek-v3.2-fp8",     61, 128, 0, 128, 163840, all_full, 0.0F, false, true, true},
    preset_row{"kimi-k2",               61, 64,  0, 128, k128},
    preset_row{"kimi-k2-fp8",           61, 64,  0, 128, k128, all_full, 0.0F, false, true},
    // attention layers only; the recurrent ones are given as state
    preset_row{"qwen3-next-80b",        12, 16,  2, 256, 262144, all_full, 0.0F, false, false, false,
               36ULL * 32 * 128 * 128 * 4, 36ULL * (2 * 16 * 128 + 32 * 128) * 3 * 2},
    preset_row{"jamba-v0.1",             4, 32,  8, 128, 262144, all_full, 0.0F, false, false, false,
               28ULL * 8192 * 16 * 4, 28ULL * 8192 * 4 * 2},
    preset_row{"minimax-text-01",       10, 64,  8, 128, 10240000, all_full, 0.0F, false, false, false,
               70ULL * 64 * 128 * 128 * 4, 0},
};
// clang-format on

/// The row of a name; a name that no preset has does not compile.
[[nodiscard]] consteval auto preset_index(std::string_view name) -> std::size_t {
  for (std::size_t i = 0; i < preset_rows.size(); ++i) {
    if (preset_rows[i].name == name) { return i; }
  }
  throw std::out_of_range{"no preset has this name"};
}

inline constexpr auto preset_names = [] {
  std::array<std::string_view, preset_rows.size()> out{};
  for (std::size_t i = 0; i < out.size(); ++i) { out[i] = preset_rows[i].name; }
  return out;
}();

} // namespace quire::presets::detail
/// \endcond
