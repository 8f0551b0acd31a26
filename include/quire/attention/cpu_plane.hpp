// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// One plane of paged host memory as the CPU backend reads and writes it, its scales included.
///
///     format                      x =                          scales
///     f32, f16, bf16              stored                       none
///     int8, fp8_e4m3 /tensor      stored · scale               one fixed number
///     int8, fp8_e4m3 /token_head  stored · s[block, token, head]           f32, a plane of their own
///     int8, fp8_e4m3 /groupN      stored · s[block, token, head, dim / N]  f32, a plane of their own
///
/// int8 and fp8 are approximate modes (S6): `format.name()` is the name under which they enter an identity. Scales per
/// token and finer are found when a token is written, from its largest element.

#include <quire/attention/detail/cpu_codec.hpp>
#include <quire/core/config_error.hpp>
#include <quire/core/contract.hpp>
#include <quire/core/types.hpp>
#include <quire/model/dtype.hpp>
#include <quire/model/element_format.hpp>
#include <quire/view/plane_layout.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace quire {

/// Elements of one plane: where they lie, how they are stored, which memory. Owns nothing.
struct cpu_plane {
  /// Extents and strides.
  plane_layout layout = {};
  /// Type of the elements, and their scales.
  element_format format = {};
  /// The whole tensor that the plane lies in.
  std::span<std::byte> tensor = {};
  /// x = stored · scale for `scale_granularity::tensor`; 1 otherwise.
  float scale = 1.0F;
  /// Extents and strides of the scales, `dim` being the scales per token and head; empty unless they have a plane.
  plane_layout scale_layout = {};
  /// The whole tensor that the scales lie in.
  std::span<std::byte> scale_tensor = {};

  /// Layout of the scale plane that goes with \p plane, in order [blocks, p_b, heads, scales].
  /// \throws config_error if \p format has no scale per token
  [[nodiscard]] static auto scales_for(plane_layout const& plane, element_format const& format) -> plane_layout {
    auto const count = scales_per_row(plane, format);
    if (count == 0) {
      throw config_error{"cpu plane: " + format.name() + " has no scales per token: no plane is needed"};
    }
    return plane_layout::nhd(
        {.role = plane.role == layout_role::value ? layout_role::value_scale : layout_role::key_scale,
         .blocks = block_count{plane.blocks},
         .block_tokens = token_count{plane.block_tokens},
         .heads = plane.heads,
         .dim = count,
         .element_bits = 32});
  }
  /// Scales per token and head; 0 if there is no scale plane.
  [[nodiscard]] auto scales_per_row() const noexcept -> std::uint32_t { return scales_per_row(layout, format); }
  /// [elements] under one scale of the scale plane. \pre there is one
  [[nodiscard]] auto scale_group() const -> std::uint32_t {
    auto const count = scales_per_row();
    QUIRE_EXPECTS(count > 0);
    return layout.dim / count;
  }

  /// Checks that format, layouts and memory agree. \throws config_error naming what is wrong and what would work
  void validate() const {
    if (layout.blocks == 0) { fail("no layout: make one with plane_layout::nhd or another"); }
    if (!detail::cpu_supports(format.type)) {
      fail(std::string{name_of(format.type)} +
           " has no fast path: use f32, f16, bf16, int8 or fp8_e4m3, or the oracle");
    }
    if (bits_of(format.type) != layout.element_bits) { fail("the layout's element_bits are not those of the format"); }
    require_memory(layout, format.type, tensor, "the tensor");
    auto const kind = format.scales.granularity;
    if (kind == scale_granularity::block_head) {
      fail("one scale per block and head cannot be known when its first token is written: use a scale per token and "
           "head");
    }
    if (kind != scale_granularity::none && !format.approximate()) {
      fail(std::string{name_of(format.type)} + " takes no scales: leave them out, or store int8 or fp8_e4m3");
    }
    if (kind != scale_granularity::tensor && scale != 1.0F) {
      fail("a fixed scale belongs to scale_spec::per_tensor(): leave it 1 otherwise");
    }
    if (!(scale > 0.0F) || !std::isfinite(scale)) { fail("the scale must be positive, 1 for none"); }
    if (kind == scale_granularity::group && (format.scales.group == 0 || layout.dim % format.scales.group != 0)) {
      fail("groups of " + std::to_string(format.scales.group) + " elements do not divide a row of " +
           std::to_string(layout.dim));
    }
    auto const count = scales_per_row();
    if (count == 0) { return; }
    if (format.scales.type != dtype::f32) { fail("scales are read as f32: use scale_spec with dtype::f32"); }
    if (format.scales.placement != scale_placement::own_plane) {
      fail("scales inside rows are not read: use scale_placement::own_plane");
    }
    if (scale_layout.blocks != layout.blocks || scale_layout.block_tokens != layout.block_tokens ||
        scale_layout.heads != layout.heads || scale_layout.dim != count || scale_layout.element_bits != 32) {
      fail("the layout of the scales does not go with the plane: use cpu_plane::scales_for");
    }
    require_memory(scale_layout, dtype::f32, scale_tensor, "the tensor of the scales");
  }

