// SPDX-License-Identifier: Apache-2.0
// A pool takes only what models allocation_policy.
// expect: constraint|does not satisfy
#include <quire/block/block_pool.hpp>

#ifdef FIXED
quire::block_pool<quire::lifo_allocation> pool{quire::block_count{4}};
#else
quire::block_pool<int> pool{quire::block_count{4}};
#endif
