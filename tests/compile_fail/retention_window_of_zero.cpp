// SPDX-License-Identifier: Apache-2.0
// A window of no position, not even the query's own, does not compile where it is a constant.
// expect: expression .*throw|not a constant expression|must be initialized by a constant expression
#include <quire/cache/cache_group.hpp>

#ifdef FIXED
constexpr auto window = quire::cache_group{.keeps = quire::retention::sliding_window(quire::token_count{1})};
#else
constexpr auto window = quire::cache_group{.keeps = quire::retention::sliding_window(quire::token_count{0})};
#endif
static_assert(!window.keeps.keeps_all());
