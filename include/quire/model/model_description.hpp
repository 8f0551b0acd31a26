// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The plain description from which a `model_spec` is made.

#include <quire/core/types.hpp>
#include <quire/model/layer_spec.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace quire {

/// Describes a model as far as its caches go. Nothing is checked here; `model_spec` checks it.
struct model_description {
  std::string name{};                       ///< For people; never an identity (S35).
  std::vector<layer_spec> layers{};         ///< In forward order.
  token_count max_positions{};              ///< [tokens] longest sequence; windows that reach it are full attention.
  std::vector<std::byte> position_config{}; ///< Canonical bytes of the position rule's parameters; opaque here (S32).
  byte_count unmanaged_state{};             ///< [bytes] per sequence that the engine keeps besides (recurrent layers).
  std::string approximation{};              ///< Name of the lossy mode if a layer keeps less than it sees (S6).
};

} // namespace quire
