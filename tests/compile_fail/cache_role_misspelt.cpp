// SPDX-License-Identifier: Apache-2.0
// A role whose name is misspelt must not silently leave the default in place.
// expect: the policies override no role of quire::default_policies; is the name of a role misspelt
#include <quire/cache/kv_cache.hpp>
#include <quire/prefix/lfu_eviction.hpp>

struct policies : quire::default_policies {
#ifdef FIXED
  using eviction = quire::lfu_eviction;
#else
  using eviction_policy = quire::lfu_eviction;
#endif
};
static_assert(sizeof(quire::kv_cache<policies>) > 0);
