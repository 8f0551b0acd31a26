// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The stored form of a plane's elements: their type and their scales, with the name under which a lossy
/// form is an execution mode of its own (S6).

#include <quire/model/dtype.hpp>
#include <quire/model/scale_spec.hpp>

#include <string>

namespace quire {

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
