// SPDX-License-Identifier: Apache-2.0
// Case 33: a handle is move-only, so that a second release cannot be written.
// expect: deleted
#include <quire/cache/kv_cache.hpp>

#include <utility>

using sequence = quire::kv_cache<>::sequence;

auto take(sequence& s) -> sequence {
#ifdef FIXED
  return std::move(s);
#else
  return s;
#endif
}
