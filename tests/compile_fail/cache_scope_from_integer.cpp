// SPDX-License-Identifier: Apache-2.0
// Case 14: a scope comes from `open_scope`; no number stands for one.
// expect: could not convert|cannot convert|no viable conversion|no known conversion
#include <quire/cache/requests.hpp>

auto ask(quire::scope_number scope) -> quire::admit_request {
  auto out = quire::admit_request{};
#ifdef FIXED
  out.scope = scope;
#else
  static_cast<void>(scope);
  out.scope = 0;
#endif
  return out;
}
