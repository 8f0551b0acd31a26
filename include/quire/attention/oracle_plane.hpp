// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// One plane of paged host memory as the oracle reads and writes it.

#include <quire/attention/element_codec.hpp>
#include <quire/core/config_error.hpp>
#include <quire/model/dtype.hpp>
#include <quire/view/plane_layout.hpp>

#include <cstddef>
#include <span>

namespace quire {

/// Elements of one plane: where they lie, what they are, which memory. Owns nothing.
struct oracle_plane {
  /// Extents and strides.
  plane_layout layout = {};
  /// Type of the elements.
  dtype type = dtype::f64;
  /// The whole tensor that the plane lies in.
  std::span<std::byte> tensor = {};
  /// x = stored · scale, one scale for the plane.
  double scale = 1.0;

  /// Checks that type, layout and memory agree. \throws config_error if they do not
  void validate() const {
    if (layout.blocks == 0) {
      throw config_error{"oracle plane: no layout: make one with plane_layout::nhd or another"};
    }
    if (bits_of(type) != layout.element_bits) {
      throw config_error{"oracle plane: the layout's element_bits are not those of the type"};
    }
    if (packed_bytes(type, layout.last_offset() + 1).value() > tensor.size()) {
      throw config_error{"oracle plane: the tensor is smaller than the layout"};
    }
    if (!(scale > 0.0)) { throw config_error{"oracle plane: the scale must be positive, 1 for none"}; }
  }
  /// The element at \p at. \pre the place exists
  [[nodiscard]] auto load(layout_place const& at) const -> double {
    return load_element(type, tensor, layout.offset(at)) * scale;
  }
  /// Stores \p value at \p at, rounded. \pre the place exists
  void store(layout_place const& at, double value) const {
    store_element(type, tensor, layout.offset(at), value / scale);
  }
};

} // namespace quire
