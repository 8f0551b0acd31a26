// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A verified prefix tree whose nodes are *runs* of blocks (B1).
///
/// ```text
///   root(scope) ──┬── [ 7 8 9 2 ]──┬── [ 4 ]          a node = up to 512 blocks in a row,
///                 │                └── [ 1 6 ]        its block ids contiguous in an extent
///                 └── [ 3 ]
///
///   node (32 bytes)  parent · hash of first block · place, order, length · busy · children · order links
///   tokens, digests  dense by block id, beside the tree
/// ```
///
/// *Exact*: a hit compares the tokens of every block and the parent of every node; hashes only say where to look.
/// *Fast*: a look-up streams the prompt once against stored tokens and touches one hash bucket per node.
///
/// A node splits only where a pin ends inside it. The *suffix* keeps the node's number, so children, pins and keys stay
/// valid, and every run has exactly one last use. It merges back at release when it can.
/// `busy` = pins that end here + busy children: pinning walks up only to the first ancestor that is already busy.
///
/// Eviction is two-phase. `claim` makes victims unmatchable, `confirm` makes them final, `restore` puts them back.

#include <quire/core/contract.hpp>
#include <quire/core/types.hpp>
#include <quire/identity/concepts.hpp>
#include <quire/identity/xxh3_128_digest.hpp> // IWYU pragma: keep, a default
#include <quire/prefix/concepts.hpp>
#include <quire/prefix/detail/aligned_vector.hpp>
#include <quire/prefix/detail/bucket_table.hpp>
#include <quire/prefix/detail/compare_tokens.hpp>
#include <quire/prefix/detail/extent_arena.hpp>
#include <quire/prefix/detail/token_store.hpp>
#include <quire/prefix/fwd.hpp>
#include <quire/prefix/lru_eviction.hpp> // IWYU pragma: keep, a default
#include <quire/prefix/node_id.hpp>
#include <quire/prefix/prefix_match.hpp>
#include <quire/prefix/prefix_pin.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace quire {

/// The default prefix index. Models `prefix_index`.
/// \tparam Eviction models `eviction_policy`. \tparam Digest models `digest_policy`.
template <class Eviction, class Digest>
class run_tree : private pin_maker {
public:
  static_assert(eviction_policy<Eviction>,
                "run_tree: Eviction must model quire::eviction_policy (docs/concepts/eviction_policy.md)");
  static_assert(digest_policy<Digest>,
                "run_tree: Digest must model quire::digest_policy (docs/concepts/digest_policy.md)");
  static_assert(Eviction::max_run >= 1 && Eviction::max_run <= (1U << detail::extent_arena::max_order),
                "run_tree: max_run must lie in [1, 512]");

  /// An empty tree over the blocks [0, \p blocks) of \p block_tokens tokens each.
  /// \throws config_error if either is 0 or there are more than 2^31 - 2 blocks.
  /// \complexity O(blocks) time; 51.2 bytes a block beside tokens and digests
  run_tree(block_count blocks, token_count block_tokens, Digest digest = {})
      : store_{checked(blocks), block_tokens, digest}, nodes_(std::size_t{blocks.value()} + 1), table_{blocks.value()},
        extents_{blocks.value() + blocks.value() / 2}, order_{node_count{blocks.value()}} {
    for (auto n = blocks.value(); n >= 1; --n) { free_node(n); }
  }
  run_tree(run_tree const&) = delete;
  auto operator=(run_tree const&) -> run_tree& = delete;
  ~run_tree() = default;

  /// Starts the empty prefix of one scope in one epoch. \param scope canonical bytes of the scope key.
  [[nodiscard]] auto open_root(std::span<std::byte const> scope) -> node_id { return store_.open_root(scope); }

  /// Finds the longest resident prefix of full blocks of \p tokens below \p root and writes its block ids.
  /// Nothing changes, not even the order of eviction.
  /// \param out receives the ids, as far as it reaches. \returns the match; pin it before anything else happens.
  /// \complexity one comparison of the matching tokens + O(nodes) bucket reads
  /// \source S21, S26 (1), B1
  [[nodiscard]] auto match(node_id root, std::span<token_id const> tokens, std::span<block_id> out) const noexcept
      -> prefix_match {
    auto const block_tokens = store_.block_tokens();
    auto const total = static_cast<std::uint32_t>(std::min(tokens.size() / block_tokens, out.size()));
    std::uint32_t done = 0;
    auto here = root.value();
    std::uint32_t offset = 0;
    while (done < total) {
      auto const* query = tokens.data() + std::size_t{done} * block_tokens;
      auto const child = find_child<counting>(here, store_.locate(here, query), query);
      if (child == 0) { break; }
      auto const& node = nodes_[child];
      auto const* ids = ids_of(node);
      auto const most = std::min<std::uint32_t>(node.length, total - done);
      auto const equal = 1 + detail::equal_blocks(query + block_tokens, store_.all(), ids + 1, most - 1, block_tokens);
      for (std::uint32_t i = 0; i < equal; ++i) { out[done + i] = block_id{ids[i]}; }
      done += equal;
      here = child;
      offset = equal;
      if (equal < node.length) { break; }
    }
    return {block_count{done}, node_id{here}, offset};
  }

