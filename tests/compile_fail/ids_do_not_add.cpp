// SPDX-License-Identifier: Apache-2.0
// Ids are compared, never added.
// expect: no match for .operator\+.|invalid operands to binary expression
#include <quire/core/types.hpp>

#ifdef FIXED
auto same = quire::block_id{1} == quire::block_id{2};
#else
auto sum = quire::block_id{1} + quire::block_id{2};
#endif
