// SPDX-License-Identifier: Apache-2.0
// A struct that names every role itself does not compile if one is misspelt.
// expect: no type named 'eviction' in '(struct )?policies'
#include <quire/cache/kv_cache.hpp>

struct policies {
  using defaults = quire::default_policies;
  using allocation = defaults::allocation;
  using digest = defaults::digest;
#ifdef FIXED
  using eviction = defaults::eviction;
#else
  using evicton = defaults::eviction;
#endif
  template <class Eviction, class Digest>
  using index = defaults::index<Eviction, Digest>;
  using admission = defaults::admission;
  using copy = defaults::copy;
  using retention = defaults::retention;
  using block_states = defaults::block_states;
  using request_states = defaults::request_states;
  using fence = defaults::fence;
  using lock = defaults::lock;
  using observer = defaults::observer;
};
static_assert(sizeof(quire::kv_cache<policies>) > 0);
