// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Where each element of one plane lies in its tensor: extents and 64-bit strides.
///
///     name        axes (outermost first)              used by
///     nhd         [blocks, p_b, heads, dim]           FlashAttention, FlashInfer "NHD", latent planes
///     hnd         [blocks, heads, p_b, dim]           FlashInfer "HND", TensorRT-LLM
///     split       [blocks, heads, dim / x, p_b, x]    vLLM's first key cache, x = 16 bytes of elements
///     transposed  [blocks, heads, dim, p_b]           vLLM's first value cache
///
/// All four, and the ways to put K and V into one tensor (`view_layout`), are one formula:
///     offset = base + block·block_stride + head·head_stride + token·token_stride
///            + ⌊dim / vector⌋·vector_stride + dim mod vector
/// in elements, in 64 bits, multiplied before nothing is narrowed (cases 115 and 116).

#include <quire/core/checked.hpp>
#include <quire/core/config_error.hpp>
#include <quire/core/contract.hpp>
#include <quire/core/types.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace quire {

/// Meaning of a plane. Two planes of one size and different roles are different layouts.
enum class layout_role : std::uint8_t {
  key,         ///< K.
  value,       ///< V.
  latent,      ///< Compressed KV, one entry per token.
  rope_key,    ///< Decoupled rotary key, shared by all heads.
  key_scale,   ///< Scales of quantised K or of a quantised latent.
  value_scale, ///< Scales of quantised V.
  state,       ///< Anything else that belongs to a block.
};

/// Name of \p role, for messages.
[[nodiscard]] constexpr auto to_string(layout_role role) noexcept -> std::string_view {
  switch (role) {
  case layout_role::key: return "key";
  case layout_role::value: return "value";
  case layout_role::latent: return "latent";
  case layout_role::rope_key: return "rope_key";
  case layout_role::key_scale: return "key_scale";
  case layout_role::value_scale: return "value_scale";
  case layout_role::state: break;
  }
  return "state";
}

/// Extents of one plane of one layer. Use designated initialisers: nothing here may be confused with its neighbour.
struct layout_shape {
  /// Meaning of the plane.
  layout_role role = layout_role::key;
  /// Blocks of the pool.
  block_count blocks = {};
  /// [tokens] per block, p_b; 1 for what exists once per block (per-block scales).
  token_count block_tokens = {};
  /// Heads stored on this device; 1 for latent planes.
  std::uint32_t heads = 1;
  /// [elements] per token and head.
  std::uint32_t dim = 0;
  /// [bits] per element, 4 for packed 4-bit formats.
  std::uint32_t element_bits = 16;
};

/// Names one element of a plane. Use designated initialisers.
struct layout_place {
  /// Physical block.
  block_id block = {};
  /// [tokens] offset in the block.
  token_count token = {};
  /// Stored head.
  std::uint32_t head = 0;
  /// [elements] in the head.
  std::uint32_t dim = 0;
};

/// Type of the element index inside a kernel. Many kernels still compute it in 32 bits and then read the wrong place
/// without a word (cases 115 and 116).
enum class element_index : std::uint8_t {
  signed_32,   ///< `int`.
  unsigned_32, ///< `unsigned`.
  signed_64,   ///< `std::int64_t`.
};

/// Largest element index that \p width can hold.
[[nodiscard]] constexpr auto max_index(element_index width) noexcept -> std::uint64_t {
  switch (width) {
  case element_index::signed_32: return std::uint64_t{std::numeric_limits<std::int32_t>::max()};
  case element_index::unsigned_32: return std::uint64_t{std::numeric_limits<std::uint32_t>::max()};
  case element_index::signed_64: break;
  }
  return std::uint64_t{std::numeric_limits<std::int64_t>::max()};
}

