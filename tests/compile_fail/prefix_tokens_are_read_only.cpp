// SPDX-License-Identifier: Apache-2.0
// A published block is immutable: who looks at an index cannot write tokens.
// expect: read-only|not assignable|cannot assign
#include <quire/cache/kv_cache.hpp>

auto first_token(quire::kv_cache<>& cache) -> quire::token_id {
#ifdef FIXED
  return cache.index().tokens(quire::block_id{0})[0];
#else
  return cache.index().tokens(quire::block_id{0})[0] = 7;
#endif
}
