// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The stored form of a plane's elements: their type and their scales, with the name under which a lossy form is an execution
/// mode of its own (S6). The rule of scales is the usual one: stored = quantise(x / scale), x = stored · scale.

#include <quire/core/config_error.hpp>
#include <quire/model/dtype.hpp>

#include <cstdint>
#include <string>

namespace quire {

/// For which elements one scale stands.
enum class scale_granularity : std::uint8_t {
  none,       ///< No scales.
  tensor,     ///< One per plane of a layer, fixed; it belongs to the model and takes no cache bytes.
  block_head, ///< One per block and head.
  token_head, ///< One per token and head.
  group,      ///< One per `group` consecutive elements of a head's row.
};

/// Where the scales lie.
enum class scale_placement : std::uint8_t {
  own_plane, ///< In a plane of their own, behind the data of the block.
  in_row,    ///< Behind the elements of each row (the FlashMLA entry of 656 bytes).
};

/// The scales of one plane. They travel with the bytes they describe: a block is copied, swapped and
/// scrubbed with its scales (cases 93 to 95).
struct scale_spec {
  scale_granularity granularity = scale_granularity::none; ///< For which elements one scale stands.
  dtype type = dtype::f32;                                 ///< Type of one scale.
  std::uint32_t group = 0;                                 ///< [elements] under one scale; 0 unless `group`.
  scale_placement placement = scale_placement::own_plane;  ///< Where they lie.

  /// No scales.
  [[nodiscard]] static constexpr auto none() noexcept -> scale_spec { return {}; }
  /// One fixed scale per plane of a layer.
  [[nodiscard]] static constexpr auto per_tensor() noexcept -> scale_spec {
    return {.granularity = scale_granularity::tensor};
  }
  /// One scale per block and head.
  [[nodiscard]] static constexpr auto per_block_head(dtype type = dtype::f32) noexcept -> scale_spec {
    return {.granularity = scale_granularity::block_head, .type = type};
  }
  /// One scale per token and head.
  [[nodiscard]] static constexpr auto per_token_head(dtype type = dtype::f32) noexcept -> scale_spec {
    return {.granularity = scale_granularity::token_head, .type = type};
  }
  /// One scale per \p elements consecutive elements of a row. \throws config_error if \p elements is 0.
  [[nodiscard]] static constexpr auto per_group(std::uint32_t elements, dtype type = dtype::f32,
                                                scale_placement placement = scale_placement::own_plane) -> scale_spec {
    if (elements == 0) {
      throw config_error{"scale_spec: a group of 0 elements: use at least 1, commonly 16, 32 or 128"};
    }
    return {.granularity = scale_granularity::group, .type = type, .group = elements, .placement = placement};
  }

  /// Same scales.
  friend constexpr auto operator==(scale_spec const&, scale_spec const&) noexcept -> bool = default;
};

/// Element type and scales of one plane.
struct element_format {
  dtype type = dtype::bf16; ///< Type of one element.
  scale_spec scales{};      ///< Its scales.

  /// True if the stored form loses something against 16-bit activations, so that it is an approximate
  /// mode with a name and never mixes with exact blocks. \source S6
  [[nodiscard]] constexpr auto approximate() const noexcept -> bool { return is_quantised(type); }

  /// The name of the format, e.g. `bf16` or `fp8_e4m3/group128:f32`. Equal formats have equal names and
  /// different ones different names, so it may enter an identity.
  [[nodiscard]] auto name() const -> std::string {
    auto out = std::string{name_of(type)};
    switch (scales.granularity) {
    case scale_granularity::none: return out;
    case scale_granularity::tensor: out += "/tensor"; break;
    case scale_granularity::block_head: out += "/block_head"; break;
    case scale_granularity::token_head: out += "/token_head"; break;
    case scale_granularity::group: out += "/group" + std::to_string(scales.group); break;
    }
    out += ':';
    out += name_of(scales.type);
    if (scales.placement == scale_placement::in_row) { out += "/in_row"; }
    return out;
  }

  /// Same type and scales.
  friend constexpr auto operator==(element_format const&, element_format const&) noexcept -> bool = default;
};

} // namespace quire
