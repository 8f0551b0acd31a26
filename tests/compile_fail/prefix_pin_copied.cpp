// SPDX-License-Identifier: Apache-2.0
// A lease is move-only, so that it cannot be given back twice.
// expect: deleted
#include <quire/prefix/prefix_pin.hpp>

#include <utility>

auto take(quire::prefix_pin& pin) -> quire::prefix_pin {
#ifdef FIXED
  return std::move(pin);
#else
  return pin;
#endif
}
