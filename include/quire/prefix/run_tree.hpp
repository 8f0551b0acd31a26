// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A verified prefix tree whose nodes are *runs* of units (B1).
///
/// ```text
///   root(scope) ──┬── [ 7 8 9 2 ]──┬── [ 4 ]          a node = up to 512 units in a row,
///                 │                └── [ 1 6 ]        their numbers contiguous in an extent
///                 └── [ 3 ]
///
///   node (32 bytes)  parent · hash of first unit · place, extent, length · busy · children · order links
///   tokens, labels   dense by unit, beside the tree
/// ```
///
/// *Exact*: a hit compares the tokens of every unit and the parent of every node; hashes only say where to look.
/// *Fast*: a look-up streams the prompt once against stored tokens and touches one hash bucket per node.
///
/// A node splits only where a pin ends inside it. The *suffix* keeps the node's number, so children, pins and keys stay
/// valid, and every run has exactly one last use. It merges back at release when it can.
/// `busy` = pins that end here + busy children: pinning walks up only to the first ancestor that is already busy.

#include <quire/core/contract.hpp>
#include <quire/core/types.hpp>
#include <quire/identity/concepts.hpp>
#include <quire/identity/xxh3_128_digest.hpp> // IWYU pragma: keep, a default
#include <quire/prefix/concepts.hpp>
#include <quire/prefix/detail/aligned_vector.hpp>
#include <quire/prefix/detail/bucket_table.hpp>
#include <quire/prefix/detail/compare_tokens.hpp>
#include <quire/prefix/detail/extent_arena.hpp>
#include <quire/prefix/detail/idle_order.hpp>
#include <quire/prefix/detail/run_digests.hpp>
#include <quire/prefix/detail/unit_store.hpp>
#include <quire/prefix/fwd.hpp>
#include <quire/prefix/lru_eviction.hpp> // IWYU pragma: keep, a default
#include <quire/prefix/node_id.hpp>
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

  /// How digests are computed.
  using digest_policy_type = Digest;

  /// An empty tree over the units [0, \p units) of \p unit_tokens tokens each.
  /// \throws config_error if either is 0 or there are more than 2^31 - 2 units.
  /// \complexity O(units) time; 49.5 bytes a unit beside its tokens
  run_tree(unit_count units, token_count unit_tokens, Digest digest = {})
      : store_{units, unit_tokens, digest}, nodes_(std::size_t{units.value()} + 1), table_{units.value()},
        extents_{units.value() + units.value() / 2}, order_{node_count{units.value()}} {
    for (auto n = units.value(); n >= 1; --n) { free_node(n); }
  }
  run_tree(run_tree const&) = delete;
  auto operator=(run_tree const&) -> run_tree& = delete;
  ~run_tree() = default;

  /// Starts the empty prefix of one scope in one epoch. \param scope canonical bytes of the scope key.
  [[nodiscard]] auto open_root(std::span<std::byte const> scope) -> node_id { return store_.open_root(scope); }
  /// Says that nobody will look below \p root again: what hangs there leaves before everything else, whatever the eviction
  /// policy says. Pins stay valid. \complexity O(1); the evictions after it walk the nodes once between them
  auto close_root(node_id root) noexcept -> void {
    store_.close_root(root);
    order_.sweep_again();
  }
  /// The same for every root that was opened until now: the weights have changed.
  auto close_roots() noexcept -> void {
    store_.close_roots();
    order_.sweep_again();
  }

  // --- units --------------------------------------------------------------------------------------------------------
  /// A private unit with one holder; `none()` if all are in use. \complexity O(1)
  [[nodiscard]] auto take_unit() noexcept -> unit_id { return store_.take(); }
  /// One more sequence holds a private \p unit.
  auto share_unit(unit_id unit) -> void { store_.share(unit); }
  /// One sequence less holds a private \p unit.
  auto drop_unit(unit_id unit) -> void { store_.drop(unit); }
  /// One sequence less holds each of \p units.
  auto drop_units(std::span<unit_id const> units) -> void { store_.drop(units); }
  /// Sequences that hold a private \p unit through their paths.
  [[nodiscard]] auto holders(unit_id unit) const -> std::uint32_t { return store_.holders(unit); }
  /// True if \p unit stands in the tree.
  [[nodiscard]] auto published(unit_id unit) const noexcept -> bool { return store_.published(unit); }
  /// [units] that nobody uses.
  [[nodiscard]] auto free_units() const noexcept -> unit_count { return store_.free(); }
  /// [units] in total.
  [[nodiscard]] auto capacity() const noexcept -> unit_count {
    return unit_count{static_cast<std::uint32_t>(store_.units())};
  }

  // --- finding ------------------------------------------------------------------------------------------------------
  /// Finds the longest resident prefix of full units of \p tokens below \p root and writes its units.
  /// Nothing changes, not even the order of eviction.
  /// \param out receives the units, as far as it reaches. \returns the match; pin it before anything else happens.
  /// \complexity one comparison of the matching tokens + O(nodes) bucket reads
  /// \source S21, S26 (1), B1
  [[nodiscard]] auto match(node_id root, std::span<token_id const> tokens, std::span<unit_id> out) const noexcept
      -> prefix_match {
    auto const unit_tokens = store_.unit_tokens();
    auto const total = static_cast<std::uint32_t>(std::min(tokens.size() / unit_tokens, out.size()));
    std::uint32_t done = 0;
    auto here = root.value();
    std::uint32_t offset = 0;
    while (done < total) {
      auto const* query = tokens.data() + std::size_t{done} * unit_tokens;
      auto const child = find_child<counting>(here, 0, store_.locate(here, 0, query), query);
      if (child == 0) { break; }
      auto const& node = nodes_[child];
      auto const* ids = ids_of(node);
      auto const most = std::min<std::uint32_t>(node.length, total - done);
      auto const equal = 1 + detail::equal_blocks(query + unit_tokens, store_.all(), ids + 1, most - 1, unit_tokens);
      for (std::uint32_t i = 0; i < equal; ++i) { out[done + i] = unit_id{ids[i]}; }
      done += equal;
      here = child;
      offset = equal;
      if (equal < node.length) { break; }
    }
    return {unit_count{done}, node_id{here}, offset, root};
  }

  /// Idle units that pinning \p match would take out of `evictable()`. \complexity as `pin`
  [[nodiscard]] auto would_pin(prefix_match const& match) const noexcept -> unit_count {
    if constexpr (!detail::evicts<Eviction>) { return {}; }
    std::uint32_t n = 0;
    for (auto at = match.node.value(); !root(at) && nodes_[at].busy == 0; at = nodes_[at].parent) {
      n += at == match.node.value() ? match.offset : nodes_[at].length;
    }
    return unit_count{n};
  }

  /// Units that would become evictable if \p held were given back while its path without the last \p back units stays
  /// pinned. \complexity O(nodes walked)
  [[nodiscard]] auto would_release(prefix_pin const& held, unit_count back) const noexcept -> unit_count {
    if constexpr (!detail::evicts<Eviction>) { return {}; }
    std::uint32_t n = 0;
    for (auto at = held.node().value(); n < back.value() && !root(at) && nodes_[at].busy == 1; at = nodes_[at].parent) {
      n += std::min<std::uint32_t>(back.value() - n, nodes_[at].length);
    }
    return unit_count{n};
  }

  // --- pins ---------------------------------------------------------------------------------------------------------
  /// Pins a match: until the pin is released none of its units is evicted.
  /// \pre nothing changed since `match`. \complexity O(nodes up to the first busy ancestor); allocates nothing
  [[nodiscard]] auto pin(prefix_match const& match) -> prefix_pin {
    auto node = match.node.value();
    if (!root(node)) {
      QUIRE_EXPECTS(node < nodes_.size() && match.offset >= 1 && match.offset <= nodes_[node].length);
      if (match.offset < nodes_[node].length) { node = split(node, match.offset); }
      acquire(node);
      count_use(node);
    }
    return make_pin(node_id{node}, match.root, false);
  }

  /// Pins the path of \p held without its last \p back units (0 = the same path): for forks and truncation.
  /// \pre `back` is at most the length of the path. \complexity O(nodes walked)
  [[nodiscard]] auto pin_back(prefix_pin const& held, unit_count back) -> prefix_pin {
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
    return make_pin(node_id{node}, held.root(), false);
  }

  /// Publishes private units behind a pinned path; their tokens are in `tokens(unit)`. The pin moves to the last one, and
  /// whoever else holds that one holds its node until it adopts it.
  /// Stops early where an equal unit exists already. If somebody uses that one, the pin moves there; if nobody does, the new
  /// unit takes its place, so that no room is taken twice. Call again for the rest, without it.
  /// \param units full, immutable from now on; only the last may have other holders. \returns how far this call came.
  /// \complexity O(units); allocates nothing
  /// \source S21, S26 (2)
  auto publish(prefix_pin& pin, std::span<unit_id const> units) -> publish_result {
    QUIRE_EXPECTS(static_cast<bool>(pin));
    auto const total = static_cast<std::uint32_t>(units.size());
    std::uint32_t done = 0;
    std::uint32_t holders = 1;
    while (done < total) {
      auto const here = pin.node().value();
      auto taken = extend(here, pin.owned(), units.subspan(done));
      if (taken == 0) {
        auto const first = units[done].value();
        auto const* tokens = store_.of(first).data();
        auto const hash = store_.locate(here, store_.label(first), tokens);
        if (root(here) || nodes_[here].children > 0) {
          if (auto const twin = find_child(here, store_.label(first), hash, tokens); twin != 0) {
            auto const idle = nodes_[twin].busy == 0;
            descend(pin, twin);
            auto& node = nodes_[pin.node().value()];
            auto& id = node.extent_log2 != 0 ? extents_.at(node.place)[node.length - 1] : node.place;
            if (!idle) { return {unit_count{done}, unit_id{id}, unit_id::none()}; }
            auto const replaced = std::exchange(id, first);
            node.busy += store_.publish(first) - 1;
            store_.give(replaced);
            return {unit_count{done + 1}, unit_id::none(), unit_id{replaced}};
          }
        }
        taken = attach_child(pin, hash, units.subspan(done));
      }
      for (auto const unit : units.subspan(done, taken)) { holders = store_.publish(unit.value()); }
      done += taken;
    }
    if (holders > 1) { nodes_[pin.node().value()].busy += holders - 1; }
    return {unit_count{done}, unit_id::none(), unit_id::none()};
  }

  /// Moves \p pin onto the published \p unit right behind it, of which its holder is one of the counted holders.
  auto adopt(prefix_pin& pin, unit_id unit) -> void {
    auto const here = pin.node().value();
    auto const first = unit.value();
    auto const child = find_child(here, store_.label(first), store_.of(first).data());
    QUIRE_EXPECTS(child != 0 && nodes_[child].length == 1 && ids_of(nodes_[child])[0] == first);
    if (!root(here)) { --nodes_[here].busy; } // its child is busy: it cannot become idle here
    move_pin(pin, node_id{child}, false);
  }

  /// Gives a pin back. What nobody pins any more becomes evictable, deepest first.
  /// \complexity O(nodes up to the first ancestor that stays busy); allocates nothing
  auto release(prefix_pin&& pin) -> void {
    QUIRE_EXPECTS(static_cast<bool>(pin));
    auto const closed = store_.closed(pin.root());
    auto at = take_pin(pin).value();
    std::uint32_t idle_child = 0;
    while (!root(at) && --nodes_[at].busy == 0) {
      auto const above = nodes_[at].parent;
      evictable_ += nodes_[at].length;
      if (closed && nodes_[at].children == 0) {
        order_.enter_closed(*this, node_id{at});
      } else if (in_order(at)) {
        order_.enter(*this, node_id{at});
      }
      if (!(idle_child != 0 && merge(at, idle_child))) { idle_child = at; }
      at = above;
    }
  }

  // --- eviction -----------------------------------------------------------------------------------------------------
  /// Takes victims out of the tree, the order's first ones, tail units first; what lies below closed roots before them.
  /// Their numbers are free, and written to \p out so that whoever keeps something for them lets it go.
  /// \returns how many, fewer than asked only when nothing more is evictable. \complexity O(units)
  auto evict(std::span<unit_id> out) noexcept -> unit_count {
    std::uint32_t got = 0;
    auto const want = static_cast<std::uint32_t>(out.size());
    while (got < want) {
      auto const victim = next_victim();
      if (!victim) { break; }
      auto const v = victim.value();
      auto& node = nodes_[v];
      auto const k = std::min<std::uint32_t>(node.length, want - got);
      store_.give_back(ids_of(node) + node.length, k, &out[got]);
      got += k;
      evictable_ -= k;
      cached_ -= k;
      if (k < node.length) {
        node.length = static_cast<std::uint16_t>(node.length - k);
        digests_.forget(v);
        shrink(node);
      } else {
        remove_node(v);
        prefetch_victim();
      }
    }
    return unit_count{got};
  }

  /// Takes units out of the tree for good, with everything that hangs below them, and hands them to \p sink(unit_id).
  /// \param doomed [units] non-zero where a unit must go; those below are marked too.
  /// \pre no pin reaches a doomed unit.
  /// \complexity O(nodes · depth), for the day a device is lost; allocates nothing
  template <class Sink>
  auto remove(std::span<std::uint8_t> doomed, Sink sink) -> void {
    auto const dooms_child = [&](number n) { return !root(n) && doomed[ids_of(nodes_[n])[nodes_[n].length - 1]] != 0; };
    for (auto again = true; std::exchange(again, false);) { // whatever hangs below a doomed unit goes with it
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
        for (std::uint32_t i = keep; i < node.length; ++i) {
          sink(unit_id{ids[i]});
          store_.give(ids[i]);
        }
        cached_ -= node.length - std::uint32_t{keep};
        evictable_ -= node.length - std::uint32_t{keep};
        if (keep > 0) {
          node.length = keep;
          digests_.forget(n);
          shrink(node);
          continue;
        }
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
  /// Chained digest of the pinned path: for tiers, events and other processes. Look-ups never need it, so it is computed
  /// when somebody asks, from the nearest ancestor that has one, and kept per run.
  /// \throws std::bad_alloc \complexity O(units since that ancestor)
  [[nodiscard]] auto digest(prefix_pin const& pin) -> typename Digest::digest_type {
    digests_.keep(nodes_.size());
    // From the end of the path to the nearest digest. No recursion: a path may have more nodes than the stack has room.
    std::vector<number> open;
    for (auto at = pin.node().value(); !root(at) && !has_digest(at); at = nodes_[at].parent) { open.push_back(at); }
    for (; !open.empty(); open.pop_back()) { note_digest(open.back()); }
    return digest_of(pin.node().value());
  }

  /// [units] published and not pinned.
  [[nodiscard]] auto evictable() const noexcept -> unit_count {
    return unit_count{detail::evicts<Eviction> ? evictable_ : 0};
  }
  /// [units] published.
  [[nodiscard]] auto cached() const noexcept -> unit_count { return unit_count{cached_}; }
  /// How often `match` met an entry that had the hash it looked for and other tokens, or another parent.
  [[nodiscard]] auto hash_collisions() const noexcept -> std::uint64_t { return collisions_; }
  /// Nodes in use. \complexity O(1)
  [[nodiscard]] auto nodes() const noexcept -> node_count { return node_count{used_nodes_}; }
  /// The eviction policy, for those that must be told something.
  [[nodiscard]] auto eviction() noexcept -> Eviction& { return order_.policy(); }
  /// Bytes of metadata beside tokens (and what the eviction policy keeps for itself).
  [[nodiscard]] auto metadata_bytes() const noexcept -> byte_count {
    return byte_count{nodes_.size() * sizeof(node_type) + table_.bytes() + extents_.bytes() + store_.metadata_bytes()};
  }

  /// Links of \p node for the eviction policy.
  [[nodiscard]] auto hook(node_id node) noexcept -> order_hook& { return nodes_[node.value()].links; }
  /// Whether \p node waits among those below closed roots, which come before the policy's.
  [[nodiscard]] auto closed_mark(node_id node) noexcept -> bool& { return nodes_[node.value()].closed; }

  /// Checks every invariant of the tree. \param pins [nodes] pins that end at each node, for every node in use.
  /// \returns the first invariant that is broken, empty if all hold. \complexity O(units · depth)
  [[nodiscard]] auto audit(std::span<std::uint32_t const> pins) const -> std::string;

  /// Calls \p visit(node_id, parent, span of unit numbers, busy count) for every node in use, in no particular order.
  template <class Visit>
  auto for_each_node(Visit visit) const -> void {
    for (std::uint32_t n = 1; n < nodes_.size(); ++n) {
      auto const& node = nodes_[n];
      if (node.length == 0) { continue; }
      visit(node_id{n}, node_id{node.parent}, std::span<std::uint32_t const>{ids_of(node), node.length}, node.busy);
    }
  }

private:
  using number = std::uint32_t;

  struct alignas(32) node_type {
    number parent = 0;
    std::uint32_t hash = 0;       // of the first unit under `parent`
    std::uint32_t place = 0;      // first slot of the extent, or the unit itself where there is none
    std::uint16_t length = 0;     // [units]; 0 = not in use
    std::uint8_t extent_log2 = 0; // of the extent's slots; 0 = no extent, length 1
    bool closed = false;          // an idle leaf below a closed root, in the list of those
    std::uint32_t busy = 0;       // pins that end here + busy children
    std::uint32_t children = 0;   // nodes
    order_hook links;             // in the eviction order; next also chains unused nodes
  };
  static_assert(sizeof(node_type) == 32, "two nodes a cache line");

  [[nodiscard]] static auto root(number n) noexcept -> bool { return (n & detail::root_bit) != 0; }
  [[nodiscard]] auto ids_of(node_type const& node) const noexcept -> std::uint32_t const* {
    return node.extent_log2 != 0 ? extents_.at(node.place) : &node.place;
  }
  [[nodiscard]] auto has_digest(number n) const noexcept -> bool {
    return digests_.length(n) != 0 && digests_.length(n) == nodes_[n].length;
  }
  [[nodiscard]] auto digest_of(number n) const noexcept -> typename Digest::digest_type const& {
    return root(n) ? store_.root_digest(node_id{n}) : digests_.digest(n);
  }
  /// Computes the digest of \p n, whose parent's is there, from what is kept of it.
  auto note_digest(number n) noexcept -> void {
    auto const& node = nodes_[n];
    auto done = digests_.length(n);
    auto digest = digest_of(done > 0 ? n : node.parent);
    for (; done < node.length; ++done) { digest = store_.chain(digest, ids_of(node)[done]); }
    digests_.note(n, done, digest);
  }

  // --- finding ------------------------------------------------------------------------------------------------------
  static constexpr bool counting = true; // collisions, in look-ups for others only
  [[nodiscard]] auto find_child(number parent, std::uint32_t label, token_id const* first) const noexcept -> number {
    return find_child(parent, label, store_.locate(parent, label, first), first);
  }
  template <bool Counting = false>
  [[nodiscard]] auto find_child(number parent, std::uint32_t label, std::uint32_t hash,
                                token_id const* first) const noexcept -> number {
    return table_.find(hash, [&](number n) {
      auto const& node = nodes_[n];
      if (node.hash != hash) { return false; }
      auto const unit = *ids_of(node);
      auto const same = node.parent == parent && store_.label(unit) == label &&
                        detail::equal_tokens(first, store_.of(unit).data(), store_.unit_tokens());
      if constexpr (Counting) { collisions_ += same ? 0U : 1U; }
      return same;
    });
  }

  // --- pins ---------------------------------------------------------------------------------------------------------
  auto acquire(number n) noexcept -> void {
    for (; !root(n) && nodes_[n].busy++ == 0; n = nodes_[n].parent) {
      evictable_ -= nodes_[n].length;
      leave_order(n);
    }
  }
  auto count_use(number n) noexcept -> void {
    if constexpr (Eviction::counts_uses) {
      for (; !root(n); n = nodes_[n].parent) { order_.policy().use(node_id{n}); }
    }
  }
  [[nodiscard]] auto in_order(number n) const noexcept -> bool {
    return !Eviction::leaves_only || nodes_[n].children == 0;
  }
  auto leave_order(number n) noexcept -> void {
    if (nodes_[n].closed || in_order(n)) { order_.leave(*this, node_id{n}); }
  }
  /// Moves \p pin from a node to its child \p twin, which holds an equal block first.
  auto descend(prefix_pin& pin, number twin) noexcept -> void {
    if (nodes_[twin].length > 1) { twin = split(twin, 1); }
    acquire(twin);
    if (auto const here = pin.node().value(); !root(here)) { --nodes_[here].busy; } // a busy child keeps it busy
    move_pin(pin, node_id{twin}, false);
  }

  // --- growing ------------------------------------------------------------------------------------------------------
  /// Lengthens run \p n in place if its sole user may; returns by how many units.
  auto extend(number n, bool owned, std::span<unit_id const> units) noexcept -> std::uint32_t {
    if (root(n)) { return 0; }
    auto& node = nodes_[n];
    if (node.busy != 1 || node.children != 0 || node.length >= Eviction::max_run) { return 0; }
    if (!order_.policy().may_extend(node_id{n}, owned)) { return 0; }
    auto room = node.extent_log2 != 0 ? 1U << node.extent_log2 : 1U;
    auto const want = static_cast<std::uint32_t>(std::min<std::size_t>(node.length + units.size(), Eviction::max_run));
    if (want > room) {
      auto const order = detail::extent_arena::order_for(want);
      auto const place = extents_.allocate(order);
      if (place != detail::extent_arena::none) {
        std::copy_n(ids_of(node), node.length, extents_.at(place));
        drop_ids(node);
        node.place = place;
        node.extent_log2 = static_cast<std::uint8_t>(order);
        room = 1U << order;
      }
    }
    auto const taken = std::min(want, room) - node.length;
    if (taken == 0) { return 0; }
    auto* ids = extents_.at(node.place) + node.length;
    for (std::uint32_t i = 0; i < taken; ++i) { ids[i] = units[i].value(); }
    node.length = static_cast<std::uint16_t>(node.length + taken);
    cached_ += taken;
    return taken;
  }
  /// Hangs a new run behind the pin and moves the pin there; returns its length.
  auto attach_child(prefix_pin& pin, std::uint32_t hash, std::span<unit_id const> units) noexcept -> std::uint32_t {
    auto const here = pin.node().value();
    auto const n = new_node();
    auto& node = nodes_[n];
    auto const wanted = static_cast<std::uint32_t>(std::min<std::size_t>(units.size(), Eviction::max_run));
    reserve_ids(node, wanted);
    auto* ids = node.extent_log2 != 0 ? extents_.at(node.place) : &node.place;
    for (std::uint32_t i = 0; i < node.length; ++i) { ids[i] = units[i].value(); }
    node.parent = here;
    node.hash = hash;
    node.busy = 1;
    node.children = 0;
    node.closed = false;
    table_.insert(hash, n);
    if (!root(here)) { ++nodes_[here].children; } // busy: minus this pin, plus this child
    order_.policy().create(node_id{n}, node_id{here});
    cached_ += node.length;
    move_pin(pin, node_id{n}, true);
    return node.length;
  }
  /// Gives \p node a place for up to \p length ids and sets its length to what fits: less only in a fragmented arena.
  auto reserve_ids(node_type& node, std::uint32_t length) noexcept -> void {
    node.extent_log2 = 0;
    node.length = 1;
    if (length == 1) { return; }
    auto order = detail::extent_arena::order_for(length);
    auto place = extents_.allocate(order);
    while (place == detail::extent_arena::none && order > detail::extent_arena::min_order) {
      place = extents_.allocate(--order);
    }
    if (place == detail::extent_arena::none) { return; }
    node.place = place;
    node.extent_log2 = static_cast<std::uint8_t>(order);
    node.length = static_cast<std::uint16_t>(std::min(length, 1U << order));
  }
  auto drop_ids(node_type& node) noexcept -> void {
    if (node.extent_log2 != 0) { extents_.free(node.place, node.extent_log2); }
    node.extent_log2 = 0;
  }
  /// Returns the halves of the extent that a shorter run no longer needs.
  auto shrink(node_type& node) noexcept -> void {
    if (node.extent_log2 != 0 && node.length == 1) {
      auto const only = *extents_.at(node.place);
      drop_ids(node);
      node.place = only;
      return;
    }
    while (node.extent_log2 > detail::extent_arena::min_order && node.length <= (1U << (node.extent_log2 - 1))) {
      --node.extent_log2;
      extents_.free(node.place + (1U << node.extent_log2), node.extent_log2);
    }
  }

  // --- structure ----------------------------------------------------------------------------------------------------
  /// Cuts run \p n behind its first \p keep units and returns the new node of those. The suffix keeps the number \p n.
  /// In a fragmented arena the suffix becomes a chain of shorter runs, whose last one keeps the number: this never fails,
  /// because there are as many nodes as units.
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
    prefix.closed = false;
    prefix.busy = idle ? 0 : 1;
    digests_.forget(n);
    digests_.forget(p);
    table_.replace(node.hash, n, p);
    order_.split(*this, node_id{n}, node_id{p}, idle);

    auto const* rest = ids_of(prefix) + keep; // stays readable until the prefix shrinks
    std::uint32_t left = node.length - keep;
    auto above = p;
    for (;;) {
      node_type piece;
      reserve_ids(piece, left);
      std::copy_n(rest, piece.length, piece.extent_log2 != 0 ? extents_.at(piece.place) : &piece.place);
      auto const hash = store_.locate(above, store_.label(rest[0]), store_.of(rest[0]).data());
      auto const last = piece.length == left;
      auto const m = last ? n : new_node();
      auto& target = nodes_[m];
      target.place = piece.place;
      target.extent_log2 = piece.extent_log2;
      target.length = piece.length;
      target.hash = hash;
      target.parent = above;
      table_.insert(hash, m);
      if (last) { break; }
      target.children = 1;
      target.busy = idle ? 0 : 1;
      target.closed = false;
      digests_.forget(m);
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
    if (parent.children != 1 || total > Eviction::max_run || !order_.policy().may_merge(node_id{p}, node_id{c}) ||
        store_.label(*ids_of(child)) != 0) {
      return false;
    }
    auto const order = detail::extent_arena::order_for(total);
    if (parent.extent_log2 != order) {
      auto const place = extents_.allocate(order);
      if (place == detail::extent_arena::none) { return false; }
      std::copy_n(ids_of(parent), parent.length, extents_.at(place));
      drop_ids(parent);
      parent.place = place;
      parent.extent_log2 = static_cast<std::uint8_t>(order);
    }
    std::copy_n(ids_of(child), child.length, extents_.at(parent.place) + parent.length);
    drop_ids(child);
    table_.erase(child.hash, c);
    table_.replace(parent.hash, p, c);
    child.place = parent.place;
    child.extent_log2 = parent.extent_log2;
    child.length = static_cast<std::uint16_t>(total);
    child.hash = parent.hash;
    child.parent = parent.parent;
    order_.merge(*this, node_id{p}, node_id{c});
    digests_.forget(c);
    parent.extent_log2 = 0; // its extent is the child's now
    free_node(p);
    return true;
  }

  // --- victims ------------------------------------------------------------------------------------------------------
  [[nodiscard]] auto next_victim() noexcept -> node_id {
    return order_.victim(*this, static_cast<number>(nodes_.size()), [this](number n) {
      auto const& node = nodes_[n];
      return node.length > 0 && node.busy == 0 && node.children == 0 && unreachable(n);
    });
  }
  [[nodiscard]] auto unreachable(number n) const noexcept -> bool {
    while (!root(n)) { n = nodes_[n].parent; }
    return store_.closed(node_id{n});
  }
  // Not inlined: its vector registers would make every eviction of a few tail units set up and clear up more than it does.
  [[gnu::noinline]] auto remove_node(number v) noexcept -> void {
    auto& node = nodes_[v];
    auto const p = node.parent;
    auto const closed = node.closed;
    table_.erase(node.hash, v);
    leave_order(v);
    drop_ids(node);
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
  /// Requests what taking the next victim will read, and the node behind it in the order: victims are cold by their
  /// nature, and there is work enough between two of them to hide a miss.
  auto prefetch_victim() const noexcept -> void {
    auto const next = order_.first();
    if (!next) { return; }
    auto const& node = nodes_[next.value()];
    __builtin_prefetch(&nodes_[node.links.next], 1);
    table_.prefetch(node.hash);
    if (!root(node.parent)) { __builtin_prefetch(&nodes_[node.parent], 1); }
    if (node.extent_log2 != 0) { __builtin_prefetch(extents_.at(node.place) + node.length - 1); }
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
    nodes_[n].closed = false;
    digests_.forget(n);
    nodes_[n].links.next = unused_;
    unused_ = n;
    if (used_nodes_ > 0) { --used_nodes_; }
  }

  detail::unit_store<Digest> store_;
  detail::aligned_vector<node_type> nodes_; // [0] is never used
  detail::bucket_table table_;
  detail::extent_arena extents_;
  detail::idle_order<Eviction> order_;
  detail::run_digests<typename Digest::digest_type> digests_;
  number unused_ = 0;
  std::uint32_t used_nodes_ = 0;
  std::uint32_t cached_ = 0;
  mutable std::uint64_t collisions_ = 0; // looking up is logically const
  std::uint32_t evictable_ = 0;
};

template <class Eviction, class Digest>
auto run_tree<Eviction, Digest>::audit(std::span<std::uint32_t const> pins) const -> std::string {
  std::vector<std::uint32_t> children(nodes_.size());
  std::vector<std::uint32_t> busy_children(nodes_.size());
  std::vector<std::uint8_t> seen(store_.units());
  std::size_t in_use = 0;
  std::size_t cached = 0;
  std::size_t evictable = 0;
  std::size_t extent_slots = 0;
  for (number n = 1; n < nodes_.size(); ++n) {
    auto const& node = nodes_[n];
    if (node.length == 0) { continue; }
    ++in_use;
    extent_slots += node.extent_log2 != 0 ? std::size_t{1} << node.extent_log2 : 0;
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
      auto const unit = ids_of(node)[i];
      if (unit >= seen.size()) { return name + ": unit " + std::to_string(unit) + " does not exist"; }
      if (seen[unit]++ != 0) { return name + ": unit " + std::to_string(unit) + " is in the tree twice"; }
      if (!store_.published(unit_id{unit})) { return name + ": unit " + std::to_string(unit) + " is not published"; }
    }
    auto const leaves_first = node.busy == 0 && node.children == 0 && unreachable(n);
    if (node.closed && !leaves_first) { return name + ": leaves first, and need not"; }
    if (!node.closed && leaves_first && !order_.sweeping()) { return name + ": leaves first, and nobody knows"; }
    auto const* first = store_.of(*ids_of(node)).data();
    auto const label = store_.label(*ids_of(node));
    if (node.hash != store_.locate(node.parent, label, first)) {
      return name + ": its first unit changed after it was published";
    }
    if (find_child(node.parent, label, node.hash, first) != n) {
      return name + ": not found by its own key, or an equal sibling exists";
    }
  }
  for (number n = 1; n < nodes_.size(); ++n) {
    auto const& node = nodes_[n];
    if (node.length == 0) { continue; }
    auto const name = "prefix node " + std::to_string(n);
    if (node.children != children[n]) { return name + ": wrong number of children"; }
    if (node.busy != busy_children[n] + (n < pins.size() ? pins[n] : 0U)) {
      return name + ": busy count differs from pins and busy children";
    }
  }
  if (in_use != used_nodes_) { return "prefix tree: nodes in use are miscounted"; }
  if (cached != cached_) { return "prefix tree: cached units are miscounted"; }
  if (evictable != evictable_) { return "prefix tree: evictable units are miscounted"; }
  if (extent_slots + extents_.free_slots() != extents_.slots()) { return "prefix tree: the extent arena leaks"; }
  std::size_t published = 0;
  for (std::uint32_t unit = 0; unit < seen.size(); ++unit) { published += store_.published(unit_id{unit}) ? 1U : 0U; }
  if (published != cached) { return "prefix tree: a published unit is not in the tree"; }
  if (auto const* const text = store_.audit(); *text != 0) { return text; }
  for (number n = 1; n < nodes_.size(); ++n) { // digests that somebody asked for
    auto const& node = nodes_[n];
    if (node.length == 0 || digests_.length(n) == 0) { continue; }
    if (digests_.length(n) > node.length) { return "prefix node " + std::to_string(n) + ": digest of units that left"; }
    if (!root(node.parent) && digests_.length(node.parent) != nodes_[node.parent].length) { continue; }
    auto digest = root(node.parent) ? store_.root_digest(node_id{node.parent}) : digests_.digest(node.parent);
    for (std::uint32_t i = 0; i < digests_.length(n); ++i) { digest = store_.chain(digest, ids_of(node)[i]); }
    if (!(digest == digests_.digest(n))) {
      return "prefix node " + std::to_string(n) + ": a unit changed after it was published";
    }
  }
  return {};
}

} // namespace quire
