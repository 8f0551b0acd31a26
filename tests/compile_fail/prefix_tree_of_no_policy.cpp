// SPDX-License-Identifier: Apache-2.0
// The message of a wrong policy names the concept and where its rules stand.
// expect: Eviction must model quire::eviction_policy
#include <quire/prefix/run_tree.hpp>

struct not_an_order {};

#ifdef FIXED
using order = quire::lru_eviction;
#else
using order = not_an_order;
#endif
static_assert(sizeof(quire::run_tree<order>) > 0);
