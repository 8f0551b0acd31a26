// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Reproducible numbers for tests of mathematics.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace quire_test {

/// A small generator with the same numbers on every platform.
class numbers {
public:
  explicit numbers(std::uint64_t seed) : state_{seed * 2 + 1} {}
  /// The next number in [-1, 1).
  auto next() -> double {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<double>(static_cast<std::int64_t>(state_) >> 11) * 0x1.0p-52;
  }
  /// The next integer in [0, n).
  auto below(std::uint32_t n) -> std::uint32_t { return static_cast<std::uint32_t>((next() + 1.0) * 0.5 * n); }
  /// \p n numbers in [-scale, scale).
  auto many(std::size_t n, double scale = 1.0) -> std::vector<double> {
    std::vector<double> out(n);
    for (auto& x : out) { x = next() * scale; }
    return out;
  }

private:
  std::uint64_t state_;
};

/// Largest |a − b|; infinite where sizes differ or one is NaN, 0 for equal infinities.
template <class A, class B>
[[nodiscard]] auto distance(A const& a, B const& b) -> double {
  if (a.size() != b.size()) { return HUGE_VAL; }
  auto out = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    auto const x = static_cast<double>(a[i]);
    auto const y = static_cast<double>(b[i]);
    if (x == y) { continue; }
    auto const d = std::fabs(x - y);
    if (!(d <= out)) { out = std::isnan(d) ? HUGE_VAL : d; }
  }
  return out;
}

} // namespace quire_test
