// SPDX-License-Identifier: Apache-2.0
// A position is not a length, although both are counted in tokens.
// expect: no match for .operator<.|invalid operands to binary expression
#include <quire/core/types.hpp>

#ifdef FIXED
auto inside = quire::token_pos{3} < quire::token_pos{4};
#else
auto inside = quire::token_pos{3} < quire::token_count{4};
#endif
