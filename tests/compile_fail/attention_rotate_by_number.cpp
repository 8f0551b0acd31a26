// SPDX-License-Identifier: Apache-2.0
// expect: could not convert|cannot convert|no viable conversion|no matching
// Case 77: a bare offset may be a length, a row count or a position; only the last is one.
#include <quire/attention/rope.hpp>

#include <array>
#include <span>

auto main() -> int {
  auto const rope = quire::resolved_rope{{.width = 2}, quire::token_count{4}};
  auto head = std::array{1.0F, 0.0F};
#ifdef FIXED
  rope.rotate(std::span<float>{head}, quire::token_pos{3});
#else
  rope.rotate(std::span<float>{head}, 3U);
#endif
  return 0;
}
