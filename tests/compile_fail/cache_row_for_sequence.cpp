// SPDX-License-Identifier: Apache-2.0
// S19: a row of a batch view identifies nobody.
// expect: no matching|could not convert|cannot convert
#include <quire/cache/kv_cache.hpp>

void twin(quire::kv_cache<>& cache, quire::kv_cache<>::sequence& s, quire::row_id row) {
#ifdef FIXED
  static_cast<void>(row);
  static_cast<void>(cache.fork(s));
#else
  static_cast<void>(s);
  static_cast<void>(cache.fork(row));
#endif
}
