// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A flat index of chained block digests: the second model of `prefix_index` (B1), one node per block.
///
/// ```text
///   digest(root, b0) → block 7 (parent: root)      digest(digest(root, b0), b1) → block 2 (parent: 7)   …
/// ```
///
/// The digest says where to look; parent and tokens decide, so it is exact under any digest. A look-up digests the whole
/// prompt and reads one bucket per block, where `run_tree` compares tokens and reads one bucket per run: it is simpler and
/// several times slower, and serves as an independent oracle for the tree.

#include <quire/core/contract.hpp>
#include <quire/core/types.hpp>
#include <quire/identity/concepts.hpp>
#include <quire/identity/xxh3_128_digest.hpp> // IWYU pragma: keep, a default
#include <quire/prefix/concepts.hpp>
#include <quire/prefix/detail/bucket_table.hpp>
#include <quire/prefix/detail/compare_tokens.hpp>
#include <quire/prefix/detail/token_store.hpp>
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

/// One node per block, found by chained digest. Models `prefix_index`.
/// \tparam Eviction models `eviction_policy`. \tparam Digest models `digest_policy`.
template <class Eviction, class Digest>
class flat_index : private pin_maker {
public:
  static_assert(eviction_policy<Eviction>,
                "flat_index: Eviction must model quire::eviction_policy (docs/concepts/eviction_policy.md)");
  static_assert(digest_policy<Digest>,
                "flat_index: Digest must model quire::digest_policy (docs/concepts/digest_policy.md)");

  /// An empty index over the blocks [0, \p blocks) of \p block_tokens tokens each. \throws config_error if either is 0.
  flat_index(block_count blocks, token_count block_tokens, Digest digest = {})
      : store_{checked(blocks), block_tokens, digest}, nodes_(std::size_t{blocks.value()} + 1), table_{blocks.value()},
        order_{node_count{blocks.value()}} {
    for (auto n = blocks.value(); n >= 1; --n) { free_node(n); }
  }
  flat_index(flat_index const&) = delete;
  auto operator=(flat_index const&) -> flat_index& = delete;
  ~flat_index() = default;

  /// See `run_tree::open_root`.
  [[nodiscard]] auto open_root(std::span<std::byte const> scope) -> node_id { return store_.open_root(scope); }

