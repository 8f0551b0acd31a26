// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The policy of the memory room: one budget of bytes, blocks of several sizes. Semantics that no compiler sees:
/// docs/concepts/group_memory.md.

#include <quire/core/types.hpp>
#include <quire/memory/memory_usage.hpp>
#include <quire/memory/owner_hint.hpp>

#include <concepts>
#include <cstddef>
#include <span>

namespace quire {

/// Serves groups of different block sizes out of one budget of bytes. See docs/concepts/group_memory.md.
template <class M>
concept group_memory = std::constructible_from<M, std::span<byte_count const>, byte_count> && std::movable<M> &&
                       requires(M m, M const& c, group_id g, block_id b, owner_hint h, std::span<block_id> out,
                                std::span<block_id const> blocks, std::span<block_count const> needs) {
                         { m.take(g) } noexcept -> std::same_as<block_id>;
                         { m.take(g, h) } noexcept -> std::same_as<block_id>;
                         { m.take(g, out) } noexcept -> std::same_as<block_count>;
                         { m.take(g, out, h) } noexcept -> std::same_as<block_count>;
                         { m.give(g, b) } noexcept -> std::same_as<void>;
                         { m.give(g, blocks) } noexcept -> std::same_as<void>;
                         { c.available(g) } noexcept -> std::same_as<block_count>;
                         { c.capacity(g) } noexcept -> std::same_as<block_count>;
                         { c.base(g) } noexcept -> std::same_as<byte_count>;
                         { c.stride(g) } noexcept -> std::same_as<byte_count>;
                         { c.groups() } noexcept -> std::same_as<std::size_t>;
                         { c.budget() } noexcept -> std::same_as<byte_count>;
                         { c.arena() } noexcept -> std::same_as<byte_count>;
                         { c.fits(needs) } -> std::same_as<bool>;
                         { c.usage(g) } -> std::same_as<memory_usage>;
                         { c.usage() } -> std::same_as<memory_usage>;
                       };

} // namespace quire
