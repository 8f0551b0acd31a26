// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// One plane of a cache in host memory, as a byte mover sees it.
///
///     block ──block_stride──► block
///     │ segment ──segment_stride──► segment      (one per head, or per head and vector of dim; 1 for nhd)
///     │ │ token ──token_stride──► token
///     │ │ │ token_bytes, side by side
///
/// Every order in `plane_layout` has this shape, so that "the first n tokens of a block" is exact in all of them:
/// n runs of `token_bytes` per segment, or one run of n · token_stride where tokens lie side by side.

#include <quire/core/config_error.hpp>
#include <quire/core/types.hpp>
#include <quire/view/plane_layout.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace quire {

/// Bytes of one plane and how they are cut into blocks and tokens. Owns nothing.
struct host_plane {
  /// The plane, from the first byte of block 0.
  std::span<std::byte> bytes = {};
  /// From a block to the next.
  byte_count block_stride = {};
  /// From a token to the next inside a segment; 0 if the plane has nothing per token (side state, scales per block):
  /// then every copy takes the whole block.
  byte_count token_stride = {};
  /// Contiguous bytes of one token in one segment; 0 = `token_stride` (tokens side by side) or, if that is 0 too,
  /// `block_stride` (the whole block).
  byte_count token_bytes = {};
  /// Segments of a block.
  std::uint64_t segments = 1;
  /// From a segment to the next.
  byte_count segment_stride = {};

  /// Plane \p layout inside \p tensor, the memory of the tensor that it lies in. Planes of 4-bit elements whose tokens
  /// do not begin on a byte are copied as whole blocks.
  /// \throws config_error if the tensor is too small, or if neither tokens nor blocks begin on a byte
  [[nodiscard]] static auto of(plane_layout const& layout, std::span<std::byte> tensor) -> host_plane;

  /// Contiguous bytes of a token in a segment, with the defaults resolved.
  [[nodiscard]] constexpr auto run_bytes() const noexcept -> std::uint64_t {
    if (token_bytes.value() != 0) { return token_bytes.value(); }
    return token_stride.value() != 0 ? token_stride.value() : block_stride.value();
  }
  /// Bytes from the first byte of a block of \p tokens tokens to behind its last.
  [[nodiscard]] constexpr auto block_extent(token_count tokens) const noexcept -> std::uint64_t {
    auto const steps = token_stride.value() == 0 || tokens.value() == 0 ? 0 : tokens.value() - std::uint64_t{1};
    return (segments - 1) * segment_stride.value() + steps * token_stride.value() + run_bytes();
  }
  /// Calls `visit(offset from block 0, bytes)` for each contiguous run of the first \p tokens tokens of \p block; all of
  /// the block where the plane has nothing per token and \p tokens is not 0.
  template <class Visit>
  constexpr void for_each_run(block_id block, token_count tokens, Visit&& visit) const {
    if (tokens.value() == 0) { return; }
    auto const first = std::uint64_t{block.value()} * block_stride.value();
    auto const side_by_side = token_stride.value() == run_bytes();
    for (std::uint64_t segment = 0; segment < segments; ++segment) {
      auto const start = first + segment * segment_stride.value();
      if (token_stride.value() == 0) {
        visit(start, run_bytes());
      } else if (side_by_side) {
        visit(start, tokens.value() * run_bytes());
      } else {
        for (std::uint64_t token = 0; token < tokens.value(); ++token) {
          visit(start + token * token_stride.value(), run_bytes());
        }
      }
    }
  }
};

inline auto host_plane::of(plane_layout const& layout, std::span<std::byte> tensor) -> host_plane {
  auto const name = "host plane " + std::string{to_string(layout.role)};
  auto const bits = std::uint64_t{layout.element_bits};
  auto const on_byte = [bits](std::uint64_t elements) noexcept { return elements % 8 * bits % 8 == 0; };
  auto const bytes = [bits](std::uint64_t elements) noexcept {
    return byte_count{elements / 8 * bits + elements % 8 * bits / 8};
  };
  if (!on_byte(layout.base) || !on_byte(layout.block_stride)) {
    throw config_error{name + ": blocks do not begin on a byte: choose dim so that a block has whole bytes"};
  }
  auto const start = bytes(layout.base).value();
  auto const last = layout.last_offset();
  auto const needed = last / 8 * bits + (last % 8 * bits + bits + 7) / 8;
  if (tensor.size() < needed) {
    throw config_error{name + ": the tensor has " + std::to_string(tensor.size()) + " bytes and needs " +
                       std::to_string(needed)};
  }
  auto out = host_plane{.bytes = tensor.subspan(start), .block_stride = bytes(layout.block_stride)};

  // The contiguous run of a token: a vector, the whole of dim, or all heads.
  auto run = std::uint64_t{layout.vector};
  auto segments = std::uint64_t{layout.dim / layout.vector};
  auto segment_stride = layout.vector_stride;
  if (segments == 1 || segment_stride == layout.vector) {
    run = layout.dim;
    segments = layout.heads;
    segment_stride = layout.head_stride;
    if (segments == 1 || segment_stride == layout.dim) {
      run *= layout.heads;
      segments = 1;
      segment_stride = 0;
    }
  } else if (layout.heads > 1) {
    if (layout.head_stride != segments * segment_stride) {
      throw config_error{name + ": heads and vectors do not follow each other evenly: describe the plane by hand"};
    }
    segments *= layout.heads;
  }
  if (on_byte(run) && on_byte(segment_stride) && on_byte(layout.token_stride)) {
    out.token_stride = bytes(layout.token_stride);
    out.token_bytes = bytes(run);
    out.segments = segments;
    out.segment_stride = bytes(segment_stride);
    // One token per block, or something that exists once per block whatever the group's p_b is: always whole.
    if (layout.block_tokens == 1) { out.token_stride = byte_count{0}; }
    return out;
  }
  if (layout.block_reach() + 1 != layout.block_elements() || !on_byte(layout.block_elements())) {
    throw config_error{name + ": neither tokens nor blocks are whole bytes side by side"};
  }
  out.token_bytes = bytes(layout.block_elements());
  return out;
}

/// The planes that a block of one layer group consists of: those of every layer, K, V, scales and side state alike.
/// A block is all of them, for every action. Owns nothing.
struct host_group {
  /// Blocks of the group's pool.
  block_count blocks = {};
  /// [tokens] per block, p_b.
  token_count block_tokens = {};
  /// Every plane of every layer.
  std::span<host_plane const> planes = {};
};

} // namespace quire