  /// See `run_tree::match`. \complexity O(blocks) digests and bucket reads
  [[nodiscard]] auto match(node_id root, std::span<token_id const> tokens, std::span<block_id> out) const noexcept
      -> prefix_match {
    auto const block_tokens = store_.block_tokens();
    auto const total = static_cast<std::uint32_t>(std::min(tokens.size() / block_tokens, out.size()));
    auto here = root.value();
    auto digest = store_.root_digest(root);
    std::uint32_t done = 0;
    for (; done < total; ++done) {
      auto const block = tokens.subspan(std::size_t{done} * block_tokens, block_tokens);
      digest = store_.policy().chain(digest, block);
      auto const child = find_child<counting>(here, digest, block.data());
      if (child == 0) { break; }
      out[done] = block_id{nodes_[child].block};
      here = child;
    }
    return {block_count{done}, node_id{here}, done > 0 ? 1U : 0U};
  }
  /// See `run_tree::would_pin`.
  [[nodiscard]] auto would_pin(prefix_match const& match) const noexcept -> block_count {
    std::uint32_t n = 0;
    for (auto at = match.node.value(); !root(at) && nodes_[at].busy == 0; at = nodes_[at].parent) { ++n; }
    return block_count{n};
  }
  /// See `run_tree::would_release`.
  [[nodiscard]] auto would_release(prefix_pin const& held, block_count back) const noexcept -> block_count {
    std::uint32_t n = 0;
    for (auto at = held.node().value(); n < back.value() && !root(at) && nodes_[at].busy == 1; at = nodes_[at].parent) {
      ++n;
    }
    return block_count{n};
  }
  /// See `run_tree::pin`.
  [[nodiscard]] auto pin(prefix_match const& match) -> prefix_pin {
    auto const n = match.node.value();
    acquire(n);
    if constexpr (Eviction::counts_uses) {
      for (auto at = n; !root(at); at = nodes_[at].parent) { order_.use(node_id{at}); }
    }
    return make_pin(match.node, false);
  }
  /// See `run_tree::pin_back`.
  [[nodiscard]] auto pin_back(prefix_pin const& held, block_count back) -> prefix_pin {
    QUIRE_EXPECTS(static_cast<bool>(held));
    auto n = held.node().value();
    for (auto left = back.value(); left > 0; --left) {
      QUIRE_EXPECTS(!root(n));
      n = nodes_[n].parent;
    }
    acquire(n);
    return make_pin(node_id{n}, false);
  }
  /// See `run_tree::publish`.
  auto publish(prefix_pin& pin, std::span<block_id const> blocks) -> publish_result {
    QUIRE_EXPECTS(static_cast<bool>(pin));
    std::uint32_t done = 0;
    for (auto const block : blocks) {
      auto const here = pin.node().value();
      auto const digest = store_.chain(path_digest(here), block.value());
      if (auto const twin = find_child(here, digest, store_.of(block.value()).data()); twin != 0) {
        auto const idle = nodes_[twin].busy == 0;
        acquire(twin);
        step_down(pin, twin, false);
        if (!idle) { return {block_count{done}, true, block_id{nodes_[twin].block}}; }
        return {block_count{done + 1}, false, {}, block_id{std::exchange(nodes_[twin].block, block.value())}};
      }
      auto const n = new_node();
      nodes_[n] = {here, block.value(), 1, 0, 0, {}};
      table_.insert(place(digest), n);
      if (!root(here)) { ++nodes_[here].children; }
      order_.create(node_id{n}, node_id{here});
      ++cached_;
      move_pin(pin, node_id{n}, true); // the parent's pin has become its busy child
      ++done;
    }
    return {block_count{done}, false};
  }
  /// See `run_tree::hold`.
  auto hold(prefix_pin const& held, std::uint32_t holds) -> void {
    QUIRE_EXPECTS(!root(held.node().value()));
    nodes_[held.node().value()].busy += holds;
  }
  /// See `run_tree::adopt`.
  auto adopt(prefix_pin& pin, block_id block) -> void {
    auto const n = find_child(pin.node().value(), store_.digest(block.value()), store_.of(block.value()).data());
    QUIRE_EXPECTS(n != 0 && nodes_[n].block == block.value() && nodes_[n].busy > 0);
    step_down(pin, n, false);
  }
  /// See `run_tree::release`.
  auto release(prefix_pin&& pin) -> void {
    QUIRE_EXPECTS(static_cast<bool>(pin));
    auto at = take_pin(pin).value();
    for (; !root(at) && --nodes_[at].busy == 0; at = nodes_[at].parent) {
      ++evictable_;
      if (in_order(at)) { order_.enter(*this, node_id{at}); }
    }
  }
  /// See `run_tree::reserve_claims`.
  auto reserve_claims(block_count blocks) -> void { claims_.reserve(claims_.size() + blocks.value()); }
  /// See `run_tree::claim`.
  auto claim(std::span<block_id> out) noexcept -> block_count {
    std::uint32_t got = 0;
    for (; got < out.size(); ++got) {
      auto const victim = order_.victim();
      if (!victim) { break; }
      auto const v = victim.value();
      out[got] = block_id{nodes_[v].block};
      claims_.push_back(v);
      condemn(v);
    }
    return block_count{got};
  }
  /// See `run_tree::confirm`.
  auto confirm() noexcept -> void {
    for (auto const v : claims_) { free_node(v); }
    claims_.clear();
  }
  /// See `run_tree::restore`.
  template <class Orphan>
  auto restore(Orphan orphan) -> void {
    for (auto i = claims_.size(); i-- > 0;) {
      if (!restore_node(claims_[i])) { orphan(block_id{nodes_[claims_[i]].block}); }
    }
    for (auto const v : claims_) {
      if (nodes_[v].condemned != 0) { free_node(v); }
    }
    claims_.clear();
  }
  /// See `run_tree::remove`.
  template <class Sink>
  auto remove(std::span<std::uint8_t> doomed, Sink sink) -> void {
    QUIRE_EXPECTS(claims_.empty());
    auto const goes = [&](number n) { return !root(n) && doomed[nodes_[n].block] != 0; };
    for (auto again = true; std::exchange(again, false);) { // whatever hangs below a doomed block goes with it
      for (number n = 1; n < nodes_.size(); ++n) {
        if (live(n) && !goes(n) && goes(nodes_[n].parent)) { again = (doomed[nodes_[n].block] = 1) != 0; }
      }
    }
    for (auto again = true; std::exchange(again, false);) { // deepest first
      for (number n = 1; n < nodes_.size(); ++n) {
        if (!live(n) || !goes(n) || nodes_[n].children != 0) { continue; }
        QUIRE_EXPECTS(nodes_[n].busy == 0);
        condemn(n);
        sink(block_id{nodes_[n].block});
        free_node(n);
        again = true;
      }
    }
  }
  /// See `run_tree::relocate`.
  auto relocate(std::span<block_id const> to) -> void {
    QUIRE_EXPECTS(claims_.empty());
    for (std::uint32_t b = 0; b < to.size(); ++b) {
      if (to[b]) { store_.move(b, to[b].value()); }
    }
    for (auto& node : nodes_) {
      if (node.parent != 0 && to[node.block]) { node.block = to[node.block].value(); }
    }
  }
  /// Tokens of \p block: written by its one writer, compared once it is published.
  [[nodiscard]] auto tokens(block_id block) noexcept -> std::span<token_id> { return store_.of(block.value()); }
  /// Tokens of \p block.
  [[nodiscard]] auto tokens(block_id block) const noexcept -> std::span<token_id const> {
    return store_.of(block.value());
  }
  /// The token at `slot` = block · p_b + offset. \pre its block has one writer, the caller.
  [[nodiscard]] auto token_at(std::int64_t slot) noexcept -> token_id& { return store_.at(slot); }
  /// Chained digest of a published \p block.
  [[nodiscard]] auto digest(block_id block) const noexcept -> typename Digest::digest_type const& {
    return store_.digest(block.value());
  }
  /// [blocks] published and not pinned.
  [[nodiscard]] auto evictable() const noexcept -> block_count { return block_count{evictable_}; }
  /// [blocks] published.
  [[nodiscard]] auto cached() const noexcept -> block_count { return block_count{cached_}; }
  /// How often `match` met an entry that had the hash it looked for and other tokens, or another parent (case 2).
  [[nodiscard]] auto hash_collisions() const noexcept -> std::uint64_t { return collisions_; }
  /// Nodes in use, one per cached block.
  [[nodiscard]] auto nodes() const noexcept -> node_count { return node_count{cached_}; }
  /// The eviction policy, for those that must be told something.
  [[nodiscard]] auto eviction() noexcept -> Eviction& { return order_; }
  /// Bytes of metadata beside tokens and digests.
  [[nodiscard]] auto metadata_bytes() const noexcept -> byte_count {
    return byte_count{nodes_.size() * sizeof(node_type) + table_.bytes()};
  }
  /// Links of \p node for the eviction policy.
  [[nodiscard]] auto hook(node_id node) noexcept -> order_hook& { return nodes_[node.value()].links; }

