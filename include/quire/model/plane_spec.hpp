// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// One plane of a layer's cache: keys, values, a latent that stands for both, or side state.
///
/// ```
///   one token of a plane        head 0                 head 1            …
///                        [ width elements | tail | scales if in_row ][ … ]
/// ```
/// Each head's row starts at a whole byte, so a row of 4-bit elements with an odd width takes half a byte
/// of padding; that is part of the row and of every size below.

#include <quire/core/checked.hpp>
#include <quire/core/types.hpp>
#include <quire/model/dtype.hpp>
#include <quire/model/element_format.hpp>

#include <cstdint>
#include <string_view>

namespace quire {

/// What a plane holds.
enum class plane_kind : std::uint8_t {
  key,       ///< Keys, one row per KV head.
  value,     ///< Values, one row per KV head; the width may differ from that of the keys.
  latent,    ///< One row per token for keys and values together, without a head axis (S13).
  index_key, ///< Keys of a sparse-attention indexer (DeepSeek-V3.2).
  side,      ///< Any other bytes kept per token.
};

/// The name of the kind.
[[nodiscard]] constexpr auto name_of(plane_kind kind) noexcept -> std::string_view {
  switch (kind) {
  case plane_kind::key: return "key";
  case plane_kind::value: return "value";
  case plane_kind::latent: return "latent";
  case plane_kind::index_key: return "index_key";
  case plane_kind::side: return "side";
  }
  return "unknown";
}

/// Shape and element format of one plane of one layer.
/// \shape per block [block_tokens, heads, width]; the axis order in memory is the layout's choice
struct plane_spec {
  plane_kind kind = plane_kind::key; ///< What it holds.
  std::uint32_t heads = 1;           ///< Rows per token.
  std::uint32_t width = 0;           ///< [elements] per row, without the tail.
  element_format format{};           ///< How the elements are stored.
  std::uint32_t tail_width = 0;      ///< [elements] behind each row in `tail_type`: the decoupled rotary key.
  dtype tail_type = dtype::bf16;     ///< Type of the tail's elements; it has no scales.

  /// Scales per head and token; 0 unless the granularity is per token or finer.
  [[nodiscard]] constexpr auto scales_per_row() const noexcept -> std::uint32_t {
    switch (format.scales.granularity) {
    case scale_granularity::token_head: return 1;
    case scale_granularity::group: return ceil_div(width, format.scales.group);
    default: return 0;
    }
  }
  /// Bytes of one head's row, in-row scales included. \throws config_error on overflow.
  [[nodiscard]] constexpr auto row_bytes() const -> byte_count {
    auto out = packed_bytes(format.type, width) + packed_bytes(tail_type, tail_width);
    if (format.scales.placement == scale_placement::in_row) {
      out += packed_bytes(format.scales.type, scales_per_row());
    }
    return out;
  }
  /// Bytes of the rows of \p tokens tokens. \throws config_error on overflow.
  [[nodiscard]] constexpr auto data_bytes(token_count tokens) const -> byte_count {
    auto const per_token = checked_mul(row_bytes().value(), heads, "plane bytes per token");
    return byte_count{checked_mul(per_token, tokens.value(), "plane bytes per block")};
  }
  /// Scales that \p tokens tokens of one block keep in a plane of their own; 0 if there is no such plane.
  [[nodiscard]] constexpr auto own_scales(token_count tokens) const -> std::uint64_t {
    if (format.scales.placement == scale_placement::in_row) { return 0; }
    if (format.scales.granularity == scale_granularity::block_head) { return heads; }
    auto const per_token = checked_mul(scales_per_row(), heads, "scales per token");
    return checked_mul(per_token, tokens.value(), "scales per block");
  }
  /// Bytes of the scales' own plane in a block of \p tokens tokens.
  [[nodiscard]] constexpr auto own_scale_bytes(token_count tokens) const -> byte_count {
    return packed_bytes(format.scales.type, own_scales(tokens));
  }
  /// Bytes that one token adds: data and all scales that are kept per token. Scales per block are not in
  /// it: they appear in block sizes only. \throws config_error on overflow. \source S10, S13
  [[nodiscard]] constexpr auto bytes_per_token() const -> byte_count {
    auto const scales =
        format.scales.granularity == scale_granularity::block_head ? byte_count{} : own_scale_bytes(token_count{1});
    return data_bytes(token_count{1}) + scales;
  }

  /// Same kind, shape and format.
  friend constexpr auto operator==(plane_spec const&, plane_spec const&) noexcept -> bool = default;
};

} // namespace quire
