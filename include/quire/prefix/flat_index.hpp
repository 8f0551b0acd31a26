// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A flat index of chained digests: the second model of `prefix_index` (B1), one node per unit.
///
/// ```text
///   digest(root, u0) → unit 7 (parent: root)      digest(digest(root, u0), u1) → unit 2 (parent: 7)   …
/// ```
///
/// The digest says where to look; parent and tokens decide, so it is exact under any digest. A look-up digests the whole
/// prompt and reads one bucket per unit, where `run_tree` compares tokens and reads one bucket per run: it is simpler and
/// several times slower, and serves as an independent oracle for the tree.

#include <quire/core/contract.hpp>
#include <quire/core/types.hpp>
#include <quire/identity/concepts.hpp>
#include <quire/identity/xxh3_128_digest.hpp> // IWYU pragma: keep, a default
#include <quire/prefix/concepts.hpp>
#include <quire/prefix/detail/bucket_table.hpp>
#include <quire/prefix/detail/compare_tokens.hpp>
#include <quire/prefix/detail/idle_order.hpp>
#include <quire/prefix/detail/unit_store.hpp>
#include <quire/prefix/fwd.hpp>
#include <quire/prefix/lru_eviction.hpp> // IWYU pragma: keep, a default
#include <quire/prefix/node_id.hpp>
#include <quire/prefix/prefix_pin.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace quire {

/// One node per unit, found by chained digest. Models `prefix_index`.
/// \tparam Eviction models `eviction_policy`. \tparam Digest models `digest_policy`.
template <class Eviction, class Digest>
class flat_index : private pin_maker {
public:
  static_assert(eviction_policy<Eviction>,
                "flat_index: Eviction must model quire::eviction_policy (docs/concepts/eviction_policy.md)");
  static_assert(digest_policy<Digest>,
                "flat_index: Digest must model quire::digest_policy (docs/concepts/digest_policy.md)");

  /// How digests are computed.
  using digest_policy_type = Digest;

  /// An empty index over the units [0, \p units) of \p unit_tokens tokens each. \throws config_error if either is 0.
  flat_index(unit_count units, token_count unit_tokens, Digest digest = {})
      : store_{units, unit_tokens, digest}, nodes_(std::size_t{units.value()} + 1), table_{units.value()},
        order_{node_count{units.value()}} {
    for (auto n = units.value(); n >= 1; --n) { free_node(n); }
  }
  flat_index(flat_index const&) = delete;
  auto operator=(flat_index const&) -> flat_index& = delete;
  ~flat_index() = default;

  /// See `run_tree::open_root`.
  [[nodiscard]] auto open_root(std::span<std::byte const> scope) -> node_id { return store_.open_root(scope); }
  /// See `run_tree::close_root`.
  auto close_root(node_id root) noexcept -> void {
    store_.close_root(root);
    order_.sweep_again();
  }
  /// See `run_tree::close_roots`.
  auto close_roots() noexcept -> void {
    store_.close_roots();
    order_.sweep_again();
  }
  /// See `run_tree::take_unit`.
  [[nodiscard]] auto take_unit() noexcept -> unit_id { return store_.take(); }
  /// See `run_tree::share_unit`.
  auto share_unit(unit_id unit) -> void { store_.share(unit); }
  /// See `run_tree::drop_unit`.
  auto drop_unit(unit_id unit) -> void { store_.drop(unit); }
  /// One sequence less holds each of \p units.
  auto drop_units(std::span<unit_id const> units) -> void { store_.drop(units); }
  /// See `run_tree::holders`.
  [[nodiscard]] auto holders(unit_id unit) const -> std::uint32_t { return store_.holders(unit); }
  /// True if \p unit stands in the index.
  [[nodiscard]] auto published(unit_id unit) const noexcept -> bool { return store_.published(unit); }
  /// [units] that nobody uses.
  [[nodiscard]] auto free_units() const noexcept -> unit_count { return store_.free(); }
  /// [units] in total.
  [[nodiscard]] auto capacity() const noexcept -> unit_count {
    return unit_count{static_cast<std::uint32_t>(store_.units())};
  }

