// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Guesses by looking at what followed the same words before.

#include <quire/core/types.hpp>
#include <quire/generate/concepts.hpp>

#include <algorithm> // std::copy_n, std::equal, std::max, std::min
#include <cstddef>
#include <span>

namespace quire {

/// Finds the latest earlier occurrence of the text's last tokens and proposes what stood behind it. Costs no network, and
/// is right often where an output repeats its prompt.
/// \source prompt look-up decoding (Saxena, 2023)
class lookup_drafter {
public:
  /// Looks for the last 2 tokens.
  lookup_drafter() noexcept = default;
  /// Looks for the last \p gram tokens, at least 1.
  explicit lookup_drafter(token_count gram) noexcept : gram_{std::max(gram, token_count{1})} {}

  /// Writes guesses for the tokens behind \p text. \returns how many; 0 if nothing repeats. \complexity O(text · gram)
  [[nodiscard]] auto propose(std::span<token_id const> text, std::span<token_id> guesses) const noexcept
      -> std::size_t {
    auto const n = std::size_t{gram_.value()};
    if (text.size() <= n) { return 0; }
    auto const last = text.last(n);
    for (auto at = text.size() - n; at-- > 0;) {
      if (!std::equal(last.begin(), last.end(), text.begin() + static_cast<std::ptrdiff_t>(at))) { continue; }
      auto const behind = text.subspan(at + n);
      auto const count = std::min(behind.size(), guesses.size());
      std::copy_n(behind.begin(), count, guesses.begin());
      return count;
    }
    return 0;
  }

private:
  token_count gram_{2};
};

static_assert(drafter<lookup_drafter>);

} // namespace quire
