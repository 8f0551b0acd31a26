// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Declarations of the sequence room, with the default template arguments.

#include <cstdint>

namespace quire {

class block_geometry;
class prefix_path;
class ring_table;
struct block_table;
struct sequence_lengths;
struct settled_units;

enum class request_state : std::uint8_t;
enum class request_event : std::uint8_t;
struct standard_request_lifecycle;

struct copy_on_write;
struct copy_whole_block;
struct never_copy;
struct standard_retention;

} // namespace quire
