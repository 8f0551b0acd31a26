// SPDX-License-Identifier: Apache-2.0
// Case 40: a release consumes the handle, visibly at the call.
// expect: cannot bind rvalue|expects an rvalue|no viable conversion|cannot bind
#include <quire/cache/kv_cache.hpp>

#include <utility>

void end(quire::kv_cache<>& cache, quire::kv_cache<>::sequence& s) {
#ifdef FIXED
  cache.release(std::move(s));
#else
  cache.release(s);
#endif
}
