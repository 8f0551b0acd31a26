// SPDX-License-Identifier: Apache-2.0
// A window of no position, not even the query's own, does not compile.
// expect: expression .*throw|not a constant expression|must be initialized by a constant expression
#include <quire/sequence/sliding_window_residency.hpp>

#ifdef FIXED
constexpr auto kept = quire::sliding_window_residency<1>::keeps;
#else
constexpr auto kept = quire::sliding_window_residency<0>::keeps;
#endif
