// SPDX-License-Identifier: Apache-2.0
// An amount of blocks names no block.
// expect: could not convert|cannot convert|no viable conversion|no matching
#include <quire/block/block_pool.hpp>

auto holders(quire::block_pool<> const& pool) -> unsigned {
#ifdef FIXED
  return pool.holders(quire::block_id{1});
#else
  return pool.holders(quire::block_count{1});
#endif
}
