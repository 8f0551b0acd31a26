// SPDX-License-Identifier: Apache-2.0
// The oldest query is a position; a length in its place is another question.
// expect: could not convert|cannot convert|no viable conversion|no matching function
#include <quire/model/resident_range.hpp>

constexpr auto keeps = quire::retention::sliding_window(quire::token_count{4});

#ifdef FIXED
auto stays = quire::resident_range(quire::token_pos{9}, keeps, quire::token_count{4});
#else
auto stays = quire::resident_range(quire::token_count{9}, keeps, quire::token_count{4});
#endif
