// SPDX-License-Identifier: Apache-2.0
// Case 117: a length is no position and no integer, so that "to n" and "by n" are not mixed up.
// expect: could not convert|cannot convert|no viable conversion|no matching|no known conversion
#include <quire/cache/kv_cache.hpp>

void cut(quire::kv_cache<>& cache, quire::kv_cache<>::sequence& s) {
#ifdef FIXED
  static_cast<void>(cache.truncate(s, quire::token_count{3}));
#else
  static_cast<void>(cache.truncate(s, quire::token_pos{3}));
#endif
}
