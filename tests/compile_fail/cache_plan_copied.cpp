// SPDX-License-Identifier: Apache-2.0
// A plan is one reservation: it cannot be copied, committed twice or committed in passing.
// expect: cannot bind rvalue|expects an rvalue|no viable conversion|cannot bind
#include <quire/cache/kv_cache.hpp>

#include <utility>

void finish(quire::kv_cache<>& cache, quire::kv_cache<>::step_plan& plan) {
#ifdef FIXED
  static_cast<void>(cache.commit(std::move(plan)));
#else
  static_cast<void>(cache.commit(plan));
#endif
}
