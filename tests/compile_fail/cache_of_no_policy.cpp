// SPDX-License-Identifier: Apache-2.0
// The message of a wrong policy names the role, the concept and where its rules stand.
// expect: kv_cache: admission must model quire::admission_policy
#include <quire/cache/kv_cache.hpp>

struct policies : quire::default_policies {
#ifdef FIXED
  using admission = quire::admit_all;
#else
  using admission = int;
#endif
};
static_assert(sizeof(quire::kv_cache<policies>) > 0);
