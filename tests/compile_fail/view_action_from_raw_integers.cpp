// SPDX-License-Identifier: Apache-2.0
// expect: could not convert|cannot convert|no viable conversion|no matching
// A block, a group and a count are types: a list of bare numbers in the wrong order is not an action.
#include <quire/view/action.hpp>

auto main() -> int {
#ifdef FIXED
  auto const act =
      quire::action::copy_block(quire::group_id{0}, quire::block_id{1}, quire::block_id{2}, quire::token_count{3});
#else
  auto const act = quire::action::copy_block(0U, 1U, 2U, 3U);
#endif
  return static_cast<int>(act.tokens.value()) - 3;
}
