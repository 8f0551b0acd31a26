// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The toy model: its "KV" of position p is a 64-bit hash of everything that may influence it: the scope, the weights,
/// and the tokens 0..p. A read that finds another number has met a wrong share, stale bytes, a missed copy or a block
/// that was used again too early.

#include <quire/core/types.hpp>

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace quire_test {

/// What a toy found wrong.
struct toy_failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Fails with \p what unless \p ok holds. Not an assertion macro: toys run millions of checks and inside generators.
inline void toy_check(bool ok, char const* what) {
  if (!ok) { throw toy_failure{what}; }
}
/// The same with a number.
inline void toy_check(bool ok, char const* what, std::uint64_t number) {
  if (!ok) { throw toy_failure{std::string{what} + ": " + std::to_string(number)}; }
}

/// A bijection that scatters 64 bits.
[[nodiscard]] constexpr auto toy_mix(std::uint64_t x) noexcept -> std::uint64_t {
  x += 0x9E37'79B9'7F4A'7C15ULL;
  x = (x ^ (x >> 30U)) * 0xBF58'476D'1CE4'E5B9ULL;
  x = (x ^ (x >> 27U)) * 0x94D0'49BB'1331'11EBULL;
  return x ^ (x >> 31U);
}

/// What memory holds that nobody may read.
inline constexpr std::uint64_t toy_poison = 0xDEAD'DEAD'DEAD'DEADULL;

/// KV of a position: \p before is the KV of the position before it, or `toy_root`.
[[nodiscard]] constexpr auto toy_next(std::uint64_t before, std::uint64_t weights, quire::token_id token) noexcept
    -> std::uint64_t {
  return toy_mix(before ^ toy_mix(weights) ^ toy_mix(0x70AD'0000ULL + static_cast<std::uint32_t>(token)));
}
/// What the chain of a scope starts from.
[[nodiscard]] constexpr auto toy_root(std::uint64_t scope) noexcept -> std::uint64_t { return toy_mix(scope * 2 + 1); }

/// Appends the KV of \p tokens to \p kv, the KV of all positions before them.
inline void toy_extend(std::vector<std::uint64_t>& kv, std::uint64_t scope, std::uint64_t weights,
                       std::span<quire::token_id const> tokens) {
  auto last = kv.empty() ? toy_root(scope) : kv.back();
  for (auto const token : tokens) { kv.push_back(last = toy_next(last, weights, token)); }
}

/// A small source of choices: the same seed gives the same choices on every machine.
class toy_dice {
public:
  /// Starts from \p seed.
  explicit constexpr toy_dice(std::uint64_t seed) noexcept : state_{toy_mix(seed)} {}
  /// A number below \p n. \pre `n > 0`
  [[nodiscard]] constexpr auto below(std::uint64_t n) noexcept -> std::uint32_t {
    state_ = toy_mix(state_);
    return static_cast<std::uint32_t>((state_ >> 11U) % n);
  }
  /// True once in \p n times.
  [[nodiscard]] constexpr auto one_in(std::uint64_t n) noexcept -> bool { return below(n) == 0; }

private:
  std::uint64_t state_;
};

} // namespace quire_test
