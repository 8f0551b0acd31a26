// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Texts that tests make prompts and answers of.

#include <quire/core/types.hpp>

#include <cstddef>
#include <numeric>
#include <vector>

namespace quire_test {

/// Text of a prompt or of an answer.
using text = std::vector<quire::token_id>;

/// \p n tokens that count up from \p first.
inline auto ascending(std::size_t n, quire::token_id first = 1) -> text {
  auto out = text(n);
  std::iota(out.begin(), out.end(), first);
  return out;
}
/// \p a followed by \p b.
inline auto joined(text a, text const& b) -> text {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
/// The first \p n tokens of \p a.
inline auto head(text const& a, std::size_t n) -> text {
  return {a.begin(), a.begin() + static_cast<std::ptrdiff_t>(n)};
}
/// The tokens of \p a from \p n on.
inline auto tail(text const& a, std::size_t n) -> text { return {a.begin() + static_cast<std::ptrdiff_t>(n), a.end()}; }

} // namespace quire_test
