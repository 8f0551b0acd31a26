// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The language model without a network.

#include <quire/core/expected.hpp>
#include <quire/core/types.hpp>
#include <quire/generate/concepts.hpp>
#include <quire/generate/forward_batch.hpp>
#include <quire/view/action.hpp>

#include <algorithm> // std::fill
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace quire {

/// Computes nothing and finds every token equally likely, so that greedy choice gives token 0. For dry runs of a
/// scheduler. Null model of `language_model`.
struct null_language_model {
  std::size_t tokens = 1;                                                ///< V.
  token_count positions{std::numeric_limits<std::uint32_t>::max() / 2U}; ///< Longest sequence.

  /// V.
  [[nodiscard]] auto vocabulary() const noexcept -> std::size_t { return tokens; }
  /// [tokens] longest sequence.
  [[nodiscard]] auto max_positions() const noexcept -> token_count { return positions; }
  /// Accepts \p actions. \returns success, always
  [[nodiscard]] auto run(std::span<action const> actions) const noexcept -> expected<void> {
    static_cast<void>(actions);
    return {};
  }
  /// Gives equal logits. \returns success, always
  [[nodiscard]] auto forward(forward_batch const& batch) const noexcept -> expected<void> {
    std::fill(batch.logits.begin(), batch.logits.end(), 0.0F);
    return {};
  }
};

static_assert(language_model<null_language_model>);

} // namespace quire
