// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Declarations of the memory room.

#include <quire/memory/concepts.hpp>

namespace quire {

struct memory_usage;
struct page_plan;
class uniform_memory;
class partitioned_memory;
class two_level_memory;
template <group_memory Memory>
class group_allocation;

} // namespace quire
