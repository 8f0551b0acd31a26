// SPDX-License-Identifier: Apache-2.0
// expect: constraint.*not satisf|constraints not satisfied
// Quantised integers are not numbers yet: an accessor has to apply the scale.
#include <quire/attention/oracle_attention.hpp>

auto main() -> int {
  auto const extent = quire::attention_extent::append({.appended = quire::token_count{1}});
#ifdef FIXED
  auto const element = [](quire::tensor_place const&) { return 2 * 0.5F; };
#else
  auto const element = [](quire::tensor_place const&) { return 2; };
#endif
  auto const out = quire::oracle_attention({.scale = 1.0}, extent, element, element, element);
  return out.output[0] > 0.0 ? 0 : 1;
}
