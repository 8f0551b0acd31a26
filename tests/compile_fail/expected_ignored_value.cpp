// SPDX-License-Identifier: Apache-2.0
// A result of the library is an expected, not a value: the refusal has to be looked at first.
// expect: cannot convert|no viable conversion
#include <quire/core/expected.hpp>

auto blocks() -> quire::expected<int> { return 3; }

#ifdef FIXED
int held = blocks().value_or(0);
#else
int held = blocks();
#endif
