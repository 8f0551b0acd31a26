// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The operations of a sequence over a pool and a prefix index: attach, reserve, commit or roll back, fork, truncate, drop.
/// They allocate no block by themselves and free none: the caller brings blocks and takes retired ones, so that fences,
/// admission and eviction stay outside.
///
/// ```text
///   attach ─▶ reserve ─▶ commit ─▶ reserve ─▶ …          one writer, any readers per partial block:
///                 └────▶ roll_back                       a reader that appends copies the valid prefix first
/// ```

#include <quire/core/contract.hpp>
#include <quire/core/types.hpp>
#include <quire/prefix/prefix_match.hpp>
#include <quire/prefix/prefix_pin.hpp>
#include <quire/sequence/block_geometry.hpp>
#include <quire/sequence/sequence_state.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace quire {

/// What settling published.
struct settle_result {
  std::uint32_t published = 0;  ///< [blocks] that entered the index.
  std::uint32_t duplicates = 0; ///< [blocks] that were there already; the own copies stay private.
};

/// Whoever has nothing hanging on published blocks.
struct sees_nothing {
  /// Logical block \p j of the sequence is in the index as \p block.
  static auto published(std::uint32_t j, block_id block) noexcept -> void {
    static_cast<void>(j), static_cast<void>(block);
  }
  /// \p to took the place of \p from.
  static auto replaced(block_id from, block_id to) noexcept -> void { static_cast<void>(from), static_cast<void>(to); }
};

/// Operations on `sequence_state`. \tparam Pool a `block_pool`. \tparam Index models `prefix_index`.
template <class Pool, class Index>
class sequence_ops {
public:
  /// Works on \p pool and \p index, which outlive it. \pre they have the same number of blocks.
  sequence_ops(Pool& pool, Index& index, block_geometry geometry) noexcept
      : pool_{&pool}, index_{&index}, geometry_{geometry} {}

  /// The block arithmetic in use.
  [[nodiscard]] auto geometry() const noexcept -> block_geometry const& { return geometry_; }

  /// Attaches a match; its ids are in the table already. Positions from \p committed on that the match covers are stored and
  /// computed again: the last one of a hit that covers the whole prompt (S22), or what rebuilds windows (S28).
  /// \param skip_writes false: their writes are not skipped, and a write copies the block it goes to.
  /// \post (1) committed = known = reserved. \complexity O(nodes)
  /// \source S22, S26 (1)
  auto attach(sequence_state& s, prefix_match const& match, std::uint32_t committed, bool skip_writes) -> void {
    s.pin = index_->pin(match);
    s.pinned = match.blocks.value();
    s.table.shrink(s.pinned);
    s.committed = s.known = s.reserved = committed;
    s.table_before = s.pinned;
    s.stored = skip_writes ? s.pinned * geometry_.block_tokens() : 0;
  }

  /// True if the next write goes to a block that must be copied first.
  [[nodiscard]] auto must_copy(sequence_state const& s) const noexcept -> bool {
    auto const j = geometry_.index(s.committed);
    if (j >= s.table.size() || s.skips() > 0) { return false; }
    if (s.writer && j >= s.pinned) { return false; } // nobody else can have filled and published it
    if (j < s.pinned || pool_->state(s.table[j]) == Pool::state_type::published) { return true; } // full and immutable
    return !s.writer && pool_->holders(s.table[j]) > 1;
  }
  /// [blocks] that reserving \p q more positions takes, a copy included.
  [[nodiscard]] auto blocks_for(sequence_state const& s, std::uint32_t q) const noexcept -> std::uint32_t {
    auto const covered = geometry_.blocks(s.committed + q);
    return (covered > s.table.size() ? covered - s.table.size() : 0) + (must_copy(s) ? 1U : 0U);
  }