  /// Idle blocks that pinning \p match would take out of `evictable()`. \complexity as `pin`
  [[nodiscard]] auto would_pin(prefix_match const& match) const noexcept -> block_count {
    std::uint32_t n = 0;
    for (auto at = match.node.value(); !root(at) && nodes_[at].busy == 0; at = nodes_[at].parent) {
      n += at == match.node.value() ? match.offset : nodes_[at].length;
    }
    return block_count{n};
  }

  /// Blocks that would become evictable if \p held were given back while its path without the last \p back blocks stays
  /// pinned. \complexity O(nodes walked)
  [[nodiscard]] auto would_release(prefix_pin const& held, block_count back) const noexcept -> block_count {
    std::uint32_t n = 0;
    for (auto at = held.node().value(); n < back.value() && !root(at) && nodes_[at].busy == 1; at = nodes_[at].parent) {
      n += std::min<std::uint32_t>(back.value() - n, nodes_[at].length);
    }
    return block_count{n};
  }

  /// Pins a match: until the pin is released none of its blocks is evicted.
  /// \pre nothing changed since `match`. \complexity O(nodes up to the first busy ancestor); allocates nothing
  [[nodiscard]] auto pin(prefix_match const& match) -> prefix_pin {
    auto node = match.node.value();
    if (!root(node)) {
      QUIRE_EXPECTS(node < nodes_.size() && match.offset >= 1 && match.offset <= nodes_[node].length);
      if (match.offset < nodes_[node].length) { node = split(node, match.offset); }
      acquire(node);
      count_use(node);
    }
    return make_pin(node_id{node}, false);
  }

  /// Pins the path of \p held without its last \p back blocks (0 = the same path): for forks and truncation.
  /// \pre `back` is at most the length of the path. \complexity O(nodes walked)
  [[nodiscard]] auto pin_back(prefix_pin const& held, block_count back) -> prefix_pin {
    QUIRE_EXPECTS(static_cast<bool>(held));
    auto node = held.node().value();
    auto left = back.value();
    while (left > 0) {
      QUIRE_EXPECTS(!root(node));
      if (left < nodes_[node].length) {
        node = split(node, nodes_[node].length - left);
        break;
      }
      left -= nodes_[node].length;
      node = nodes_[node].parent;
    }
    if (!root(node)) { acquire(node); }
    return make_pin(node_id{node}, false);
  }

  /// Publishes blocks behind a pinned path; their tokens are in `tokens(block)`. The pin moves to the last one.
  /// Stops early where an equal block exists already: call again for the rest. If somebody uses that block, the pin moves
  /// there; if not, the new block takes its place, so that no room is taken twice.
  /// \param blocks full, immutable from now on. \returns how far this call came.
  /// \complexity O(blocks) digests; allocates nothing
  /// \source S21, S26 (2)
  auto publish(prefix_pin& pin, std::span<block_id const> blocks) -> publish_result {
    QUIRE_EXPECTS(static_cast<bool>(pin));
    auto const total = static_cast<std::uint32_t>(blocks.size());
    auto digest = path_digest(pin.node().value());
    std::uint32_t done = 0;
    while (done < total) {
      auto const here = pin.node().value();
      if (auto const grown = extend(here, pin.owned(), blocks.subspan(done)); grown > 0) {
        for (std::uint32_t i = 0; i < grown; ++i) { digest = store_.chain(digest, blocks[done + i].value()); }
        done += grown;
        continue;
      }
      auto const* first = store_.of(blocks[done].value()).data();
      auto const hash = store_.locate(here, first);
      if (root(here) || nodes_[here].children > 0) {
        if (auto const twin = find_child(here, hash, first); twin != 0) {
          auto const idle = nodes_[twin].busy == 0;
          descend(pin, twin);
          auto& node = nodes_[pin.node().value()];
          if (!idle) { return {block_count{done}, true, block_id{ids_of(node)[node.length - 1]}}; }
          auto& id = node.order != 0 ? *extents_.at(node.place) : node.place;
          static_cast<void>(store_.chain(digest, blocks[done].value()));
          return {block_count{done + 1}, false, {}, block_id{std::exchange(id, blocks[done].value())}};
        }
      }
      auto const taken = attach_child(pin, hash, blocks.subspan(done));
      for (std::uint32_t i = 0; i < taken; ++i) { digest = store_.chain(digest, blocks[done + i].value()); }
      done += taken;
    }
    return {block_count{done}, false};
  }

