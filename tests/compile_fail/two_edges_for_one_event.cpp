// SPDX-License-Identifier: Apache-2.0
// A life cycle is deterministic: the second edge for one state and event does not compile (S25).
// expect: two edges for one state and event|constant expression|constexpr variable .* must be initialized
#include <quire/core/transition_table.hpp>

enum class state { off, on, count_ };
enum class event { press, count_ };

#ifdef FIXED
constexpr auto second = state::on;
#else
constexpr auto second = state::off;
#endif
constexpr auto table =
    quire::transition_table<state, event>{{{state::off, event::press, state::on}, {second, event::press, state::off}}};
