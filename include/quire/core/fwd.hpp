// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Declarations of the core room, with the default template arguments.

#include <quire/core/types.hpp> // IWYU pragma: export

#include <cstdint>

namespace quire {

class config_error;
enum class errc : std::uint8_t;
template <class State, class Event>
struct transition;
template <class State, class Event>
class transition_table;

} // namespace quire
