// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The policies of the prefix room: in which order idle prefixes leave, and how prefixes are found.
/// Semantics that no compiler sees: docs/concepts/eviction_policy.md and docs/concepts/prefix_index.md.

#include <quire/core/types.hpp>
#include <quire/prefix/node_id.hpp>
#include <quire/prefix/order_list.hpp>
#include <quire/prefix/prefix_pin.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace quire {

/// The least that an eviction policy may ask of the index it serves.
struct order_nodes_archetype {
  /// Links of \p node, for the policy to use while the node is in the order.
  [[nodiscard]] auto hook(node_id node) noexcept -> order_hook&;
};

/// Decides which idle node gives up its blocks next. See docs/concepts/eviction_policy.md.
template <class E>
concept eviction_policy =
    std::constructible_from<E, node_count> &&
    requires(E e, E const& c, order_nodes_archetype& nodes, node_id node, node_id other, bool owned) {
      requires std::same_as<decltype(E::leaves_only), bool const>;
      requires std::same_as<decltype(E::counts_uses), bool const>;
      requires std::same_as<decltype(E::max_run), std::uint32_t const>;
      { e.create(node, other) } noexcept -> std::same_as<void>;
      { e.use(node) } noexcept -> std::same_as<void>;
      { e.enter(nodes, node) } noexcept -> std::same_as<void>;
      { e.leave(nodes, node) } noexcept -> std::same_as<void>;
      { e.split(nodes, node, other, owned) } noexcept -> std::same_as<void>;
      { e.merge(nodes, node, other) } noexcept -> std::same_as<void>;
      { c.may_extend(node, owned) } noexcept -> std::same_as<bool>;
      { c.may_merge(node, other) } noexcept -> std::same_as<bool>;
      { c.victim() } noexcept -> std::same_as<node_id>;
    };

/// Numbers units, finds, pins, publishes and gives up prefixes: all that a cache calls. See docs/concepts/prefix_index.md.
template <class I>
concept prefix_index =
    std::constructible_from<I, unit_count, token_count, typename I::digest_policy_type> &&
    requires(I i, I const& c, std::span<std::byte const> scope, node_id root, std::span<token_id const> tokens,
             std::span<unit_id> out, std::span<unit_id const> units, unit_id unit, prefix_match const& match,
             prefix_pin& pin, prefix_pin const& held, unit_count n, std::span<std::uint8_t> doomed,
             void (*sink)(unit_id), std::span<std::uint32_t const> pins, std::int64_t place,
             void (*visit)(node_id, node_id, std::span<std::uint32_t const>, std::uint32_t)) {
      { i.open_root(scope) } -> std::same_as<node_id>;
      { i.close_root(root) } noexcept -> std::same_as<void>;
      { i.close_roots() } noexcept -> std::same_as<void>;
      { i.take_unit() } noexcept -> std::same_as<unit_id>;
      { i.share_unit(unit) } -> std::same_as<void>;
      { i.drop_unit(unit) } -> std::same_as<void>;
      { i.drop_units(units) } -> std::same_as<void>;
      { c.holders(unit) } -> std::same_as<std::uint32_t>;
      { c.published(unit) } noexcept -> std::same_as<bool>;
      { c.free_units() } noexcept -> std::same_as<unit_count>;
      { c.capacity() } noexcept -> std::same_as<unit_count>;
      { c.match(root, tokens, out) } noexcept -> std::same_as<prefix_match>;
      { c.would_pin(match) } noexcept -> std::same_as<unit_count>;
      { c.would_release(held, n) } noexcept -> std::same_as<unit_count>;
      { i.pin(match) } -> std::same_as<prefix_pin>;
      { i.pin_back(held, n) } -> std::same_as<prefix_pin>;
      { i.publish(pin, units) } -> std::same_as<publish_result>;
      { i.adopt(pin, unit) } -> std::same_as<void>;
      { i.release(std::move(pin)) } -> std::same_as<void>;
      { i.evict(out) } noexcept -> std::same_as<unit_count>;
      { i.remove(doomed, sink) } -> std::same_as<void>;
      { c.for_each_node(visit) } -> std::same_as<void>;
      { c.audit(pins) } -> std::same_as<std::string>;
      { i.tokens(unit) } noexcept -> std::same_as<std::span<token_id>>;
      { c.tokens(unit) } noexcept -> std::same_as<std::span<token_id const>>;
      { i.token_at(place) } noexcept -> std::same_as<token_id&>;
      { i.eviction() } noexcept;
      { c.evictable() } noexcept -> std::same_as<unit_count>;
      { c.cached() } noexcept -> std::same_as<unit_count>;
      { c.hash_collisions() } noexcept -> std::same_as<std::uint64_t>;
      { c.metadata_bytes() } noexcept -> std::same_as<byte_count>;
    };

} // namespace quire
