// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Which elements of a head turn together.

#include <cstdint>
#include <string_view>

namespace quire {

/// The pairs of a rotary encoding of width d. Keys cached under one layout are garbage under the other.
enum class rope_layout : std::uint8_t {
  interleaved, ///< (0, 1), (2, 3), …: GPT-J, the original Llama code, llama2.c.
  half_split,  ///< (0, d/2), (1, d/2 + 1), …: GPT-NeoX, Hugging Face.
};

/// The name of the layout.
[[nodiscard]] constexpr auto name_of(rope_layout layout) noexcept -> std::string_view {
  switch (layout) {
  case rope_layout::interleaved: return "interleaved";
  case rope_layout::half_split: return "half_split";
  }
  return "unknown";
}

} // namespace quire
