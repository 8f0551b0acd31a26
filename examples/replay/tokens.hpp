// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The synthetic tokens of a text: token k = (a + k·b) mod 2^31, where a and odd b are a one-to-one mix of the text's
/// number. Cheap (one addition per token, four at a time), always the same, and two texts agree in two tokens at the same
/// place only if they are one text.

#include "replay/trace.hpp"

#include <quire/core/types.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace replay {

/// A one-to-one mix of 64 bits (the finaliser of SplitMix64).
[[nodiscard]] constexpr auto mix(std::uint64_t x) noexcept -> std::uint64_t {
  x += 0x9E37'79B9'7F4A'7C15ULL;
  x = (x ^ (x >> 30U)) * 0xBF58'476D'1CE4'E5B9ULL;
  x = (x ^ (x >> 27U)) * 0x94D0'49BB'1331'11EBULL;
  return x ^ (x >> 31U);
}

/// Writes tokens [\p from, \p from + `out.size()`) of \p text.
inline auto write_tokens(text_id text, std::uint32_t from, std::span<quire::token_id> out) noexcept -> void {
  constexpr auto mask = 0x7fff'ffffU;
  auto const mixed = mix(static_cast<std::uint64_t>(text));
  auto const step = static_cast<std::uint32_t>(mixed >> 32U) | 1U;
  auto const start = static_cast<std::uint32_t>(mixed) + from * step;
  auto* const to = out.data();
  auto const n = out.size();
  // Four lanes with a value each: the compiler keeps them in one register without having to multiply.
  std::uint32_t lane[4] = {start, start + step, start + 2 * step, start + 3 * step};
  std::size_t k = 0;
  for (; k + 4 <= n; k += 4) {
    for (std::size_t i = 0; i < 4; ++i) {
      to[k + i] = static_cast<quire::token_id>(lane[i] & mask);
      lane[i] += 4 * step;
    }
  }
  for (std::size_t i = 0; k < n; ++k, ++i) { to[k] = static_cast<quire::token_id>(lane[i] & mask); }
}

/// Writes the whole prompt of \p r to the front of \p out. \pre `out` has room for it
inline auto write_prompt(trace const& t, request const& r, std::span<quire::token_id> out) noexcept -> void {
  std::size_t at = 0;
  for (auto const& s : t.prompt_of(r)) {
    write_tokens(s.text, 0, out.subspan(at, s.tokens));
    at += s.tokens;
  }
}

} // namespace replay