  /// See `run_tree::match`. \complexity O(units) digests and bucket reads
  [[nodiscard]] auto match(node_id root, std::span<token_id const> tokens, std::span<unit_id> out) const noexcept
      -> prefix_match {
    auto const unit_tokens = store_.unit_tokens();
    auto const total = static_cast<std::uint32_t>(std::min(tokens.size() / unit_tokens, out.size()));
    auto here = root.value();
    auto digest = store_.root_digest(root);
    std::uint32_t done = 0;
    for (; done < total; ++done) {
      auto const unit = tokens.subspan(std::size_t{done} * unit_tokens, unit_tokens);
      digest = store_.policy().chain(digest, unit);
      auto const child = find_child<counting>(here, 0, digest, unit.data());
      if (child == 0) { break; }
      out[done] = unit_of(child);
      here = child;
    }
    return {unit_count{done}, node_id{here}, done > 0 ? 1U : 0U, root};
  }
  /// See `run_tree::would_pin`.
  [[nodiscard]] auto would_pin(prefix_match const& match) const noexcept -> unit_count {
    if constexpr (!detail::evicts<Eviction>) { return {}; }
    std::uint32_t n = 0;
    for (auto at = match.node.value(); !root(at) && nodes_[at].busy == 0; at = nodes_[at].parent) { ++n; }
    return unit_count{n};
  }
  /// See `run_tree::would_release`.
  [[nodiscard]] auto would_release(prefix_pin const& held, unit_count back) const noexcept -> unit_count {
    if constexpr (!detail::evicts<Eviction>) { return {}; }
    std::uint32_t n = 0;
    for (auto at = held.node().value(); n < back.value() && !root(at) && nodes_[at].busy == 1; at = nodes_[at].parent) {
      ++n;
    }
    return unit_count{n};
  }
  /// See `run_tree::pin`.
  [[nodiscard]] auto pin(prefix_match const& match) -> prefix_pin {
    auto const n = match.node.value();
    acquire(n);
    if constexpr (Eviction::counts_uses) {
      for (auto at = n; !root(at); at = nodes_[at].parent) { order_.policy().use(node_id{at}); }
    }
    return make_pin(match.node, match.root, false);
  }
  /// See `run_tree::pin_back`.
  [[nodiscard]] auto pin_back(prefix_pin const& held, unit_count back) -> prefix_pin {
    QUIRE_EXPECTS(static_cast<bool>(held));
    auto n = held.node().value();
    for (auto left = back.value(); left > 0; --left) {
      QUIRE_EXPECTS(!root(n));
      n = nodes_[n].parent;
    }
    acquire(n);
    return make_pin(node_id{n}, held.root(), false);
  }
  /// See `run_tree::publish`.
  auto publish(prefix_pin& pin, std::span<unit_id const> units) -> publish_result {
    QUIRE_EXPECTS(static_cast<bool>(pin));
    std::uint32_t done = 0;
    std::uint32_t holders = 1;
    for (auto const unit : units) {
      auto const here = pin.node().value();
      auto const digest = store_.chain(path_digest(here), unit.value());
      if (auto const twin = find_child(here, store_.label(unit.value()), digest, store_.of(unit.value()).data());
          twin != 0) {
        auto const idle = nodes_[twin].busy == 0;
        acquire(twin);
        step_down(pin, twin, false);
        auto& there = nodes_[twin].unit;
        if (!idle) { return {unit_count{done}, unit_id{there}, unit_id::none()}; }
        auto const replaced = std::exchange(there, unit.value());
        nodes_[twin].busy += store_.publish(unit.value()) - 1;
        store_.give(replaced);
        return {unit_count{done + 1}, unit_id::none(), unit_id{replaced}};
      }
      auto const n = new_node();
      nodes_[n] = {here, unit.value(), 1, 0, false, {}, digest};
      table_.insert(place(digest), n);
      if (!root(here)) { ++nodes_[here].children; }
      order_.policy().create(node_id{n}, node_id{here});
      ++cached_;
      move_pin(pin, node_id{n}, true); // the parent's pin has become its busy child
      holders = store_.publish(unit.value());
      ++done;
    }
    if (holders > 1) { nodes_[pin.node().value()].busy += holders - 1; }
    return {unit_count{done}, unit_id::none(), unit_id::none()};
  }
  /// See `run_tree::adopt`.
  auto adopt(prefix_pin& pin, unit_id unit) -> void {
    auto const tokens = store_.of(unit.value());
    auto const digest = store_.chain(path_digest(pin.node().value()), unit.value());
    auto const n = find_child(pin.node().value(), store_.label(unit.value()), digest, tokens.data());
    QUIRE_EXPECTS(n != 0 && nodes_[n].unit == unit.value() && nodes_[n].busy > 0);
    step_down(pin, n, false);
  }
  /// See `run_tree::release`.
  auto release(prefix_pin&& pin) -> void {
    QUIRE_EXPECTS(static_cast<bool>(pin));
    auto const closed = store_.closed(pin.root());
    auto at = take_pin(pin).value();
    for (; !root(at) && --nodes_[at].busy == 0; at = nodes_[at].parent) {
      ++evictable_;
      if (closed && nodes_[at].children == 0) {
        order_.enter_closed(*this, node_id{at});
      } else if (in_order(at)) {
        order_.enter(*this, node_id{at});
      }
    }
  }
  /// See `run_tree::evict`.
  auto evict(std::span<unit_id> out) noexcept -> unit_count {
    std::uint32_t got = 0;
    for (; got < out.size(); ++got) {
      auto const victim = order_.victim(*this, static_cast<number>(nodes_.size()), [this](number n) {
        return live(n) && nodes_[n].busy == 0 && nodes_[n].children == 0 && unreachable(n);
      });
      if (!victim) { break; }
      out[got] = unit_of(victim.value());
      remove_node(victim.value());
    }
    return unit_count{got};
  }
  /// See `run_tree::remove`.
  template <class Sink>
  auto remove(std::span<std::uint8_t> doomed, Sink sink) -> void {
    auto const goes = [&](number n) { return !root(n) && doomed[nodes_[n].unit] != 0; };
    for (auto again = true; std::exchange(again, false);) { // whatever hangs below a doomed unit goes with it
      for (number n = 1; n < nodes_.size(); ++n) {
        if (live(n) && !goes(n) && goes(nodes_[n].parent)) { again = (doomed[nodes_[n].unit] = 1) != 0; }
      }
    }
    for (auto again = true; std::exchange(again, false);) { // deepest first
      for (number n = 1; n < nodes_.size(); ++n) {
        if (!live(n) || !goes(n) || nodes_[n].children != 0) { continue; }
        QUIRE_EXPECTS(nodes_[n].busy == 0);
        sink(unit_of(n));
        remove_node(n);
        again = true;
      }
    }
  }
  /// Tokens of \p unit: written by its one writer, compared once it is published.
  [[nodiscard]] auto tokens(unit_id unit) noexcept -> std::span<token_id> { return store_.of(unit.value()); }
  /// Tokens of \p unit.
  [[nodiscard]] auto tokens(unit_id unit) const noexcept -> std::span<token_id const> {
    return store_.of(unit.value());
  }
  /// The token at `place` = unit · unit_tokens + offset. \pre its unit has one writer, the caller.
  [[nodiscard]] auto token_at(std::int64_t place) noexcept -> token_id& { return store_.at(place); }
  /// Chained digest of the pinned path. \complexity O(1): look-ups need it of every unit
  [[nodiscard]] auto digest(prefix_pin const& pin) -> typename Digest::digest_type {
    return path_digest(pin.node().value());
  }
  /// [units] published and not pinned.
  [[nodiscard]] auto evictable() const noexcept -> unit_count {
    return unit_count{detail::evicts<Eviction> ? evictable_ : 0};
  }
  /// [units] published.
  [[nodiscard]] auto cached() const noexcept -> unit_count { return unit_count{cached_}; }
  /// How often `match` met an entry that had the hash it looked for and other tokens, or another parent.
  [[nodiscard]] auto hash_collisions() const noexcept -> std::uint64_t { return collisions_; }
  /// Nodes in use, one per cached unit.
  [[nodiscard]] auto nodes() const noexcept -> node_count { return node_count{cached_}; }
  /// The eviction policy, for those that must be told something.
  [[nodiscard]] auto eviction() noexcept -> Eviction& { return order_.policy(); }
  /// Bytes of metadata beside tokens.
  [[nodiscard]] auto metadata_bytes() const noexcept -> byte_count {
    return byte_count{nodes_.size() * sizeof(node_type) + table_.bytes() + store_.metadata_bytes()};
  }
  /// Links of \p node for the eviction policy.
  [[nodiscard]] auto hook(node_id node) noexcept -> order_hook& { return nodes_[node.value()].links; }
  /// See `run_tree::closed_mark`.
  [[nodiscard]] auto closed_mark(node_id node) noexcept -> bool& { return nodes_[node.value()].closed; }

