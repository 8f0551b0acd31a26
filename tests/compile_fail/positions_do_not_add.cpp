// SPDX-License-Identifier: Apache-2.0
// Two places do not add up to a place.
// expect: no match for .operator\+.|invalid operands to binary expression
#include <quire/core/types.hpp>

#ifdef FIXED
auto distance = quire::token_pos{9} - quire::token_pos{4};
#else
auto distance = quire::token_pos{9} + quire::token_pos{4};
#endif
