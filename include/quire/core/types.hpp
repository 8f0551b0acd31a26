// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The vocabulary of the library: what things are called and how wide they are.

#include <quire/core/strong.hpp>

#include <cstdint>

namespace quire {

/// \cond INTERNAL
namespace tag {
struct block;
struct token;
struct byte;
struct row;
struct timeline;
struct ticket;
struct group;
struct unit;
struct tier;
struct layer;
struct depth;
struct scope_number;
struct sequence;
} // namespace tag
/// \endcond

/// A token as tokenizers deliver it. Deliberately a plain integer: prompts cross the API as
/// `std::span<token_id const>` without a copy.
using token_id = std::int32_t;

/// Names one physical block of a pool, in [0, capacity).
using block_id = strong_id<tag::block, std::uint32_t>;
/// A row of a batch view. A row is never an identity (S19).
using row_id = strong_id<tag::row, std::uint32_t>;
/// Names a device queue (stream) whose work completes in order.
using timeline_id = strong_id<tag::timeline, std::uint32_t>;

/// Names a *unit* of a prefix index: a full block's worth of tokens under a parent. Identity only; it has no bytes.
using unit_id = strong_id<tag::unit, std::uint32_t>;
/// Names a layer group: layers of one shape and retention that share a page table.
using group_id = strong_id<tag::group, std::uint32_t>;
/// Names a memory that blocks can lie in: `device_tier`, or a tier behind it, slower and larger.
using tier_id = strong_id<tag::tier, std::uint32_t>;
/// The memory that a backend reads: a cache's own pools.
inline constexpr tier_id device_tier{0};
/// Names a layer of a model, in [0, layers), in the order in which a forward pass runs them.
using layer_id = strong_id<tag::layer, std::uint32_t>;
/// Local number of a sharing scope. It is an index of this cache and says nothing about the scope's content (S37).
using scope_number = strong_id<tag::scope_number, std::uint32_t>;
/// Number of a sequence, never used twice in one cache: a row or a record is reused, this is not (S19).
using sequence_number = strong_id<tag::sequence, std::uint64_t>;

/// Amount of blocks.
using block_count = strong_count<tag::block, std::uint32_t>;
/// Amount of units.
using unit_count = strong_count<tag::unit, std::uint32_t>;
/// Amount of tokens; also the distance between two positions.
using token_count = strong_count<tag::token, std::uint32_t>;
/// Amount of bytes.
using byte_count = strong_count<tag::byte, std::uint64_t>;
/// Amount of sequences.
using sequence_count = strong_count<tag::sequence, std::uint32_t>;
/// Amount of rows of a batch view.
using row_count = strong_count<tag::row, std::uint32_t>;
/// Number of blocks between the start of a sequence and a block [blocks]; the first block has depth 0.
using block_depth = strong_count<tag::depth, std::uint32_t>;
/// Logical position of a token in its sequence, from 0 (S14: position encodings use this, never a block number).
using token_pos = strong_position<token_count>;
/// Index of a block in a sequence, as opposed to the `block_id` it maps to (S14): block j holds the positions
/// [j·p_b, (j+1)·p_b).
using logical_block = strong_position<block_count>;

/// A point on a timeline: "all work enqueued up to here". Tickets of one timeline are monotone; ticket 0 is
/// reached from the start.
using ticket = strong_position<strong_count<tag::ticket, std::uint64_t>>;

} // namespace quire
