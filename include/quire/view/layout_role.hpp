// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What the bytes of one plane of a layout mean.

#include <cstdint>
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

} // namespace quire