  /// See `run_tree::audit`.
  [[nodiscard]] auto audit(std::span<std::uint32_t const> pins) const -> std::string {
    std::vector<std::uint32_t> children(nodes_.size());
    std::vector<std::uint32_t> busy_children(nodes_.size());
    std::size_t cached = 0;
    std::size_t evictable = 0;
    for (std::uint32_t n = 1; n < nodes_.size(); ++n) {
      auto const& node = nodes_[n];
      if (!live(n)) { continue; }
      auto const block = node.block;
      auto const name = "prefix block " + std::to_string(block);
      ++cached;
      evictable += node.busy == 0 ? 1U : 0U;
      if (!root(node.parent)) {
        if (!live(node.parent)) { return name + ": its parent is not cached"; }
        ++children[node.parent];
        busy_children[node.parent] += node.busy > 0 ? 1U : 0U;
      }
      auto const tokens = store_.of(block);
      if (!(store_.policy().chain(path_digest(node.parent), tokens) == store_.digest(block))) {
        return name + ": changed after it was published";
      }
      if (find_child(node.parent, store_.digest(block), tokens.data()) != n) {
        return name + ": not found by its own key, or cached twice";
      }
    }
    for (std::uint32_t n = 1; n < nodes_.size(); ++n) {
      if (!live(n)) { continue; }
      auto const name = "prefix block " + std::to_string(nodes_[n].block);
      if (nodes_[n].children != children[n]) { return name + ": wrong number of children"; }
      if (nodes_[n].busy != busy_children[n] + (n < pins.size() ? pins[n] : 0U)) {
        return name + ": busy count differs from pins and busy children";
      }
    }
    if (cached != cached_) { return "flat index: cached blocks are miscounted"; }
    if (evictable != evictable_) { return "flat index: evictable blocks are miscounted"; }
    if (cached != table_.count()) { return "flat index: the table holds other entries"; }
    return {};
  }
  /// See `run_tree::for_each_node`.
  template <class Visit>
  auto for_each_node(Visit visit) const -> void {
    for (std::uint32_t n = 1; n < nodes_.size(); ++n) {
      if (!live(n)) { continue; }
      visit(node_id{n}, node_id{nodes_[n].parent}, std::span<std::uint32_t const>{&nodes_[n].block, 1}, nodes_[n].busy);
    }
  }

private:
  using number = std::uint32_t;
  struct node_type {
    number parent = 0; // 0 = not in use
    std::uint32_t block = 0;
    std::uint32_t busy = 0;
    std::uint32_t children = 0;
    std::uint32_t condemned = 0;
    order_hook links;
  };