  /// Adds \p holds further holders to the end of a pinned path: sequences that reach its last block through their
  /// tables and will `adopt` it. \pre that block was published last, so that no run continues behind it.
  auto hold(prefix_pin const& held, std::uint32_t holds) -> void {
    QUIRE_EXPECTS(!root(held.node().value()));
    nodes_[held.node().value()].busy += holds;
  }

  /// Moves \p pin onto the published \p block right behind it, of which its holder is one of the counted holders.
  auto adopt(prefix_pin& pin, block_id block) -> void {
    auto const here = pin.node().value();
    auto const child = find_child(here, store_.of(block.value()).data());
    QUIRE_EXPECTS(child != 0 && nodes_[child].length == 1 && ids_of(nodes_[child])[0] == block.value());
    if (!root(here)) { --nodes_[here].busy; } // its child is busy: it cannot become idle here
    move_pin(pin, node_id{child}, false);
  }

  /// Gives a pin back. What nobody pins any more becomes evictable, deepest first.
  /// \complexity O(nodes up to the first ancestor that stays busy); allocates nothing
  auto release(prefix_pin&& pin) -> void {
    QUIRE_EXPECTS(static_cast<bool>(pin));
    auto at = take_pin(pin).value();
    std::uint32_t idle_child = 0;
    while (!root(at) && --nodes_[at].busy == 0) {
      auto const above = nodes_[at].parent;
      evictable_ += nodes_[at].length;
      enter(at);
      if (!(idle_child != 0 && merge(at, idle_child))) { idle_child = at; }
      at = above;
    }
  }

  /// Makes sure that claiming \p blocks needs no memory. \throws std::bad_alloc; nothing has changed then.
  auto reserve_claims(block_count blocks) -> void {
    claims_.reserve(claims_.size() + blocks.value());
    claimed_ids_.reserve(claimed_ids_.size() + blocks.value());
  }

  /// Chooses victims, the order's first ones, tail blocks first, and makes them unmatchable.
  /// \returns how many ids were written, fewer than asked only when nothing more is evictable.
  /// \pre `reserve_claims`. \complexity O(blocks)
  auto claim(std::span<block_id> out) noexcept -> block_count {
    std::uint32_t got = 0;
    auto const want = static_cast<std::uint32_t>(out.size());
    while (got < want) {
      auto const victim = order_.victim();
      if (!victim) { break; }
      auto const v = victim.value();
      auto& node = nodes_[v];
      auto const k = std::min<std::uint32_t>(node.length, want - got);
      auto const* end = ids_of(node) + node.length;
      for (std::uint32_t i = 0; i < k; ++i) {
        out[got] = block_id{*--end};
        claimed_ids_.push_back(out[got]);
        ++got;
      }
      evictable_ -= k;
      cached_ -= k;
      auto const whole = k == node.length;
      claims_.push_back({v, static_cast<std::uint16_t>(k), whole});
      if (whole) {
        condemn(v);
        prefetch_victims();
      } else {
        node.length = static_cast<std::uint16_t>(node.length - k);
        node.flags |= tail_claimed;
      }
    }
    return block_count{got};
  }

  /// Makes all claims final: their blocks belong to the claimant.
  auto confirm() noexcept -> void {
    for (auto const& claimed : claims_) {
      auto& node = nodes_[claimed.node];
      if (claimed.whole) {
        if (!root(node.parent)) { nodes_[node.parent].flags &= static_cast<std::uint8_t>(~frozen); }
        drop_ids(node);
        free_node(claimed.node);
      } else if ((node.flags & condemned) == 0) {
        shrink(node);
        node.flags &= static_cast<std::uint8_t>(~tail_claimed);
      }
    }
    claims_.clear();
    claimed_ids_.clear();
  }

  /// Puts all claims back where they were. A block whose place has been taken meanwhile (its run was used, or an equal
  /// block was published) is handed to \p orphan(block_id) instead.
  /// \complexity O(claims)
  template <class Orphan>
  auto restore(Orphan orphan) -> void {
    auto ids = claimed_ids_.size();
    for (auto i = claims_.size(); i-- > 0;) {
      auto const& claimed = claims_[i];
      ids -= claimed.count;
      if (!(claimed.whole ? restore_node(claimed.node) : restore_tail(claimed.node, claimed.count))) {
        for (std::uint32_t j = 0; j < claimed.count; ++j) { orphan(claimed_ids_[ids + j]); }
      }
    }
    for (auto const& claimed : claims_) {
      auto& node = nodes_[claimed.node];
      if (claimed.whole && !root(node.parent)) { nodes_[node.parent].flags &= static_cast<std::uint8_t>(~frozen); }
      if ((node.flags & condemned) == 0) { node.flags &= static_cast<std::uint8_t>(~(tail_claimed | cut)); }
    }
    for (auto const& claimed : claims_) {
      if (claimed.whole && (nodes_[claimed.node].flags & condemned) != 0) {
        drop_ids(nodes_[claimed.node]);
        free_node(claimed.node);
      }
    }
    claims_.clear();
    claimed_ids_.clear();
  }

