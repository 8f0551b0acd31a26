// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What an action asks an executor to do.

#include <cstdint>
#include <string_view>

namespace quire {

/// What an executor is asked to do with one block, or with a timeline.
enum class action_kind : std::uint8_t {
  wait,  ///< Do nothing further until a ticket of a timeline is reached.
  copy,  ///< The target reads like the source in its first `tokens` tokens; the source stays as it is.
  move,  ///< As copy, with all tokens of the block; the source's bytes are of no further use to anyone.
  scrub, ///< Overwrite every byte of the target.
  store, ///< Bring the source to a tier.
  load,  ///< Fill the target from a tier.
};

/// Name of \p kind, for messages.
[[nodiscard]] constexpr auto to_string(action_kind kind) noexcept -> std::string_view {
  switch (kind) {
  case action_kind::wait: return "wait";
  case action_kind::copy: return "copy";
  case action_kind::move: return "move";
  case action_kind::scrub: return "scrub";
  case action_kind::store: return "store";
  case action_kind::load: return "load";
  }
  return "unknown action";
}

} // namespace quire
