// SPDX-License-Identifier: Apache-2.0
// A stride is no number of blocks (cases 115 and 116).
// expect: could not convert|cannot convert|no viable conversion|no matching function
#include <quire/model/index_width.hpp>

#ifdef FIXED
auto most = quire::addressable_blocks(quire::block_stride{65536}, quire::index_width::int32);
#else
auto most = quire::addressable_blocks(quire::block_count{65536}, quire::index_width::int32);
#endif