  /// Takes blocks out of the tree for good, with everything that hangs below them, and hands them to \p sink(block_id).
  /// \param doomed [blocks] non-zero where a block must go; those below are marked too.
  /// \pre no pin reaches a doomed block and no claim is open.
  /// \complexity O(nodes · depth), for the day a device is lost; allocates nothing
  template <class Sink>
  auto remove(std::span<std::uint8_t> doomed, Sink sink) -> void {
    QUIRE_EXPECTS(claims_.empty());
    auto const dooms_child = [&](number n) { return !root(n) && doomed[ids_of(nodes_[n])[nodes_[n].length - 1]] != 0; };
    for (auto again = true; std::exchange(again, false);) { // whatever hangs below a doomed block goes with it
      for (number n = 1; n < nodes_.size(); ++n) {
        if (nodes_[n].length == 0) { continue; }
        auto above = dooms_child(nodes_[n].parent);
        for (auto const id : std::span{ids_of(nodes_[n]), nodes_[n].length}) {
          again = again || (above && doomed[id] == 0);
          above = above || doomed[id] != 0;
          doomed[id] = above ? 1 : 0;
        }
      }
    }
    for (auto again = true; std::exchange(again, false);) { // deepest first
      for (number n = 1; n < nodes_.size(); ++n) {
        auto& node = nodes_[n];
        if (node.length == 0 || node.children != 0 || !dooms_child(n)) { continue; }
        QUIRE_EXPECTS(node.busy == 0);
        auto const* const ids = ids_of(node);
        auto const keep = static_cast<std::uint16_t>(
            std::find_if(ids, ids + node.length, [&](auto id) { return doomed[id] != 0; }) - ids);
        for (std::uint32_t i = keep; i < node.length; ++i) { sink(block_id{ids[i]}); }
        cached_ -= node.length - std::uint32_t{keep};
        evictable_ -= node.length - std::uint32_t{keep};
        if (keep > 0) {
          node.length = keep;
          shrink(node);
          continue;
        }
        table_.erase(node.hash, n);
        order_.leave(*this, node_id{n});
        if (auto const p = node.parent; !root(p)) {
          if (--nodes_[p].children == 0 && Eviction::leaves_only && nodes_[p].busy == 0) {
            order_.enter(*this, node_id{p});
          }
        }
        drop_ids(node);
        free_node(n);
        again = true;
      }
    }
  }

