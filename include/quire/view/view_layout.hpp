// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The planes that one block of one layer consists of, and how they share tensors.
///
///     separate        K [blocks, …]        V [blocks, …]            two tensors
///     blocks_outer    [blocks, {K, V}, …]                           FlashInfer's 5-D tensor
///     planes_outer    [{K, V}, blocks, …]                           vLLM's older tensor
///     heads_joined    [blocks, heads, p_b, d_k + d_v]
///
/// The last three have the same size, and the same bytes mean something else in each: a tier that compared sizes
/// restored silently wrong caches (case 92), and a copy that assumed one order ran over the other. So a layout is
/// compared, and fed into a key, field by field.

#include <quire/core/checked.hpp>
#include <quire/core/config_error.hpp>
#include <quire/core/types.hpp>
#include <quire/view/plane_layout.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace quire {

/// Where two layouts part: what an import refuses with.
struct layout_difference {
  /// Plane, from 0; the number of common planes if one layout has more.
  std::uint32_t plane;
  /// Name of the field.
  std::string_view field;
  /// Value on the left.
  std::uint64_t left;
  /// Value on the right.
  std::uint64_t right;

  /// True if all fields agree.
  friend constexpr auto operator==(layout_difference const&, layout_difference const&) noexcept -> bool = default;
};

/// Ordered set of the planes of one layer. Plain data; at most `max_planes` planes.
class view_layout {
public:
  /// Most planes that a block of a layer can have.
  static constexpr std::size_t max_planes = 8;

  /// A layout without planes.
  constexpr view_layout() noexcept = default;

  /// Each plane in a tensor of its own, in the order given. \throws config_error if there are more than `max_planes`.
  [[nodiscard]] static constexpr auto separate(std::span<plane_layout const> planes) -> view_layout {
    auto out = view_layout{};
    for (auto plane : planes) {
      plane.tensor = out.count_;
      out.add(plane);
    }
    return out;
  }
  /// Key and value alternate per block in one tensor: [blocks, {K, V}, …].
  /// \throws config_error if blocks or element sizes differ, or a size exceeds 63 bits.
  [[nodiscard]] static constexpr auto blocks_outer(plane_layout key, plane_layout value) -> view_layout {
    require_pair(key, value);
    require_dense(key, value);
    auto const stride = checked_add(key.block_elements(), value.block_elements(), "layout, joint block stride");
    value.base = key.block_elements();
    key.block_stride = stride;
    value.block_stride = stride;
    return pair(key, value);
  }
  /// All keys, then all values, in one tensor: [{K, V}, blocks, …]. \throws config_error as `blocks_outer`.
  [[nodiscard]] static constexpr auto planes_outer(plane_layout key, plane_layout value) -> view_layout {
    require_pair(key, value);
    require_dense(key, value);
    value.base = checked_add(key.last_offset(), 1, "layout, base of the value plane");
    return pair(key, value);
  }
  /// Key and value of one token and head side by side: [blocks, heads, p_b, d_k + d_v].
  /// \throws config_error if heads or tokens differ, or as `blocks_outer`.
  [[nodiscard]] static constexpr auto heads_joined(layout_shape const& key, layout_shape const& value) -> view_layout {
    if (key.heads != value.heads || key.block_tokens != value.block_tokens) {
      throw config_error{"layout heads_joined: key and value must have the same heads and block_tokens"};
    }
    auto joint = key;
    auto const dim = std::uint64_t{key.dim} + value.dim;
    joint.dim = static_cast<std::uint32_t>(dim);
    if (joint.dim != dim) { throw config_error{"layout heads_joined: d_k + d_v exceeds 32 bits"}; }
    auto k = plane_layout::hnd(joint);
    auto v = k;
    k.dim = key.dim;
    v.dim = value.dim;
    v.role = value.role;
    v.element_bits = value.element_bits;
    v.blocks = value.blocks.value();
    require_pair(k, v);
    v.base = key.dim;
    return pair(k, v);
  }

  /// Appends \p plane, whose `tensor` says where it lies. \throws config_error if there are `max_planes` already.
  constexpr void add(plane_layout const& plane) {
    if (count_ == max_planes) { throw config_error{"layout: a block of a layer can have at most 8 planes"}; }
    planes_[count_++] = plane.checked();
  }

