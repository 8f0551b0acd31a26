// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The one descriptor from which all cache sizes come.
///
/// ```
///   one block of a group   = layers() × one block of a layer
///   one block of a layer   = [ plane 0 data | pad | plane 0 scales | pad | plane 1 data | pad | … ]
///   one plane's data       = [tokens, heads, row]  in the axis order that the backend wants
/// ```
/// Planes start at multiples of the alignment, and so does the next block. Whether the planes of many blocks
/// lie together (a tensor per plane and layer) or block by block is the view's choice; sizes are the same.

#include <quire/core/checked.hpp>
#include <quire/core/config_error.hpp>
#include <quire/core/types.hpp>
#include <quire/model/element_format.hpp>
#include <quire/model/index_width.hpp>
#include <quire/model/layer_group.hpp>
#include <quire/model/plane_spec.hpp>

#include <algorithm> // std::max
#include <cstdint>
#include <string>
#include <vector>

namespace quire {

/// What a stored plane contains.
enum class plane_part : std::uint8_t {
  data,   ///< The elements, with tails and in-row scales.
  scales, ///< The scales of the data plane before it.
};

/// One stored plane of one layer's block.
/// \shape data [tokens, heads, row_bytes]; scales [tokens, heads, scales per row], or [heads] per block
struct stored_plane {
  plane_spec spec{};                  ///< The plane it stores, or whose scales it stores.
  plane_part part = plane_part::data; ///< Elements or scales.
  std::uint64_t elements = 0;         ///< [elements] per block: the stride that device code multiplies block ids with.
  byte_count bytes{};                 ///< [bytes] per block, without padding.
  byte_count offset{};                ///< [bytes] from the start of the layer's block; a multiple of the alignment.

  /// Same plane at the same place.
  friend constexpr auto operator==(stored_plane const&, stored_plane const&) noexcept -> bool = default;
};

/// Sizes and places inside one block of a layer group.
class cache_layout {
public:
  /// Lays the group's planes out. \param block_tokens [tokens] per block \param alignment [bytes] of each plane
  /// \throws config_error for a block of 0 tokens, an alignment that is no power of two, a group without
  /// planes, or a size beyond 64 bits. \complexity O(planes) \source S10, S13; invariant CAP
  explicit cache_layout(layer_group const& group, token_count block_tokens, byte_count alignment = default_alignment)
      : block_tokens_{block_tokens}, alignment_{alignment}, layers_{group.layers()} {
    auto const align = alignment.value();
    if (block_tokens == token_count{}) {
      throw config_error{"cache_layout: a block of 0 tokens: use at least 1, commonly 16"};
    }
    if (align == 0 || (align & (align - 1)) != 0) {
      throw config_error{"cache_layout: an alignment of " + std::to_string(align) +
                         " bytes: use a power of two, at least 1"};
    }
    if (group.planes.empty() || layers_ == 0) {
      throw config_error{"cache_layout: a group without planes or layers stores nothing: leave it out"};
    }
    for (auto const& spec : group.planes) {
      append(spec, plane_part::data, element_count(spec), spec.data_bytes(block_tokens));
      if (auto const scales = spec.own_scales(block_tokens); scales > 0) {
        append(spec, plane_part::scales, scales, spec.own_scale_bytes(block_tokens));
      }
    }
    block_bytes_ = byte_count{checked_mul(layer_block_bytes_.value(), layers_, "bytes per block")};
  }

  /// [bytes] default alignment of a plane: what 128-bit loads need.
  static constexpr byte_count default_alignment{16};

