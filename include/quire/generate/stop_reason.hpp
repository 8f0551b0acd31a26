// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Why a generation is over.

#include <cstdint>
#include <string_view>

namespace quire {

/// Why a generation is over, or that it is not.
enum class stop_reason : std::uint8_t {
  none,          ///< It goes on.
  end_token,     ///< It said an end token.
  stop_sequence, ///< Its output ends with a stop sequence.
  limit,         ///< It has its G tokens.
  cancelled,     ///< Its client gave up.
  timed_out,     ///< It took too long.
  failed,        ///< The model gave no number to choose from, or the cache has no room for it even alone.
};

/// The name of the reason.
[[nodiscard]] constexpr auto name_of(stop_reason reason) noexcept -> std::string_view {
  switch (reason) {
  case stop_reason::none: return "running";
  case stop_reason::end_token: return "end token";
  case stop_reason::stop_sequence: return "stop sequence";
  case stop_reason::limit: return "limit";
  case stop_reason::cancelled: return "cancelled";
  case stop_reason::timed_out: return "timed out";
  case stop_reason::failed: return "failed";
  }
  return "unknown";
}

} // namespace quire