  /// Renumbers blocks: block b becomes `to[b]` unless that is `none()`. \pre no claim is open. \complexity O(blocks)
  auto relocate(std::span<block_id const> to) -> void {
    QUIRE_EXPECTS(claims_.empty());
    for (std::uint32_t b = 0; b < to.size(); ++b) {
      if (to[b]) { store_.move(b, to[b].value()); }
    }
    for (auto& node : nodes_) {
      if (node.length == 0) { continue; }
      auto* ids = node.order != 0 ? extents_.at(node.place) : &node.place;
      for (std::uint32_t i = 0; i < node.length; ++i) {
        if (to[ids[i]]) { ids[i] = to[ids[i]].value(); }
      }
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
  /// Chained digest of a published \p block, for tiers, events and other processes.
  [[nodiscard]] auto digest(block_id block) const noexcept -> typename Digest::digest_type const& {
    return store_.digest(block.value());
  }

  /// [blocks] published and not pinned.
  [[nodiscard]] auto evictable() const noexcept -> block_count { return block_count{evictable_}; }
  /// [blocks] published.
  [[nodiscard]] auto cached() const noexcept -> block_count { return block_count{cached_}; }
  /// How often `match` met an entry that had the hash it looked for and other tokens, or another parent (case 2).
  [[nodiscard]] auto hash_collisions() const noexcept -> std::uint64_t { return collisions_; }
  /// Nodes in use. \complexity O(1)
  [[nodiscard]] auto nodes() const noexcept -> node_count { return node_count{used_nodes_}; }
  /// The eviction policy, for those that must be told something.
  [[nodiscard]] auto eviction() noexcept -> Eviction& { return order_; }
  /// Bytes of metadata beside tokens and digests (and what the eviction policy keeps for itself).
  [[nodiscard]] auto metadata_bytes() const noexcept -> byte_count {
    return byte_count{nodes_.size() * sizeof(node_type) + table_.bytes() + extents_.bytes()};
  }

  /// Links of \p node for the eviction policy.
  [[nodiscard]] auto hook(node_id node) noexcept -> order_hook& { return nodes_[node.value()].links; }

  /// Checks every invariant of the tree. \param pins [nodes] pins that end at each node, for every node in use.
  /// \returns the first invariant that is broken, empty if all hold. \complexity O(blocks · depth)
  [[nodiscard]] auto audit(std::span<std::uint32_t const> pins) const -> std::string;

  /// Calls \p visit(node_id, parent, span of block numbers, busy count) for every node in use, in no particular order.
  template <class Visit>
  auto for_each_node(Visit visit) const -> void {
    for (std::uint32_t n = 1; n < nodes_.size(); ++n) {
      auto const& node = nodes_[n];
      if (node.length == 0 || (node.flags & condemned) != 0) { continue; }
      visit(node_id{n}, node_id{node.parent}, std::span<std::uint32_t const>{ids_of(node), node.length}, node.busy);
    }
  }

private:
  using number = std::uint32_t;

  struct alignas(32) node_type {
    number parent = 0;
    std::uint32_t hash = 0;     // of the first block under `parent`
    std::uint32_t place = 0;    // first slot of the extent, or the block itself where order == 0
    std::uint16_t length = 0;   // [blocks]; 0 = not in use
    std::uint8_t order = 0;     // log2 of the extent's slots; 0 = no extent, length 1
    std::uint8_t flags = 0;     // of an open claim
    std::uint32_t busy = 0;     // pins that end here + busy children
    std::uint32_t children = 0; // nodes, claimed ones left out
    order_hook links;           // in the eviction order; next also chains unused nodes
  };
  static_assert(sizeof(node_type) == 32, "two nodes a cache line");

  static constexpr std::uint8_t condemned = 1;    // claimed whole: not in the table, not in the order
  static constexpr std::uint8_t frozen = 2;       // has condemned children: its end must stay where it is
  static constexpr std::uint8_t tail_claimed = 4; // its claimed tail still stands behind its ids
  static constexpr std::uint8_t cut = 8;          // its claimed tail cannot come back, nor what hung on it

  struct claim_type {
    number node;
    std::uint16_t count; // [blocks], of one run
    bool whole;
  };

  static auto checked(block_count blocks) -> block_count {
    if (blocks.value() == 0) { throw config_error{"prefix index: 0 blocks, it needs at least 1"}; }
    if (blocks.value() >= detail::root_bit - 1) {
      throw config_error{"prefix index: more than 2^31 - 2 blocks: use larger blocks"};
    }
    return blocks;
  }
  [[nodiscard]] static auto root(number n) noexcept -> bool { return (n & detail::root_bit) != 0; }
  [[nodiscard]] auto ids_of(node_type const& node) const noexcept -> std::uint32_t const* {
    return node.order != 0 ? extents_.at(node.place) : &node.place;
  }
  [[nodiscard]] auto path_digest(number n) const noexcept -> typename Digest::digest_type {
    if (root(n)) { return store_.root_digest(node_id{n}); }
    auto const& node = nodes_[n];
    return store_.digest(ids_of(node)[node.length - 1]);
  }

  // --- finding ------------------------------------------------------------------------------------------------------
  static constexpr bool counting = true; // collisions, in look-ups for others only
  [[nodiscard]] auto find_child(number parent, token_id const* first) const noexcept -> number {
    return find_child(parent, store_.locate(parent, first), first);
  }
  template <bool Counting = false>
  [[nodiscard]] auto find_child(number parent, std::uint32_t hash, token_id const* first) const noexcept -> number {
    return table_.find(hash, [&](number n) {
      auto const& node = nodes_[n];
      auto const same =
          node.parent == parent && detail::equal_tokens(first, store_.of(*ids_of(node)).data(), store_.block_tokens());
      if constexpr (Counting) { collisions_ += same ? 0U : 1U; }
      return same;
    });
  }

  // --- pins ---------------------------------------------------------------------------------------------------------
  auto acquire(number n) noexcept -> void {
    for (; !root(n) && nodes_[n].busy++ == 0; n = nodes_[n].parent) {
      evictable_ -= nodes_[n].length;
      nodes_[n].flags &= static_cast<std::uint8_t>(~tail_claimed);
      if (in_order(n)) { order_.leave(*this, node_id{n}); }
    }
  }
  auto count_use(number n) noexcept -> void {
    if constexpr (Eviction::counts_uses) {
      for (; !root(n); n = nodes_[n].parent) { order_.use(node_id{n}); }
    }
  }
  [[nodiscard]] auto in_order(number n) const noexcept -> bool {
    return !Eviction::leaves_only || nodes_[n].children == 0;
  }
  auto enter(number n) noexcept -> void {
    if (in_order(n)) { order_.enter(*this, node_id{n}); }
  }
  /// Moves \p pin from a node to its child \p twin, which holds an equal block first.
  auto descend(prefix_pin& pin, number twin) noexcept -> void {
    if (nodes_[twin].length > 1) { twin = split(twin, 1); }
    acquire(twin);
    if (auto const here = pin.node().value(); !root(here)) { --nodes_[here].busy; } // a busy child keeps it busy
    move_pin(pin, node_id{twin}, false);
  }

  // --- growing ------------------------------------------------------------------------------------------------------
  /// Lengthens run \p n in place if its sole user may; returns by how many blocks.
  auto extend(number n, bool owned, std::span<block_id const> blocks) noexcept -> std::uint32_t {
    if (root(n)) { return 0; }
    auto& node = nodes_[n];
    if (node.busy != 1 || node.children != 0 || node.length >= Eviction::max_run || (node.flags & frozen) != 0) {
      return 0;
    }
    if (!order_.may_extend(node_id{n}, owned)) { return 0; }
    auto room = node.order != 0 ? 1U << node.order : 1U;
    auto const want = static_cast<std::uint32_t>(std::min<std::size_t>(node.length + blocks.size(), Eviction::max_run));
    if (want > room) {
      auto const order = detail::extent_arena::order_for(want);
      auto const place = extents_.allocate(order);
      if (place != detail::extent_arena::none) {
        std::copy_n(ids_of(node), node.length, extents_.at(place));
        drop_ids(node);
        node.place = place;
        node.order = static_cast<std::uint8_t>(order);
        room = 1U << order;
      }
    }
    auto const taken = std::min(want, room) - node.length;
    if (taken == 0) { return 0; }
    auto* ids = extents_.at(node.place) + node.length;
    for (std::uint32_t i = 0; i < taken; ++i) { ids[i] = blocks[i].value(); }
    node.length = static_cast<std::uint16_t>(node.length + taken);
    cached_ += taken;
    return taken;
  }
  /// Hangs a new run behind the pin and moves the pin there; returns its length.
  auto attach_child(prefix_pin& pin, std::uint32_t hash, std::span<block_id const> blocks) noexcept -> std::uint32_t {
    auto const here = pin.node().value();
    auto const n = new_node();
    auto& node = nodes_[n];
    auto const wanted = static_cast<std::uint32_t>(std::min<std::size_t>(blocks.size(), Eviction::max_run));
    reserve_ids(node, wanted);
    auto* ids = node.order != 0 ? extents_.at(node.place) : &node.place;
    for (std::uint32_t i = 0; i < node.length; ++i) { ids[i] = blocks[i].value(); }
    node.parent = here;
    node.hash = hash;
    node.busy = 1;
    node.children = 0;
    node.flags = 0;
    table_.insert(hash, n);
    if (!root(here)) { ++nodes_[here].children; } // busy: minus this pin, plus this child
    order_.create(node_id{n}, node_id{here});
    cached_ += node.length;
    move_pin(pin, node_id{n}, true);
    return node.length;
  }
  /// Gives \p node a place for up to \p length ids and sets its length to what fits: less only in a fragmented arena.
  auto reserve_ids(node_type& node, std::uint32_t length) noexcept -> void {
    node.order = 0;
    node.length = 1;
    if (length == 1) { return; }
    auto order = detail::extent_arena::order_for(length);
    auto place = extents_.allocate(order);
    while (place == detail::extent_arena::none && order > detail::extent_arena::min_order) {
      place = extents_.allocate(--order);
    }
    if (place == detail::extent_arena::none) { return; }
    node.place = place;
    node.order = static_cast<std::uint8_t>(order);
    node.length = static_cast<std::uint16_t>(std::min(length, 1U << order));
  }
  auto drop_ids(node_type& node) noexcept -> void {
    if (node.order != 0) { extents_.free(node.place, node.order); }
    node.order = 0;
  }
  /// Returns the halves of the extent that a shorter run no longer needs.
  auto shrink(node_type& node) noexcept -> void {
    if (node.order != 0 && node.length == 1) {
      auto const only = *extents_.at(node.place);
      drop_ids(node);
      node.place = only;
      return;
    }
    while (node.order > detail::extent_arena::min_order && node.length <= (1U << (node.order - 1))) {
      --node.order;
      extents_.free(node.place + (1U << node.order), node.order);
    }
  }

  // --- structure ----------------------------------------------------------------------------------------------------
  /// Cuts run \p n behind its first \p keep blocks and returns the new node of those. The suffix keeps the number \p n.
  /// In a fragmented arena the suffix becomes a chain of shorter runs, whose last one keeps the number: this never fails,
  /// because there are as many nodes as blocks.
  auto split(number n, std::uint32_t keep) noexcept -> number {
    auto& node = nodes_[n];
    auto const idle = node.busy == 0;
    auto const p = new_node();
    auto& prefix = nodes_[p];
    auto const links = prefix.links;
    prefix = node;
    prefix.links = links;
    prefix.length = static_cast<std::uint16_t>(keep);
    prefix.children = 1;
    prefix.busy = idle ? 0 : 1;
    prefix.flags = 0;
    node.flags &= static_cast<std::uint8_t>(~tail_claimed);
    table_.replace(node.hash, n, p);
    order_.split(*this, node_id{n}, node_id{p}, idle);

    auto const* rest = ids_of(prefix) + keep; // stays readable until the prefix shrinks
    std::uint32_t left = node.length - keep;
    auto above = p;
    for (;;) {
      node_type piece;
      reserve_ids(piece, left);
      std::copy_n(rest, piece.length, piece.order != 0 ? extents_.at(piece.place) : &piece.place);
      auto const hash = store_.locate(above, store_.of(rest[0]).data());
      auto const last = piece.length == left;
      auto const m = last ? n : new_node();
      auto& target = nodes_[m];
      target.place = piece.place;
      target.order = piece.order;
      target.length = piece.length;
      target.hash = hash;
      target.parent = above;
      table_.insert(hash, m);
      if (last) { break; }
      target.children = 1;
      target.busy = idle ? 0 : 1;
      target.flags = 0;
      order_.split(*this, node_id{n}, node_id{m}, idle);
      rest += piece.length;
      left -= piece.length;
      above = m;
    }
    shrink(prefix);
    return p;
  }
  /// Joins idle \p parent and its only child \p child, which entered the order right before it. The child keeps its number.
  auto merge(number p, number c) noexcept -> bool {
    auto& parent = nodes_[p];
    auto& child = nodes_[c];
    auto const total = std::uint32_t{parent.length} + child.length;
    if (parent.children != 1 || (parent.flags & frozen) != 0 || total > Eviction::max_run ||
        !order_.may_merge(node_id{p}, node_id{c})) {
      return false;
    }
    auto const order = detail::extent_arena::order_for(total);
    if (parent.order != order) {
      auto const place = extents_.allocate(order);
      if (place == detail::extent_arena::none) { return false; }
      std::copy_n(ids_of(parent), parent.length, extents_.at(place));
      drop_ids(parent);
      parent.place = place;
      parent.order = static_cast<std::uint8_t>(order);
    }
    std::copy_n(ids_of(child), child.length, extents_.at(parent.place) + parent.length);
    drop_ids(child);
    table_.erase(child.hash, c);
    table_.replace(parent.hash, p, c);
    child.place = parent.place;
    child.order = parent.order;
    child.length = static_cast<std::uint16_t>(total);
    child.hash = parent.hash;
    child.parent = parent.parent;
    order_.merge(*this, node_id{p}, node_id{c});
    parent.order = 0; // its extent is the child's now
    free_node(p);
    return true;
  }

  // --- claims -------------------------------------------------------------------------------------------------------
  // Not inlined: its vector registers would make every claim of a few tail blocks set up and clear up more than it does.
  [[gnu::noinline]] auto condemn(number v) noexcept -> void {
    auto& node = nodes_[v];
    table_.erase(node.hash, v);
    order_.leave(*this, node_id{v});
    node.flags |= condemned;
    if (root(node.parent)) { return; }
    auto& parent = nodes_[node.parent];
    --parent.children;
    parent.flags |= frozen;
    if (Eviction::leaves_only && parent.children == 0 && parent.busy == 0) {
      order_.enter(*this, node_id{node.parent});
    }
  }
  /// Requests what claiming the next victim will read, and the node behind it in the order: victims are cold by their
  /// nature, and there is work enough between two of them to hide a miss.
  auto prefetch_victims() const noexcept -> void {
    auto const next = order_.victim();
    if (!next) { return; }
    auto const& node = nodes_[next.value()];
    __builtin_prefetch(&nodes_[node.links.next], 1);
    table_.prefetch(node.hash);
    if (!root(node.parent)) { __builtin_prefetch(&nodes_[node.parent], 1); }
    if (node.order != 0) { __builtin_prefetch(extents_.at(node.place) + node.length - 1); }
  }
  [[nodiscard]] auto restore_node(number v) noexcept -> bool {
    auto& node = nodes_[v];
    auto const p = node.parent;
    if (!root(p) && (nodes_[p].flags & (condemned | cut)) != 0) { return false; }
    if (find_child(p, node.hash, store_.of(*ids_of(node)).data()) != 0) { return false; }
    if (!root(p)) {
      if (Eviction::leaves_only && nodes_[p].children == 0 && nodes_[p].busy == 0) { order_.leave(*this, node_id{p}); }
      ++nodes_[p].children;
    }
    node.flags &= static_cast<std::uint8_t>(~condemned);
    table_.insert(node.hash, v);
    order_.restore(*this, node_id{v});
    evictable_ += node.length;
    cached_ += node.length;
    return true;
  }
  [[nodiscard]] auto restore_tail(number v, std::uint32_t count) noexcept -> bool {
    auto& node = nodes_[v];
    if ((node.flags & condemned) != 0 || (node.flags & tail_claimed) == 0) {
      node.flags |= cut;
      return false;
    }
    node.length = static_cast<std::uint16_t>(node.length + count);
    evictable_ += count;
    cached_ += count;
    return true;
  }

  // --- node numbers -------------------------------------------------------------------------------------------------
  [[nodiscard]] auto new_node() noexcept -> number {
    auto const n = unused_;
    unused_ = nodes_[n].links.next;
    ++used_nodes_;
    return n;
  }
  auto free_node(number n) noexcept -> void {
    nodes_[n].length = 0;
    nodes_[n].flags = 0;
    nodes_[n].links.next = unused_;
    unused_ = n;
    if (used_nodes_ > 0) { --used_nodes_; }
  }

  detail::token_store<Digest> store_;
  detail::aligned_vector<node_type> nodes_; // [0] is never used
  detail::bucket_table table_;
  detail::extent_arena extents_;
  [[no_unique_address]] Eviction order_;
  number unused_ = 0;
  std::uint32_t used_nodes_ = 0;
  std::uint32_t cached_ = 0;
  mutable std::uint64_t collisions_ = 0; // looking up is logically const
  std::uint32_t evictable_ = 0;
  std::vector<claim_type> claims_;
  std::vector<block_id> claimed_ids_;
};

template <class Eviction, class Digest>
auto run_tree<Eviction, Digest>::audit(std::span<std::uint32_t const> pins) const -> std::string {
  std::vector<std::uint32_t> children(nodes_.size());
  std::vector<std::uint32_t> busy_children(nodes_.size());
  std::vector<std::uint8_t> seen(store_.digests());
  std::size_t in_use = 0;
  std::size_t cached = 0;
  std::size_t evictable = 0;
  std::size_t extent_slots = 0;
  for (number n = 1; n < nodes_.size(); ++n) {
    auto const& node = nodes_[n];
    if (node.length == 0) { continue; }
    ++in_use;
    extent_slots += node.order != 0 ? std::size_t{1} << node.order : 0;
    if ((node.flags & condemned) != 0) { continue; }
    auto const name = "prefix node " + std::to_string(n);
    if (!root(node.parent)) {
      auto const& parent = nodes_[node.parent];
      if (parent.length == 0) { return name + ": its parent is not in use"; }
      ++children[node.parent];
      busy_children[node.parent] += node.busy > 0 ? 1U : 0U;
    }
    cached += node.length;
    evictable += node.busy == 0 ? node.length : 0U;
    for (std::uint32_t i = 0; i < node.length; ++i) {
      auto const block = ids_of(node)[i];
      if (block >= seen.size()) { return name + ": block " + std::to_string(block) + " does not exist"; }
      if (seen[block]++ != 0) { return name + ": block " + std::to_string(block) + " is in the tree twice"; }
      auto const above = i > 0 ? store_.digest(ids_of(node)[i - 1]) : path_digest(node.parent);
      if (!(store_.policy().chain(above, store_.of(block)) == store_.digest(block))) {
        return name + ": block " + std::to_string(block) + " changed after it was published";
      }
    }
    auto const* first = store_.of(*ids_of(node)).data();
    if (node.hash != store_.locate(node.parent, first)) { return name + ": wrong hash"; }
    if (find_child(node.parent, node.hash, first) != n) {
      return name + ": not found by its own key, or an equal sibling exists";
    }
  }
  for (number n = 1; n < nodes_.size(); ++n) {
    auto const& node = nodes_[n];
    if (node.length == 0 || (node.flags & condemned) != 0) { continue; }
    auto const name = "prefix node " + std::to_string(n);
    if (node.children != children[n]) { return name + ": wrong number of children"; }
    if (node.busy != busy_children[n] + (n < pins.size() ? pins[n] : 0U)) {
      return name + ": busy count differs from pins and busy children";
    }
  }
  if (in_use != used_nodes_) { return "prefix tree: nodes in use are miscounted"; }
  if (cached != cached_) { return "prefix tree: cached blocks are miscounted"; }
  if (evictable != evictable_) { return "prefix tree: evictable blocks are miscounted"; }
  if (extent_slots + extents_.free_slots() != extents_.slots()) { return "prefix tree: the extent arena leaks"; }
  return {};
}

} // namespace quire
