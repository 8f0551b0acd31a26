// SPDX-License-Identifier: Apache-2.0
// A bare integer is no block id.
// expect: could not convert|cannot convert|conversion from .*non-scalar type|no viable conversion|no matching function
#include <quire/core/types.hpp>

auto home_of(quire::block_id block) -> unsigned { return block.value(); }

#ifdef FIXED
auto home = home_of(quire::block_id{3});
#else
auto home = home_of(3u);
#endif
