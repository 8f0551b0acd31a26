// SPDX-License-Identifier: Apache-2.0
// A token position moves by tokens, not by blocks.
// expect: no match for .operator\+.|invalid operands to binary expression
#include <quire/core/types.hpp>

#ifdef FIXED
auto next = quire::token_pos{16} + quire::token_count{16};
#else
auto next = quire::token_pos{16} + quire::block_count{1};
#endif