  /// The element at \p at, scaled. \pre the place exists
  [[nodiscard]] auto load(layout_place const& at) const -> float {
    return detail::with_cpu_codec(format.type, [&]<class Codec>(Codec) {
      return Codec::load(tensor.data() + layout.offset(at) * Codec::bytes) * scale_of(at);
    });
  }
  /// Stores one row: all elements of a token and head, and its scales. \param at its `dim` is not looked at
  /// \param row \shape [dim] \pre the place exists
  void store(layout_place at, std::span<float const> row) const {
    QUIRE_EXPECTS(row.size() == layout.dim);
    auto const group = scales_per_row() == 0 ? layout.dim : scale_group();
    detail::with_cpu_codec(format.type, [&]<class Codec>(Codec) {
      for (std::uint32_t first = 0; first < layout.dim; first += group) {
        auto const part = row.subspan(first, group);
        auto unit = scale;
        if constexpr (requires { Codec::largest; }) {
          if (scales_per_row() > 0) {
            unit = fitting(part, Codec::largest);
            at.dim = first / group;
            detail::cpu_put(scale_tensor.data() + scale_layout.offset(at) * sizeof(float), unit);
          }
        }
        store_part<Codec>(at, first, part, unit);
      }
    });
  }

private:
  [[nodiscard]] static auto scales_per_row(plane_layout const& plane, element_format const& format) noexcept
      -> std::uint32_t {
    switch (format.scales.granularity) {
    case scale_granularity::token_head: return 1;
    case scale_granularity::group: return format.scales.group == 0 ? 0 : plane.dim / format.scales.group;
    case scale_granularity::none:
    case scale_granularity::tensor:
    case scale_granularity::block_head: break;
    }
    return 0;
  }
  [[nodiscard]] auto scale_of(layout_place at) const -> float {
    if (scales_per_row() == 0) { return scale; }
    at.dim /= scale_group();
    return detail::cpu_bits<float>(scale_tensor.data() + scale_layout.offset(at) * sizeof(float));
  }
  /// The scale under which the largest element of \p row is the largest of the type; 1 for rows of zeros or infinities.
  [[nodiscard]] static auto fitting(std::span<float const> row, float largest) -> float {
    auto most = 0.0F;
    for (auto const value : row) { most = std::fabs(value) > most ? std::fabs(value) : most; }
    auto const unit = most / largest;
    return unit > 0.0F && std::isfinite(unit) ? unit : 1.0F;
  }
  template <class Codec>
  void store_part(layout_place at, std::uint32_t first, std::span<float const> part, float unit) const {
    for (std::uint32_t i = 0; i < part.size();) {
      at.dim = first + i; // the start of a run of elements that lie side by side
      auto* to = tensor.data() + layout.offset(at) * Codec::bytes;
      auto const whole = layout.vector_stride == layout.vector || layout.vector == layout.dim;
      auto const run = whole ? static_cast<std::uint32_t>(part.size()) - i : layout.vector - at.dim % layout.vector;
      auto const end = run < part.size() - i ? i + run : static_cast<std::uint32_t>(part.size());
      for (; i < end; ++i, to += Codec::bytes) { Codec::store(to, part[i] / unit); }
    }
  }
  static void require_memory(plane_layout const& of, dtype type, std::span<std::byte> memory, char const* what) {
    if (packed_bytes(type, of.last_offset() + 1).value() > memory.size()) {
      fail(std::string{what} + " has " + std::to_string(memory.size()) + " bytes, smaller than its layout");
    }
  }
  [[noreturn]] static void fail(std::string const& what) { throw config_error{"cpu plane: " + what}; }
};

} // namespace quire
