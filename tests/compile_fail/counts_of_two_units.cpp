// SPDX-License-Identifier: Apache-2.0
// Blocks and tokens do not add.
// expect: no match for .operator\+.|invalid operands to binary expression
#include <quire/core/types.hpp>

#ifdef FIXED
auto sum = quire::token_count{16} + quire::token_count{1};
#else
auto sum = quire::token_count{16} + quire::block_count{1};
#endif