  /// See `run_tree::audit`.
  [[nodiscard]] auto audit(std::span<std::uint32_t const> pins) const -> std::string {
    std::vector<std::uint32_t> children(nodes_.size());
    std::vector<std::uint32_t> busy_children(nodes_.size());
    std::size_t cached = 0;
    std::size_t evictable = 0;
    for (std::uint32_t n = 1; n < nodes_.size(); ++n) {
      auto const& node = nodes_[n];
      if (!live(n)) { continue; }
      auto const unit = node.unit;
      auto const name = "prefix unit " + std::to_string(unit);
      ++cached;
      evictable += node.busy == 0 ? 1U : 0U;
      if (!store_.published(unit_id{unit})) { return name + ": it is not published"; }
      auto const leaves_first = node.busy == 0 && node.children == 0 && unreachable(n);
      if (node.closed && !leaves_first) { return name + ": leaves first, and need not"; }
      if (!node.closed && leaves_first && !order_.sweeping()) { return name + ": leaves first, and nobody knows"; }
      if (!root(node.parent)) {
        if (!live(node.parent)) { return name + ": its parent is not cached"; }
        ++children[node.parent];
        busy_children[node.parent] += node.busy > 0 ? 1U : 0U;
      }
      auto const tokens = store_.of(unit);
      if (!(store_.policy().chain(path_digest(node.parent), tokens) == node.digest)) {
        return name + ": changed after it was published";
      }
      if (find_child(node.parent, store_.label(unit), node.digest, tokens.data()) != n) {
        return name + ": not found by its own key, or cached twice";
      }
    }
    for (std::uint32_t n = 1; n < nodes_.size(); ++n) {
      if (!live(n)) { continue; }
      auto const name = "prefix unit " + std::to_string(nodes_[n].unit);
      if (nodes_[n].children != children[n]) { return name + ": wrong number of children"; }
      if (nodes_[n].busy != busy_children[n] + (n < pins.size() ? pins[n] : 0U)) {
        return name + ": busy count differs from pins and busy children";
      }
    }
    if (cached != cached_) { return "flat index: cached units are miscounted"; }
    if (evictable != evictable_) { return "flat index: evictable units are miscounted"; }
    if (cached != table_.count()) { return "flat index: the table holds other entries"; }
    return store_.audit();
  }
  /// See `run_tree::for_each_node`.
  template <class Visit>
  auto for_each_node(Visit visit) const -> void {
    for (std::uint32_t n = 1; n < nodes_.size(); ++n) {
      if (!live(n)) { continue; }
      auto const& unit = nodes_[n].unit;
      visit(node_id{n}, node_id{nodes_[n].parent}, std::span<std::uint32_t const>{&unit, 1}, nodes_[n].busy);
    }
  }

private:
  using number = std::uint32_t;
  struct node_type {
    number parent = 0; // 0 = not in use
    std::uint32_t unit = 0;
    std::uint32_t busy = 0;
    std::uint32_t children = 0;
    bool closed = false; // an idle leaf below a closed root, in the list of those
    order_hook links;
    typename Digest::digest_type digest{};
  };

