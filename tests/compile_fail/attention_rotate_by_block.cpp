// SPDX-License-Identifier: Apache-2.0
// expect: could not convert|cannot convert|no viable conversion|no matching
// S14: a rotation takes a logical position; a block, a row or a bare number is none.
#include <quire/attention/rope.hpp>

#include <array>
#include <span>

auto main() -> int {
  auto const rope = quire::resolved_rope{{.width = 2}, quire::token_count{4}};
  auto head = std::array{1.0F, 0.0F};
#ifdef FIXED
  rope.rotate(std::span<float>{head}, quire::token_pos{3});
#else
  rope.rotate(std::span<float>{head}, quire::block_id{3});
#endif
  return 0;
}