  /// The planes, in order.
  [[nodiscard]] constexpr auto planes() const noexcept -> std::span<plane_layout const> {
    return std::span{planes_}.first(count_);
  }
  /// [bytes] that tensor number \p tensor needs, rounded up to whole bytes; 0 if no plane lies in it.
  /// \throws config_error if they exceed 64 bits.
  [[nodiscard]] constexpr auto tensor_bytes(std::uint32_t tensor) const -> byte_count {
    std::uint64_t bytes = 0;
    for (auto const& plane : planes()) {
      if (plane.tensor != tensor) { continue; }
      auto const bits = checked_mul(checked_add(plane.last_offset(), 1, "layout, elements"), plane.element_bits,
                                    "layout, bits of a tensor");
      auto const end = ceil_div(bits, std::uint64_t{8});
      bytes = end > bytes ? end : bytes;
    }
    return byte_count{bytes};
  }
  /// Makes sure that kernels which index with \p width reach every element of every plane.
  /// \throws config_error naming the plane. \source cases 115, 116
  constexpr void require_index(element_index width) const {
    for (auto const& plane : planes()) { plane.require_index(width); }
  }
  /// Calls `visit(plane number, field name, value)` for every field of every plane in a fixed order: what goes into a
  /// key or a file header. For blocks that are stored one by one, visit `block_image()` instead.
  template <class Visit>
  constexpr void for_each_field(Visit&& visit) const {
    for (std::uint32_t i = 0; i < count_; ++i) {
      for (std::size_t field = 0; field < field_names.size(); ++field) {
        visit(i, field_names[field], field_value(planes_[i], field));
      }
    }
  }
  /// The layout of one block whose planes are gathered one after the other, each in its own order: what a stored block
  /// depends on. Pools of different size, and different ways to share tensors, have the same image.
  [[nodiscard]] constexpr auto block_image() const noexcept -> view_layout {
    auto out = *this;
    for (std::uint32_t i = 0; i < count_; ++i) {
      auto& plane = out.planes_[i];
      plane.tensor = i;
      plane.blocks = 1;
      plane.base = 0;
      plane.block_stride = plane.block_elements();
    }
    return out;
  }
  /// First field in which \p left and \p right differ, or nothing if they are the same layout. \source cases 92, 121
  [[nodiscard]] static constexpr auto first_difference(view_layout const& left, view_layout const& right) noexcept
      -> std::optional<layout_difference> {
    auto const common = left.count_ < right.count_ ? left.count_ : right.count_;
    for (std::uint32_t i = 0; i < common; ++i) {
      for (std::size_t field = 0; field < field_names.size(); ++field) {
        auto const a = field_value(left.planes_[i], field);
        auto const b = field_value(right.planes_[i], field);
        if (a != b) { return layout_difference{.plane = i, .field = field_names[field], .left = a, .right = b}; }
      }
    }
    if (left.count_ != right.count_) {
      return layout_difference{.plane = common, .field = "planes", .left = left.count_, .right = right.count_};
    }
    return std::nullopt;
  }
  /// True if both have the same planes with the same fields.
  friend constexpr auto operator==(view_layout const&, view_layout const&) noexcept -> bool = default;

private:
  static constexpr std::array<std::string_view, 13> field_names{
      "role",   "tensor", "blocks",       "block_tokens", "heads",        "dim",          "element_bits",
      "vector", "base",   "block_stride", "head_stride",  "token_stride", "vector_stride"};

  [[nodiscard]] static constexpr auto field_value(plane_layout const& plane, std::size_t field) noexcept
      -> std::uint64_t {
    std::array<std::uint64_t, field_names.size()> const values{static_cast<std::uint64_t>(plane.role),
                                                               plane.tensor,
                                                               plane.blocks,
                                                               plane.block_tokens,
                                                               plane.heads,
                                                               plane.dim,
                                                               plane.element_bits,
                                                               plane.vector,
                                                               plane.base,
                                                               plane.block_stride,
                                                               plane.head_stride,
                                                               plane.token_stride,
                                                               plane.vector_stride};
    return values[field];
  }
  static constexpr void require_pair(plane_layout const& key, plane_layout const& value) {
    if (key.blocks != value.blocks || key.element_bits != value.element_bits) {
      throw config_error{"layout: planes that share a tensor must have the same blocks and element_bits"};
    }
  }
  static constexpr void require_dense(plane_layout const& key, plane_layout const& value) {
    if (key.base != 0 || value.base != 0 || key.block_stride != key.block_elements() ||
        value.block_stride != value.block_elements()) {
      throw config_error{
          "layout: only planes without gaps, as nhd, hnd, split and transposed make them, can be joined"};
    }
  }
  [[nodiscard]] static constexpr auto pair(plane_layout key, plane_layout value) -> view_layout {
    auto out = view_layout{};
    key.tensor = 0;
    value.tensor = 0;
    out.add(key);
    out.add(value);
    return out;
  }

  std::array<plane_layout, max_planes> planes_ = {};
  std::uint32_t count_ = 0;
};

} // namespace quire