/// Name of \p width, for messages.
[[nodiscard]] constexpr auto to_string(element_index width) noexcept -> std::string_view {
  switch (width) {
  case element_index::signed_32: return "signed 32-bit";
  case element_index::unsigned_32: return "unsigned 32-bit";
  case element_index::signed_64: break;
  }
  return "signed 64-bit";
}

/// Extents and strides of one plane of one layer. Plain data that a device may read; two layouts are the same if and
/// only if all fields agree. Strides count elements.
struct plane_layout {
  /// Meaning of the plane.
  layout_role role = layout_role::key;
  /// Which tensor (allocation) the plane lies in, from 0.
  std::uint32_t tensor = 0;
  /// Blocks of the pool.
  std::uint32_t blocks = 0;
  /// [tokens] per block.
  std::uint32_t block_tokens = 0;
  /// Heads stored.
  std::uint32_t heads = 0;
  /// [elements] per token and head.
  std::uint32_t dim = 0;
  /// [bits] per element.
  std::uint32_t element_bits = 0;
  /// [elements] of `dim` that lie side by side, x; 1 without a split.
  std::uint32_t vector = 1;
  /// [elements] from the tensor's first element to this plane's.
  std::uint64_t base = 0;
  /// [elements] from a block to the next.
  std::uint64_t block_stride = 0;
  /// [elements] from a head to the next.
  std::uint64_t head_stride = 0;
  /// [elements] from a token to the next.
  std::uint64_t token_stride = 0;
  /// [elements] from a vector of `dim` to the next.
  std::uint64_t vector_stride = 0;

  /// Order [blocks, p_b, heads, dim]. \throws config_error if an extent is 0 or the plane exceeds 63 bits of elements.
  [[nodiscard]] static constexpr auto nhd(layout_shape const& shape) -> plane_layout {
    auto out = extents(shape, 1);
    out.vector_stride = 1;
    out.head_stride = shape.dim;
    out.token_stride = checked_mul(out.head_stride, out.heads, "layout nhd, token stride");
    out.block_stride = checked_mul(out.token_stride, out.block_tokens, "layout nhd, block stride");
    return out.checked();
  }
  /// Order [blocks, heads, p_b, dim]. \throws config_error as `nhd`.
  [[nodiscard]] static constexpr auto hnd(layout_shape const& shape) -> plane_layout {
    auto out = extents(shape, 1);
    out.vector_stride = 1;
    out.token_stride = shape.dim;
    out.head_stride = checked_mul(out.token_stride, out.block_tokens, "layout hnd, head stride");
    out.block_stride = checked_mul(out.head_stride, out.heads, "layout hnd, block stride");
    return out.checked();
  }
  /// Order [blocks, heads, dim / x, p_b, x] with x = \p vector, vLLM's key order.
  /// \throws config_error as `nhd`, or if x does not divide `dim`.
  [[nodiscard]] static constexpr auto split(layout_shape const& shape, std::uint32_t vector) -> plane_layout {
    auto out = extents(shape, vector);
    out.token_stride = vector;
    out.vector_stride = checked_mul(vector, out.block_tokens, "layout split, vector stride");
    out.head_stride = checked_mul(out.vector_stride, out.dim / vector, "layout split, head stride");
    out.block_stride = checked_mul(out.head_stride, out.heads, "layout split, block stride");
    return out.checked();
  }
  /// Order [blocks, heads, dim, p_b], vLLM's value order. \throws config_error as `nhd`.
  [[nodiscard]] static constexpr auto transposed(layout_shape const& shape) -> plane_layout { return split(shape, 1); }