  [[nodiscard]] static auto root(number n) noexcept -> bool { return (n & detail::root_bit) != 0; }
  [[nodiscard]] auto unit_of(number n) const noexcept -> unit_id { return unit_id{nodes_[n].unit}; }
  [[nodiscard]] auto new_node() noexcept -> number {
    auto const n = unused_;
    unused_ = nodes_[n].links.next;
    return n;
  }
  auto free_node(number n) noexcept -> void {
    nodes_[n] = {};
    nodes_[n].links.next = unused_;
    unused_ = n;
  }
  [[nodiscard]] auto live(number n) const noexcept -> bool { return nodes_[n].parent != 0; }
  [[nodiscard]] auto path_digest(number n) const noexcept -> typename Digest::digest_type {
    return root(n) ? store_.root_digest(node_id{n}) : nodes_[n].digest;
  }
  [[nodiscard]] static auto place(typename Digest::digest_type const& digest) noexcept -> std::uint32_t {
    std::uint32_t hash = 0;
    std::memcpy(&hash, &digest, std::min(sizeof hash, sizeof digest));
    return hash;
  }
  static constexpr bool counting = true; // collisions, in look-ups for others only
  template <bool Counting = false>
  [[nodiscard]] auto find_child(number parent, std::uint32_t label, typename Digest::digest_type const& digest,
                                token_id const* first) const noexcept -> number {
    auto const hash = place(digest);
    return table_.find(hash, [&](number n) {
      if (place(nodes_[n].digest) != hash) { return false; }
      auto const unit = nodes_[n].unit;
      auto const same = nodes_[n].parent == parent && store_.label(unit) == label &&
                        detail::equal_tokens(first, store_.of(unit).data(), store_.unit_tokens());
      if constexpr (Counting) { collisions_ += same ? 0U : 1U; }
      return same;
    });
  }
  [[nodiscard]] auto in_order(number n) const noexcept -> bool {
    return !Eviction::leaves_only || nodes_[n].children == 0;
  }
  auto acquire(number n) noexcept -> void {
    for (; !root(n) && nodes_[n].busy++ == 0; n = nodes_[n].parent) {
      --evictable_;
      leave_order(n);
    }
  }
  auto leave_order(number n) noexcept -> void {
    if (nodes_[n].closed || in_order(n)) { order_.leave(*this, node_id{n}); }
  }
  [[nodiscard]] auto unreachable(number n) const noexcept -> bool {
    while (!root(n)) { n = nodes_[n].parent; }
    return store_.closed(node_id{n});
  }
  auto step_down(prefix_pin& pin, number child, bool owned) noexcept -> void {
    if (auto const here = pin.node().value(); !root(here)) { --nodes_[here].busy; }
    move_pin(pin, node_id{child}, owned);
  }
  auto remove_node(number v) noexcept -> void {
    auto& node = nodes_[v];
    auto const p = node.parent;
    auto const closed = node.closed;
    --evictable_;
    --cached_;
    table_.erase(place(node.digest), v);
    leave_order(v);
    store_.give(node.unit);
    free_node(v);
    if (root(p)) { return; }
    auto& parent = nodes_[p];
    if (--parent.children > 0 || parent.busy > 0) { return; }
    if (closed || (order_.sweeping() && unreachable(p))) { // the walk may have passed it
      order_.move_to_closed(*this, node_id{p});
    } else if (Eviction::leaves_only) {
      order_.enter(*this, node_id{p});
    }
  }

  detail::unit_store<Digest> store_;
  std::vector<node_type> nodes_; // [0] is never used
  detail::bucket_table table_;
  detail::idle_order<Eviction> order_;
  number unused_ = 0;
  std::uint32_t cached_ = 0;
  mutable std::uint64_t collisions_ = 0; // looking up is logically const
  std::uint32_t evictable_ = 0;
};

} // namespace quire
