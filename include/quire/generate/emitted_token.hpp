// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// An output of a step.

#include <quire/core/types.hpp>
#include <quire/generate/generation_id.hpp>
#include <quire/generate/stop_reason.hpp>

#include <span>

namespace quire {

/// One output, as it is born. Valid until the next step.
struct emitted_token {
  generation_id of{};                     ///< Whose.
  token_id token = 0;                     ///< What.
  std::span<float const> logits = {};     ///< \shape [V] what it was chosen from.
  stop_reason reason = stop_reason::none; ///< Whether it was the last.
};

} // namespace quire
