// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Declarations of the block room, with the default template arguments.

#include <quire/block/concepts.hpp>

#include <cstddef>
#include <cstdint>

namespace quire {

enum class block_state : std::uint8_t;
enum class block_event : std::uint8_t;
struct standard_block_lifecycle;

class lifo_allocation;
class fifo_allocation;
class lowest_allocation;
struct no_allocation;

struct immediate_fence;
template <std::size_t Timelines = 1>
class ticket_fence;

template <allocation_policy Allocation = lifo_allocation, block_lifecycle Lifecycle = standard_block_lifecycle>
class block_pool;

} // namespace quire