  /// Makes room for \p q positions with \p fresh blocks, `blocks_for(s, q)` of them. Nothing is written into them, tokens
  /// included: they may be victims that return to the index when the plan is dropped.
  /// \post (1) reserved = committed + q; (2) committed is unchanged; (3) `copy_source` names the block to copy from, if any.
  /// \pre no plan is open on \p s. \complexity O(q / p_b)
  /// \source S26 (3), S23
  auto reserve(sequence_state& s, std::uint32_t q, std::span<block_id const> fresh) -> void {
    QUIRE_EXPECTS(s.reserved == s.committed);
    s.table_before = s.table.size();
    std::size_t used = 0;
    if (!fresh.empty() && must_copy(s)) {
      settle_holds(s); // the block may have been published by its writer meanwhile
      auto const j = geometry_.index(s.committed);
      auto const target = fresh[used++];
      s.copy_source = s.table[j];
      s.table.remap(j, target);
    }
    for (; used < fresh.size(); ++used) { s.table.push_back(fresh[used]); }
    s.reserved = s.committed + q;
  }

  /// Undoes `reserve` and hands every fresh block to \p give_back(block_id).
  /// \post the state equals the state before `reserve`.
  template <class GiveBack>
  auto roll_back(sequence_state& s, GiveBack give_back) -> void {
    for (auto j = s.table.size(); j > s.table_before; --j) { give_back(s.table[j - 1]); } // last taken, first returned
    s.table.shrink(s.table_before);
    if (s.copy_source) {
      auto const j = geometry_.index(s.committed);
      give_back(s.table[j]);
      s.table.remap(j, s.copy_source);
      s.copy_source = block_id::none();
    }
    s.reserved = s.committed;
  }

  /// Advances the length over everything reserved, whose ids are \p tokens, or unknown if empty. Publishes what is full.
  /// \param retire receives blocks whose last holder this was (state `retiring`) and, if it takes pins, the pin on a copied block.
  /// \param seen as for `settle`
  /// \post (1) committed = reserved. \complexity O(new blocks)
  /// \source S26 (2, 4)
  template <class Retire, class Seen = sees_nothing>
  auto commit(sequence_state& s, std::span<token_id const> tokens, Retire retire, Seen seen = {}) -> settle_result {
    using event = typename Pool::event_type;
    QUIRE_EXPECTS(tokens.empty() || (tokens.size() == s.reserved - s.committed && s.known == s.committed));
    if (s.copy_source) {
      auto const j = geometry_.index(s.committed);
      auto const kept = index_->tokens(s.copy_source).first(geometry_.offset(s.committed));
      std::copy(kept.begin(), kept.end(), index_->tokens(s.table[j]).begin());
      pool_->apply(s.table[j], event::commit);
      leave_source(s, j, retire);
    }
    for (auto j = s.table_before; j < s.table.size(); ++j) { pool_->apply(s.table[j], event::commit); }
    if (!tokens.empty()) {
      auto const skipped = std::min(s.skips(), s.reserved - s.committed); // shared blocks have their tokens already
      keep_tokens(s, s.committed + skipped, tokens.subspan(skipped));
      s.known = s.reserved;
    }
    auto const full_before = geometry_.index(s.committed);
    s.writer = true; // fresh, copied, or written all along
    s.committed = s.reserved;
    s.table_before = s.table.size();
    return geometry_.index(s.committed) != full_before ? settle(s, seen) : settle_result{};
  }

  /// Makes the last block of the table, which the open plan took, one of \p s: the part of `commit` that a decode step with a
  /// block of its own needs.
  auto commit_block(sequence_state& s) -> void {
    pool_->apply(s.table[s.table.size() - 1], Pool::event_type::commit);
    s.table_before = s.table.size();
    s.writer = true;
  }

  /// Tells the ids of committed positions that were unknown; publishes what is full.
  /// \pre `known + tokens.size() <= committed`; where a block is shared these are the tokens it was computed for. \source B17
  template <class Seen = sees_nothing>
  auto resolve(sequence_state& s, std::span<token_id const> tokens, Seen seen = {}) -> settle_result {
    QUIRE_EXPECTS(s.known + tokens.size() <= s.committed);
    // Positions in shared blocks have their tokens, which must be these; a writer owns all others.
    auto at = s.known;
    for (auto const token : tokens) {
      auto const block = s.table[geometry_.index(at)];
      auto& stored = index_->tokens(block)[geometry_.offset(at)];
      if (own(block)) { stored = token; }
      QUIRE_EXPECTS(stored == token);
      ++at;
    }
    s.known = at;
    return settle(s, seen);
  }

