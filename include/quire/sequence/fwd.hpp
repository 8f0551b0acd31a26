// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Declarations of the sequence room, with the default template arguments.

#include <cstdint>

namespace quire {

class block_geometry;
class page_table;
class ring_table;
struct sequence_state;
struct settle_result;
template <class Pool, class Index>
class sequence_ops;

enum class request_state : std::uint8_t;
enum class request_event : std::uint8_t;
struct standard_request_lifecycle;

struct copy_on_write;
struct copy_whole_block;
struct never_copy;
struct full_residency;
template <std::uint32_t Window>
struct sliding_window_residency;
template <std::uint32_t Sinks, std::uint32_t Window>
struct sink_window_residency;
template <std::uint32_t Chunk>
struct chunked_residency;
template <std::uint32_t Capacity, std::uint32_t Window, std::uint32_t Sinks = 0>
struct ring_residency;

} // namespace quire
