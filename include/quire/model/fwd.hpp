// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Declarations of the model room.

#include <cstdint>

namespace quire {

enum class attention_pattern : std::uint8_t;
enum class dtype : std::uint8_t;
enum class group_kind : std::uint8_t;
enum class head_sharing : std::uint8_t;
enum class index_width : std::uint8_t;
enum class layer_kind : std::uint8_t;
enum class plane_kind : std::uint8_t;
enum class plane_part : std::uint8_t;
enum class retention_kind : std::uint8_t;
enum class scale_granularity : std::uint8_t;
enum class scale_placement : std::uint8_t;

class cache_layout;
class model_spec;
struct attention_rule;
struct block_stride;
struct block_usage;
struct capacity_report;
struct capacity_request;
struct context_split;
struct element_format;
struct layer_group;
struct layer_spec;
struct logical_block_interval;
struct model_description;
struct page_fit;
struct paging;
struct parallel_split;
struct plane_spec;
struct position_interval;
struct resident_blocks;
struct retention;
struct scale_spec;
struct stored_plane;
struct work;

} // namespace quire