  static auto checked(block_count blocks) -> block_count {
    if (blocks.value() == 0) { throw config_error{"prefix index: 0 blocks, it needs at least 1"}; }
    if (blocks.value() >= detail::root_bit - 1) {
      throw config_error{"prefix index: more than 2^31 - 2 blocks: use larger blocks"};
    }
    return blocks;
  }
  [[nodiscard]] static auto root(number n) noexcept -> bool { return (n & detail::root_bit) != 0; }
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
  [[nodiscard]] auto live(number n) const noexcept -> bool { return nodes_[n].parent != 0 && nodes_[n].condemned == 0; }
  [[nodiscard]] auto path_digest(number n) const noexcept -> typename Digest::digest_type {
    return root(n) ? store_.root_digest(node_id{n}) : store_.digest(nodes_[n].block);
  }
  [[nodiscard]] static auto place(typename Digest::digest_type const& digest) noexcept -> std::uint32_t {
    std::uint32_t hash = 0;
    std::memcpy(&hash, &digest, std::min(sizeof hash, sizeof digest));
    return hash;
  }
  static constexpr bool counting = true; // collisions, in look-ups for others only
  template <bool Counting = false>
  [[nodiscard]] auto find_child(number parent, typename Digest::digest_type const& digest,
                                token_id const* block) const noexcept -> number {
    return table_.find(place(digest), [&](number n) {
      auto const same = nodes_[n].parent == parent &&
                        detail::equal_tokens(block, store_.of(nodes_[n].block).data(), store_.block_tokens());
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
      if (in_order(n)) { order_.leave(*this, node_id{n}); }
    }
  }
  auto step_down(prefix_pin& pin, number child, bool owned) noexcept -> void {
    if (auto const here = pin.node().value(); !root(here)) { --nodes_[here].busy; }
    move_pin(pin, node_id{child}, owned);
  }
  auto condemn(number v) noexcept -> void {
    auto& node = nodes_[v];
    --evictable_;
    --cached_;
    node.condemned = 1;
    table_.erase(place(store_.digest(node.block)), v);
    order_.leave(*this, node_id{v});
    if (root(node.parent)) { return; }
    auto& parent = nodes_[node.parent];
    --parent.children;
    if (Eviction::leaves_only && parent.children == 0 && parent.busy == 0) {
      order_.enter(*this, node_id{node.parent});
    }
  }
  [[nodiscard]] auto restore_node(number v) noexcept -> bool {
    auto& node = nodes_[v];
    auto const p = node.parent;
    if (!root(p) && nodes_[p].condemned != 0) { return false; }
    if (find_child(p, store_.digest(node.block), store_.of(node.block).data()) != 0) { return false; }
    if (!root(p)) {
      if (Eviction::leaves_only && nodes_[p].children == 0 && nodes_[p].busy == 0) { order_.leave(*this, node_id{p}); }
      ++nodes_[p].children;
    }
    node.condemned = 0;
    table_.insert(place(store_.digest(node.block)), v);
    order_.restore(*this, node_id{v});
    ++evictable_;
    ++cached_;
    return true;
  }

  detail::token_store<Digest> store_;
  std::vector<node_type> nodes_; // [0] is never used
  detail::bucket_table table_;
  [[no_unique_address]] Eviction order_;
  number unused_ = 0;
  std::uint32_t cached_ = 0;
  mutable std::uint64_t collisions_ = 0; // looking up is logically const
  std::uint32_t evictable_ = 0;
  std::vector<number> claims_;
};

} // namespace quire
