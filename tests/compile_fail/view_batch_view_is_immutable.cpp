// SPDX-License-Identifier: Apache-2.0
// expect: read-only|not assignable|cannot assign
// Case 77: who holds a view cannot change what another one reads through it.
#include <quire/view/batch_view.hpp>

auto main() -> int {
  auto view = quire::batch_view{};
#ifdef FIXED
  return view.length.empty() ? 0 : view.length[0];
#else
  view.length[0] = 1;
  return 0;
#endif
}