  /// Element index of \p at in the tensor. \pre every coordinate is inside the extents
  [[nodiscard]] constexpr auto offset(layout_place const& at) const -> std::uint64_t {
    QUIRE_EXPECTS(at.block.value() < blocks);
    QUIRE_EXPECTS(at.token.value() < block_tokens);
    QUIRE_EXPECTS(at.head < heads);
    QUIRE_EXPECTS(at.dim < dim);
    return base + std::uint64_t{at.block.value()} * block_stride + std::uint64_t{at.head} * head_stride +
           std::uint64_t{at.token.value()} * token_stride + std::uint64_t{at.dim / vector} * vector_stride +
           at.dim % vector;
  }
  /// [elements] of one block.
  [[nodiscard]] constexpr auto block_elements() const noexcept -> std::uint64_t {
    return std::uint64_t{heads} * dim * block_tokens;
  }
  /// Element index of the last element of the plane, the largest that a kernel computes.
  [[nodiscard]] constexpr auto last_offset() const -> std::uint64_t {
    return checked_add(checked_mul(block_stride, blocks - std::uint64_t{1}, "layout, block offset"),
                       checked_add(base, block_reach(), "layout, last offset"), "layout, last offset");
  }
  /// Blocks, from 0, that a kernel with \p width can address; at most `blocks`.
  [[nodiscard]] constexpr auto addressable_blocks(element_index width) const noexcept -> block_count {
    auto const fixed = base + block_reach(); // cannot overflow: last_offset() was checked
    if (fixed > max_index(width)) { return block_count{0}; }
    auto const fit = (max_index(width) - fixed) / block_stride + 1;
    return block_count{fit < blocks ? static_cast<std::uint32_t>(fit) : blocks};
  }
  /// Makes sure that kernels which index with \p width reach every element.
  /// \throws config_error naming the plane, the first block out of reach and what would work. \source cases 115, 116
  constexpr void require_index(element_index width) const {
    auto const fit = addressable_blocks(width).value();
    if (fit == blocks) { return; }
    throw config_error{"layout, plane " + std::string{to_string(role)} + ": block " + std::to_string(fit) +
                       " reaches element " + std::to_string(base + fit * block_stride + block_reach()) +
                       ", beyond the " + std::string{to_string(width)} + " index of the device (" +
                       std::to_string(max_index(width)) + "): use at most " + std::to_string(fit) +
                       " blocks, or kernels with 64-bit indices"};
  }

  /// True if every field agrees.
  friend constexpr auto operator==(plane_layout const&, plane_layout const&) noexcept -> bool = default;

  /// Returns this layout after a check of its sizes. \throws config_error if an element index exceeds 63 bits.
  [[nodiscard]] constexpr auto checked() const -> plane_layout {
    if (last_offset() > max_index(element_index::signed_64)) {
      throw config_error{"layout, plane " + std::string{to_string(role)} + ": more than 63 bits of elements"};
    }
    return *this;
  }
  /// [elements] from the first element of a block to its last.
  [[nodiscard]] constexpr auto block_reach() const noexcept -> std::uint64_t {
    return (heads - std::uint64_t{1}) * head_stride + (block_tokens - std::uint64_t{1}) * token_stride +
           (dim / vector - std::uint64_t{1}) * vector_stride + (vector - std::uint64_t{1});
  }

private:
  [[nodiscard]] static constexpr auto extents(layout_shape const& shape, std::uint32_t vector) -> plane_layout {
    if (shape.blocks.value() == 0 || shape.block_tokens.value() == 0 || shape.heads == 0 || shape.dim == 0 ||
        shape.element_bits == 0) {
      throw config_error{"layout, plane " + std::string{to_string(shape.role)} +
                         ": blocks, block_tokens, heads, dim and element_bits must be at least 1"};
    }
    if (vector == 0 || shape.dim % vector != 0) {
      throw config_error{"layout, plane " + std::string{to_string(shape.role)} + ": a vector of " +
                         std::to_string(vector) + " elements does not divide dim " + std::to_string(shape.dim)};
    }
    return {.role = shape.role,
            .blocks = shape.blocks.value(),
            .block_tokens = shape.block_tokens.value(),
            .heads = shape.heads,
            .dim = shape.dim,
            .element_bits = shape.element_bits,
            .vector = vector};
  }
};

} // namespace quire
