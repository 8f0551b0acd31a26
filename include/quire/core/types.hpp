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

/// Amount of blocks.
using block_count = strong_count<tag::block, std::uint32_t>;
/// Amount of units.
using unit_count = strong_count<tag::unit, std::uint32_t>;
/// Amount of tokens; also the distance between two positions.
using token_count = strong_count<tag::token, std::uint32_t>;
/// Amount of bytes.
using byte_count = strong_count<tag::byte, std::uint64_t>;
/// Logical position of a token in its sequence, from 0 (S14: position encodings use this, never a block number).
using token_pos = strong_position<token_count>;

/// A point on a timeline: "all work enqueued up to here". Tickets of one timeline are monotone; ticket 0 is
/// reached from the start.
using ticket = strong_position<strong_count<tag::ticket, std::uint64_t>>;

} // namespace quire
