// SPDX-License-Identifier: Apache-2.0
// Case 117: a plain, possibly negative number is no length.
// expect: could not convert|cannot convert|no viable conversion|no matching|no known conversion
#include <quire/cache/kv_cache.hpp>

void cut(quire::kv_cache<>& cache, quire::kv_cache<>::sequence& s) {
#ifdef FIXED
  static_cast<void>(cache.drop_last(s, quire::token_count{5}));
#else
  static_cast<void>(cache.drop_last(s, -5));
#endif
}
