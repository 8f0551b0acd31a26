// SPDX-License-Identifier: Apache-2.0
// The block after a block means nothing: blocks have no order a caller may rely on.
// expect: no match for .operator\+.|invalid operands to binary expression
#include <quire/core/types.hpp>

#ifdef FIXED
auto next = quire::token_pos{1} + quire::token_count{1};
#else
auto next = quire::block_id{1} + quire::block_count{1};
#endif