  /// Publishes full blocks, moves onto equal ones that exist already, and turns holds on blocks that another holder
  /// published into pins.
  /// \param seen is told `seen.published(j, block)`: logical block j lies on the pinned path now, indexed as `block`, and
  /// `seen.replaced(from, to)`: block `to` took the place of `from` in the index.
  template <class Seen = sees_nothing>
  auto settle(sequence_state& s, Seen seen = {}) -> settle_result {
    settle_result result;
    auto const full = geometry_.index(std::min(s.committed, s.known));
    while (s.pinned < s.table.size()) {
      auto const block = s.table[s.pinned];
      if (pool_->state(block) == Pool::state_type::published) {
        index_->adopt(s.pin, block);
        static_cast<void>(pool_->release(block)); // the hold has become the pin
        seen.published(s.pinned, block);
        ++s.pinned;
      } else if (s.pinned < full && s.publishes) {
        publish(s, full, result, seen);
      } else if (adoptable_behind(s)) {
        follow(s, seen);
      } else {
        break;
      }
    }
    return result;
  }

  /// Makes \p child a copy of the first \p length positions of \p parent. At most one partial block will ever be copied.
  /// \pre no plan is open on \p parent; `length <= parent.committed`; \p child is empty.
  /// \post (1) child.committed = length; (2) both share every block. \complexity O(length / p_b)
  /// \source S23, B7; cases 25, 83, 84
  auto fork(sequence_state& parent, sequence_state& child, std::uint32_t length) -> void {
    QUIRE_EXPECTS(parent.reserved == parent.committed && length <= parent.committed);
    settle(parent);
    auto const size = geometry_.blocks(length);
    child.table.assign(parent.table.blocks().first(size));
    child.pinned = std::min(parent.pinned, size);
    child.pin = index_->pin_back(parent.pin, block_count{parent.pinned - child.pinned});
    if (parent.twins > 0) {
      for (std::uint32_t j = 0; j < child.pinned; ++j) {
        if (own(child.table[j])) {
          pool_->retain(child.table[j]);
          ++child.twins;
        }
      }
    }
    for (auto j = child.pinned; j < size; ++j) { pool_->retain(child.table[j]); }
    child.committed = child.reserved = length;
    child.table_before = size;
    child.known = std::min(parent.known, length);
    child.writer = false;
    child.stored = 0; // its next token need not be the one that is stored
    child.publishes = parent.publishes;
    child.forked = parent.forked = true;
  }

  /// [blocks] that cutting \p s back to \p length would make free or evictable, at once or past their fence.
  /// \param pins the longer pin is released at once: one that waits may keep its blocks, if somebody finds them meanwhile.
  /// \pre no plan is open; `length <= committed`. \complexity O(blocks dropped)
  [[nodiscard]] auto would_free(sequence_state& s, std::uint32_t length, bool pins = true) -> std::uint32_t {
    settle_holds(s);
    auto const size = geometry_.blocks(length);
    auto n = pins && size < s.pinned ? index_->would_release(s.pin, block_count{s.pinned - size}).value() : 0U;
    for (auto j = s.twins > 0 ? size : std::max(size, s.pinned); j < s.table.size(); ++j) {
      n += (j >= s.pinned || own(s.table[j])) && pool_->holders(s.table[j]) == 1 ? 1U : 0U;
    }
    return n;
  }
  /// True if a sequence cut back to \p length would have to copy a block before it writes again.
  /// \pre as `would_free`, which was called before
  [[nodiscard]] auto would_copy(sequence_state const& s, std::uint32_t length) const noexcept -> bool {
    auto const j = geometry_.index(length);
    return geometry_.offset(length) != 0 && (j < s.pinned || pool_->holders(s.table[j]) > 1);
  }

