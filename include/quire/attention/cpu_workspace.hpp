// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Memory that one thread needs while it computes attention.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace quire {

/// Keeps the buffers of the CPU backend between calls: after the largest one nothing is allocated. One per thread.
class cpu_workspace {
public:
  /// \cond INTERNAL
  /// \p count floats, on a boundary of 64 bytes; valid until the next call. Not initialised.
  [[nodiscard]] auto floats(std::size_t count) -> float* {
    constexpr std::size_t line = 64 / sizeof(float);
    if (memory_.size() < count + line) { memory_.resize(count + line); }
    auto const misplaced = reinterpret_cast<std::uintptr_t>(memory_.data()) / sizeof(float) % line;
    return memory_.data() + (misplaced == 0 ? 0 : line - misplaced);
  }
  /// \endcond

private:
  std::vector<float> memory_ = {};
};

} // namespace quire
