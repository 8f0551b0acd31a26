// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The two ways to compute low-rank attention, and where the rotation stands.

#include <quire/core/config_error.hpp>

#include <cstdint>

namespace quire {

/// How low-rank attention is computed. Both give the same result.
enum class latent_form : std::uint8_t {
  expanded, ///< Keys and values of every head are made from the latents.
  absorbed, ///< Queries take U_K over, outputs take U_V over; attention runs on the latents.
};

/// Where a rotary encoding acts.
enum class latent_rotation : std::uint8_t {
  none,      ///< Nowhere.
  decoupled, ///< On a part of its own that does not go through U_K (MLA).
  inside,    ///< On U_K c: between the query and U_K stands R_{j−t}, which differs for each key.
};

/// Refuses to absorb through a rotation: q^T R_t^T R_j U c has no fixed product that could move to the query's side.
/// \throws config_error if \p form is absorbed and \p rotation inside \source S12
constexpr void require_absorbable(latent_form form, latent_rotation rotation) {
  if (form == latent_form::absorbed && rotation == latent_rotation::inside) {
    throw config_error{"latent attention: the key projection cannot be absorbed through a rotation, which differs for "
                       "each key: use the expanded form, or a model with a decoupled rotary key"};
  }
}

} // namespace quire
