// SPDX-License-Identifier: Apache-2.0
// Sinks and window are named: two bare numbers could be swapped.
// expect: no matching function|too many arguments
#include <quire/model/retention.hpp>

#ifdef FIXED
auto keeps = quire::retention::sink_window({.sinks = quire::token_count{4}, .window = quire::token_count{8}});
#else
auto keeps = quire::retention::sink_window(quire::token_count{4}, quire::token_count{8});
#endif