  /// Cuts \p s back to \p length positions. Nothing unpublishes: what was shared stays shared.
  /// \param retire receives private blocks whose last holder this was (state `retiring`) and, if it takes pins, the longer pin.
  /// \pre no plan is open; `length <= committed`. \complexity O(blocks dropped)
  /// \source B6; cases 79, 117
  template <class Retire>
  auto truncate(sequence_state& s, std::uint32_t length, Retire retire) -> void {
    QUIRE_EXPECTS(s.reserved == s.committed && length <= s.committed);
    if (length == s.committed && s.table.size() == geometry_.blocks(length)) { return; }
    settle(s);
    auto const size = geometry_.blocks(length);
    for (auto j = size; j < s.table.size(); ++j) {
      if (j >= s.pinned || (s.twins > 0 && own(s.table[j]))) {
        if (j < s.pinned) { --s.twins; }
        let_go(s.table[j], retire);
      }
    }
    s.table.shrink(size);
    if (size < s.pinned) { pin_shorter(s, size, retire); }
    s.committed = s.reserved = length;
    s.known = std::min(s.known, length);
    s.table_before = size;
    s.stored = 0;
    // Others may read what this sequence would now overwrite: it is a reader like them until it is alone.
    s.writer = size == 0 || size <= s.pinned || pool_->holders(s.table[size - 1]) == 1;
  }

  /// Gives everything back. \post \p s is empty. \pre no plan is open.
  /// \param retire receives private blocks whose last holder this was (state `retiring`) and, if it takes pins, the pin.
  /// \complexity O(nodes) for what is pinned + O(private blocks)
  /// \source S26 (5)
  template <class Retire>
  auto drop(sequence_state& s, Retire retire) -> void {
    end(s, retire, [&](std::span<block_id const> held) {
      for (auto const block : held) { let_go(block, retire); }
    });
  }
  /// The same where no in-flight work touches the blocks any more: private ones are free at once.
  auto drop(sequence_state& s) -> void {
    auto nothing_waits = [](block_id) {};
    end(s, nothing_waits, [&](std::span<block_id const> held) { pool_->release_and_reclaim(held); });
  }

private:
  /// A block on the pinned path that the table reaches as an own copy.
  [[nodiscard]] auto own(block_id block) const noexcept -> bool {
    return pool_->state(block) == Pool::state_type::private_;
  }

  /// Empties \p s; \p discard(span) drops its hold on blocks that it reaches through its table and not through its pin.
  template <class Retire, class Discard>
  auto end(sequence_state& s, Retire& retire, Discard discard) -> void {
    if (s.pin) {
      if (s.pinned < s.table.size()) { settle_holds(s); }
      std::uint32_t twins = 0;
      for (std::uint32_t j = 0; twins < s.twins; ++j) { // the table has served: its front collects them
        if (own(s.table[j])) { s.table.remap(twins++, s.table[j]); }
      }
      discard(s.table.blocks().first(twins));
      discard(s.table.blocks().subspan(s.pinned));
      give_pin(std::move(s.pin), retire);
    }
    s.table.shrink(0);
    s.pinned = s.twins = s.committed = s.known = s.stored = s.reserved = s.table_before = 0;
    s.writer = s.forked = false;
  }

