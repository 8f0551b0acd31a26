// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The randomness of one request: one word, the same on every machine.

#include <cstdint>
#include <limits>

namespace quire {

/// SplitMix64. A value: copying it saves the state, comparing it compares the future (S34). Standard distributions give
/// different numbers from library to library, so `uniform` is defined here.
/// \source Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators (2014)
class random_state {
public:
  /// Type of the numbers.
  using result_type = std::uint64_t;

  /// Starts from seed 0.
  constexpr random_state() noexcept = default;
  /// Starts from \p seed.
  explicit constexpr random_state(std::uint64_t seed) noexcept : state_{seed} {}
  /// The state as saved: `random_state{x.word()}` goes on where x stands.
  [[nodiscard]] constexpr auto word() const noexcept -> std::uint64_t { return state_; }

  /// Least number.
  [[nodiscard]] static constexpr auto min() noexcept -> result_type { return 0; }
  /// Greatest number.
  [[nodiscard]] static constexpr auto max() noexcept -> result_type { return std::numeric_limits<result_type>::max(); }
  /// The next number.
  constexpr auto operator()() noexcept -> result_type {
    state_ += 0x9e37'79b9'7f4a'7c15ULL;
    return mixed(state_);
  }
  /// The next number in [0, 1), of 53 bits.
  constexpr auto uniform() noexcept -> double { return static_cast<double>((*this)() >> 11U) * 0x1.0p-53; }
  /// A generator for sibling number \p number, unrelated to this one; sibling 0 is this one.
  [[nodiscard]] constexpr auto sibling(std::uint64_t number) const noexcept -> random_state {
    return number == 0 ? *this : random_state{mixed(state_ ^ mixed(number))};
  }
  /// Same future.
  friend constexpr auto operator==(random_state const&, random_state const&) noexcept -> bool = default;

private:
  [[nodiscard]] static constexpr auto mixed(std::uint64_t z) noexcept -> std::uint64_t {
    z = (z ^ (z >> 30U)) * 0xbf58'476d'1ce4'e5b9ULL;
    z = (z ^ (z >> 27U)) * 0x94d0'49bb'1331'11ebULL;
    return z ^ (z >> 31U);
  }

  std::uint64_t state_ = 0;
};

} // namespace quire
