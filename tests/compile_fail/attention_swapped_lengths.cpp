// SPDX-License-Identifier: Apache-2.0
// expect: no matching|could not convert|too many arguments|no viable
// Cached and appended are named: two counts side by side would be swapped one day.
#include <quire/attention/attention_extent.hpp>

auto main() -> int {
#ifdef FIXED
  auto const extent =
      quire::attention_extent::append({.cached = quire::token_count{3}, .appended = quire::token_count{1}});
#else
  auto const extent = quire::attention_extent::append(quire::token_count{3}, quire::token_count{1});
#endif
  return static_cast<int>(extent.queries.value()) - 1;
}