  /// [tokens] per block.
  [[nodiscard]] auto block_tokens() const noexcept -> token_count { return block_tokens_; }
  /// [bytes] alignment of each plane.
  [[nodiscard]] auto alignment() const noexcept -> byte_count { return alignment_; }
  /// Owner layers in the group. \returns [layers]
  [[nodiscard]] auto layers() const noexcept -> std::uint32_t { return layers_; }
  /// The stored planes of one layer, by offset.
  [[nodiscard]] auto planes() const noexcept -> std::vector<stored_plane> const& { return planes_; }
  /// [bytes] from one layer's block to the next, padding included.
  [[nodiscard]] auto layer_block_bytes() const noexcept -> byte_count { return layer_block_bytes_; }
  /// [bytes] of one block of the whole group, padding included: what a pool hands out.
  [[nodiscard]] auto block_bytes() const noexcept -> byte_count { return block_bytes_; }
  /// [bytes] of elements in `block_bytes()`.
  [[nodiscard]] auto data_bytes() const noexcept -> byte_count { return sum(plane_part::data); }
  /// [bytes] of separate scale planes in `block_bytes()`; in-row scales count as data.
  [[nodiscard]] auto scale_bytes() const noexcept -> byte_count { return sum(plane_part::scales); }
  /// [bytes] of padding in `block_bytes()`.
  [[nodiscard]] auto padding_bytes() const noexcept -> byte_count {
    return block_bytes_ - data_bytes() - scale_bytes();
  }
  /// [bytes] of \p blocks blocks. \throws config_error on overflow.
  [[nodiscard]] auto total_bytes(block_count blocks) const -> byte_count {
    return byte_count{checked_mul(block_bytes_.value(), blocks.value(), "bytes of the pool")};
  }
  /// The most blocks that an index type addresses in every plane, if each plane of each layer is a tensor of
  /// its own that is indexed in elements; other arrangements ask `addressable_blocks` with their own stride.
  /// \returns [blocks] \source cases 115, 116
  [[nodiscard]] auto addressable(index_width width) const -> block_count { return addressable_blocks(widest(), width); }
  /// Refuses \p blocks blocks that an index type cannot address. \throws config_error \source cases 115, 116
  void require_addressable(block_count blocks, index_width width) const {
    quire::require_addressable(blocks, widest(), width, "cache_layout");
  }

  /// Same sizes and places: only such groups may share one pool of raw blocks.
  friend auto operator==(cache_layout const&, cache_layout const&) -> bool = default;

private:
  [[nodiscard]] auto element_count(plane_spec const& spec) const -> std::uint64_t {
    // A row with tails or in-row scales has no single element type: such planes are indexed in bytes.
    auto const uniform = spec.format.scales.placement == scale_placement::own_plane &&
                         (spec.tail_width == 0 || spec.tail_type == spec.format.type);
    if (!uniform) { return spec.data_bytes(block_tokens_).value(); }
    auto const row = static_cast<std::uint64_t>(spec.width) + spec.tail_width;
    auto const per_token = checked_mul(row, spec.heads, "elements per token");
    return checked_mul(per_token, block_tokens_.value(), "elements per block");
  }
  void append(plane_spec const& spec, plane_part part, std::uint64_t elements, byte_count bytes) {
    planes_.push_back({.spec = spec, .part = part, .elements = elements, .bytes = bytes, .offset = layer_block_bytes_});
    auto const end = checked_add(layer_block_bytes_.value(), bytes.value(), "bytes per layer block");
    auto const padded = checked_add(end, alignment_.value() - 1, "bytes per layer block");
    layer_block_bytes_ = byte_count{padded & ~(alignment_.value() - 1)};
  }
  [[nodiscard]] auto sum(plane_part part) const noexcept -> byte_count {
    byte_count out{};
    for (auto const& plane : planes_) { out += plane.part == part ? plane.bytes : byte_count{}; }
    return byte_count{out.value() * layers_}; // ≤ block_bytes_, which was checked
  }
  [[nodiscard]] auto widest() const noexcept -> block_stride {
    block_stride out{};
    for (auto const& plane : planes_) { out.units = std::max(out.units, plane.elements); }
    return out;
  }

  token_count block_tokens_;
  byte_count alignment_;
  std::uint32_t layers_ = 0;
  std::vector<stored_plane> planes_;
  byte_count layer_block_bytes_{};
  byte_count block_bytes_{};
};

/// [bytes] of one block of a group, all its owner layers and padding included. \throws config_error as
/// `cache_layout` does. \source S10, S13
[[nodiscard]] inline auto block_bytes(layer_group const& group, token_count block_tokens,
                                      byte_count alignment = cache_layout::default_alignment) -> byte_count {
  return cache_layout{group, block_tokens, alignment}.block_bytes();
}

} // namespace quire
