// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The drafter of those who do not speculate.

#include <quire/core/types.hpp>
#include <quire/generate/concepts.hpp>

#include <cstddef>
#include <span>

namespace quire {

/// Never guesses. Null model of `drafter`.
struct no_drafter {
  /// \returns 0
  [[nodiscard]] auto propose(std::span<token_id const> text, std::span<token_id> guesses) const noexcept
      -> std::size_t {
    static_cast<void>(text);
    static_cast<void>(guesses);
    return 0;
  }
};

static_assert(drafter<no_drafter>);

} // namespace quire