  /// Gives a pin up, or lets it wait if \p retire takes pins.
  template <class Retire>
  auto give_pin(prefix_pin&& pin, Retire& retire) -> void {
    if constexpr (std::invocable<Retire&, prefix_pin&&>) {
      retire(std::move(pin));
    } else {
      index_->release(std::move(pin));
    }
  }
  template <class Retire>
  auto let_go(block_id block, Retire& retire) -> void {
    if (pool_->release_and_retire(block)) { retire(block); }
  }
  auto keep_tokens(sequence_state& s, std::uint32_t at, std::span<token_id const> tokens) -> void {
    if (tokens.size() == 1) { // decode
      index_->tokens(s.table[geometry_.index(at)])[geometry_.offset(at)] = tokens.front();
      return;
    }
    while (!tokens.empty()) {
      auto const offset = geometry_.offset(at);
      auto const n = std::min<std::size_t>(geometry_.block_tokens() - offset, tokens.size());
      auto const to = index_->tokens(s.table[geometry_.index(at)]).subspan(offset, n);
      std::copy_n(tokens.begin(), n, to.begin());
      tokens = tokens.subspan(n);
      at += static_cast<std::uint32_t>(n);
    }
  }
  template <class Retire>
  auto leave_source(sequence_state& s, std::uint32_t j, Retire& retire) -> void {
    auto const source = std::exchange(s.copy_source, block_id::none());
    if (j >= s.pinned && pool_->state(source) == Pool::state_type::published) { // by its writer, since the plan
      auto const target = s.table[j];
      s.table.remap(j, source);
      settle_holds(s);
      s.table.remap(j, target);
    }
    if (j >= s.pinned) {
      let_go(source, retire);
      return;
    }
    if (own(source)) {
      --s.twins;
      let_go(source, retire);
    }
    pin_shorter(s, j, retire);
  }
  template <class Retire>
  auto pin_shorter(sequence_state& s, std::uint32_t pinned, Retire& retire) -> void {
    auto shorter = index_->pin_back(s.pin, block_count{s.pinned - pinned});
    give_pin(std::move(s.pin), retire); // in-flight work may read what only this pin protects
    s.pin = std::move(shorter);
    s.pinned = pinned;
  }
  /// Publishes the private full blocks from `pinned` on, up to and including the first that others hold too.
  template <class Seen>
  auto publish(sequence_state& s, std::uint32_t full, settle_result& result, Seen& seen) -> void {
    auto end = s.pinned;
    auto holders = 1U;
    while (end < full && holders == 1 && own(s.table[end])) { holders = pool_->holders(s.table[end++]); }
    auto const blocks = s.table.blocks().subspan(s.pinned, end - s.pinned);
    auto const done = index_->publish(s.pin, blocks);
    for (std::uint32_t i = 0; i < done.published.value(); ++i) {
      pool_->apply(blocks[i], Pool::event_type::publish);
      static_cast<void>(pool_->release(blocks[i])); // the own hold has become the pin
    }
    if (done.replaced) { seen.replaced(done.replaced, blocks[done.published.value() - 1]); }
    for (std::uint32_t i = 0; i < done.published.value(); ++i) { seen.published(s.pinned + i, blocks[i]); }
    s.pinned += done.published.value();
    result.published += done.published.value();
    if (done.replaced) {
      pool_->retire_and_reclaim(done.replaced);
      --result.published;
      ++result.duplicates;
    }
    if (done.duplicate) {
      seen.published(s.pinned, done.twin);
      ++s.pinned;
      ++s.twins;
      ++result.duplicates;
    } else if (holders > 1 && done.published.value() == blocks.size()) {
      index_->hold(s.pin, holders - 1);
    }
  }
  /// True if a block behind the first unpinned one was published by another holder, so that the pin must get there.
  [[nodiscard]] auto adoptable_behind(sequence_state const& s) const noexcept -> bool {
    if (!s.forked) { return false; }
    for (auto j = s.pinned + 1; j < s.table.size(); ++j) {
      if (pool_->state(s.table[j]) == Pool::state_type::published) { return true; }
    }
    return false;
  }
  /// Moves the pin onto the indexed twin of the first unpinned block. It exists, because a block below it is held.
  template <class Seen>
  auto follow(sequence_state& s, Seen& seen) -> void {
    auto const block = s.table[s.pinned];
    auto const done = index_->publish(s.pin, {&block, 1});
    QUIRE_EXPECTS(done.duplicate);
    seen.published(s.pinned, done.twin);
    ++s.pinned;
    ++s.twins;
  }
  /// Turns holds into pins without publishing anything new, before everything is given back.
  auto settle_holds(sequence_state& s) -> void {
    auto const publishes = std::exchange(s.publishes, false);
    settle(s);
    s.publishes = publishes;
  }

  Pool* pool_;
  Index* index_;
  block_geometry geometry_;
};

} // namespace quire
