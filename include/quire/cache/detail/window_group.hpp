// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A layer group that gives blocks up: its pool, its tables, and its blocks that hang on prefix nodes.
///
/// ```text
///   lead blocks (the index)    [ a ][ b ][ c ][ d ]      identity: tokens, parent, key
///   this group's blocks          -    -   (5)  (3)       hang on them, come and go by themselves
/// ```
///
/// A block hangs on the lead block in which it ends. While somebody holds it, or a device may still read it, it has
/// holders; without any it is *idle*: found by matches, and the first to be taken when room is short. All window
/// arithmetic is `resident_range`'s.

#include <quire/cache/cache_group.hpp>
#include <quire/cache/detail/group_table.hpp>
#include <quire/cache/detail/shared_memory.hpp>
#include <quire/core/contract.hpp>
#include <quire/core/types.hpp>
#include <quire/model/capacity.hpp>
#include <quire/model/intervals.hpp>
#include <quire/model/resident_blocks.hpp>
#include <quire/model/resident_range.hpp>
#include <quire/model/retention.hpp>
#include <quire/prefix/node_id.hpp>
#include <quire/prefix/order_list.hpp>
#include <quire/sequence/block_geometry.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
/// \tparam Pool a `block_pool`.
template <class Pool>
class window_group {
  using state_type = typename Pool::state_type;
  using event_type = typename Pool::event_type;

public:
  /// \param lead [blocks] of the index, of \p lead_tokens tokens each. \throws config_error, std::bad_alloc
  /// \param pool its blocks
  window_group(group_id id, cache_group const& spec, block_count lead, token_count lead_tokens, Pool pool)
      : id_{id}, keeps_{stored(spec.keeps)}, shares_{spec.keeps.shareable()}, geometry_{spec.block_tokens},
        lead_{lead_tokens},
        per_lead_{(lead_tokens.value() + spec.block_tokens.value() - 1) / spec.block_tokens.value()},
        pool_{std::move(pool)}, hanging_(std::size_t{lead.value()} * per_lead_),
        home_(pool_.capacity().value(), nowhere), hooks_(std::size_t{pool_.capacity().value()} + 1),
        users_(pool_.capacity().value()) {}

  [[nodiscard]] auto id() const noexcept -> group_id { return id_; }
  [[nodiscard]] auto keeps() const noexcept -> retention const& { return keeps_; }
  [[nodiscard]] auto geometry() const noexcept -> block_geometry const& { return geometry_; }
  [[nodiscard]] auto pool() const noexcept -> Pool const& { return pool_; }
  /// [blocks] that hold matchable content which nobody uses.
  [[nodiscard]] auto idle() const noexcept -> block_count { return block_count{idle_count_}; }
  [[nodiscard]] auto available() const noexcept -> block_count { return pool_.free_blocks() + idle(); }
  /// [blocks] that the sequences may still take: their budgets, less the blocks in use. A block that several use counts once:
  /// when one of them moves on, the others keep it, and the one needs another.
  [[nodiscard]] auto promised() const noexcept -> std::uint32_t { return budgets_ - std::min(budgets_, in_use_); }
  /// [blocks] held by all tables, with their multiplicity.
  [[nodiscard]] auto held() const noexcept -> std::uint32_t { return held_; }

  /// [blocks] that a sequence of up to \p limit positions holds at most, when a step adds up to \p append of them and up
  /// to \p rewind may be taken back; one to copy into included.
  [[nodiscard]] auto budget(std::uint64_t limit, std::uint64_t append, std::uint64_t rewind) const -> std::uint32_t {
    auto const step = static_cast<std::uint32_t>(std::min(append + rewind, limit + rewind));
    auto const pages = paging{.block_tokens = token_count{geometry_.block_tokens()}, .step = token_count{step}};
    return peak_blocks(keeps_, token_count{static_cast<std::uint32_t>(limit)}, pages).value() + 1;
  }
  /// Columns that views need for tables of that \p budget and up to \p limit positions.
  [[nodiscard]] auto columns(std::uint32_t limit, std::uint32_t budget) const noexcept -> std::uint32_t {
    auto const all = geometry_.blocks(limit);
    return keeps_.sinks.value() > 0 ? all : std::min(all, 2 * budget + least_shift);
  }

  // --- matching -----------------------------------------------------------------------------------------------------
  /// The longest hit of at most \p hit positions of a prompt of \p prompt that this group can serve, \p lead being the
  /// blocks found. It only shrinks. \complexity O(blocks inspected): none is inspected twice. \source S29
  [[nodiscard]] auto longest_hit(std::span<block_id const> lead, std::uint32_t prompt, std::uint32_t hit) const
      -> std::uint32_t {
    if (!shares_) { return 0; }
    for (;;) {
      hit -= geometry_.offset(hit);
      auto const missing = hit == 0 ? std::nullopt : last_missing(lead, prompt, hit);
      if (!missing) { return hit; }
      hit = *missing * geometry_.block_tokens(); // every longer hit, up to this one, needs that block
    }
  }
  /// Nothing of it can be rebuilt by computing positions again from somewhere on.
  [[nodiscard]] auto has_sinks() const noexcept -> bool { return keeps_.sinks.value() > 0; }
  /// What `find` found: blocks, and those of them that are idle, which holding them takes out of what is available.
  struct finding {
    std::uint32_t blocks = 0;
    std::uint32_t idle = 0;
  };
  /// Writes what a hit needs into the table of a new sequence, which does not hold it yet.
  /// \pre `longest_hit` gave the hit, and the table has room \complexity O(blocks of the hit)
  auto find(group_table& t, std::span<block_id const> lead, std::uint32_t prompt, std::uint32_t hit) const -> finding {
    auto const need = need_of(prompt, hit);
    auto const tail = need.tail_blocks(token_count{hit});
    t.blocks.assign(geometry_.blocks(hit), block_id::none());
    finding out;
    auto const write = [&](logical_block_interval blocks) {
      for (auto j = blocks.begin.value(); j < blocks.end.value(); ++j) {
        t.blocks[j] = hanging_[place_of(lead, j)];
        out.idle += pool_.holders(t.blocks[j]) == 0 ? 1U : 0U;
      }
      out.blocks += blocks.size().value();
    };
    write(need.sink_blocks(token_count{hit}));
    write(tail);
    t.before = t.size();
    t.stored = hit;
    t.gone = gone_of(need.dead_blocks(token_count{hit}));
    rebase(t);
    return out;
  }
  /// The table of a sequence that is not let in after all.
  static auto forget(group_table& t) noexcept -> void {
    t.blocks.clear();
    t.gone = t.base = t.before = t.stored = t.budget = 0;
    t.stamp = 0;
  }
  /// Holds what `find` wrote.
  auto attach(group_table& t) -> void {
    each_held(t, [&](std::uint32_t j) {
      hold(t.blocks[j]);
      ++t.held;
    });
  }
  /// Begins at \p position, a multiple of the block, as if nothing came before: what is computed from there on rebuilds the
  /// window. \pre no sinks, and the table has room \source S28
  auto begin_at(group_table& t, std::uint32_t position) -> void {
    t.blocks.assign(geometry_.blocks(position), block_id::none());
    t.before = t.gone = t.base = t.size();
    t.stamp = 0;
  }

  // --- steps --------------------------------------------------------------------------------------------------------
  /// True if the next write of a sequence goes to a block that must be copied first.
  [[nodiscard]] auto must_copy(group_table const& t, std::uint32_t committed, bool writer, std::uint32_t skips) const
      -> bool {
    auto const j = geometry_.index(committed);
    if (skips > 0 || j >= t.size() || !t.blocks[j]) { return false; }
    return pool_.state(t.blocks[j]) == state_type::published || (!writer && pool_.holders(t.blocks[j]) > 1);
  }
  /// [blocks] that \p q more positions take, a copy included.
  [[nodiscard]] auto blocks_for(group_table const& t, std::uint32_t committed, std::uint32_t q, bool writer,
                                std::uint32_t skips) const -> std::uint32_t {
    auto const size = geometry_.blocks(committed + q);
    return (size > t.size() ? size - t.size() : 0) + (must_copy(t, committed, writer, skips) ? 1U : 0U);
  }
  /// Makes sure that taking \p blocks needs no memory. \throws std::bad_alloc; nothing has changed then.
  auto reserve_claims(std::uint32_t blocks) -> void { claims_.reserve(claims_.size() + blocks); }
  /// Takes what \p q more positions need; `copy_source` names the block to copy from, if any.
  /// \pre that many are available, `reserve_claims`, and the table has room
  /// \param idle_first idle blocks before free ones, which others may need more
  auto reserve(group_table& t, std::uint32_t committed, std::uint32_t q, bool writer, std::uint32_t skips,
               bool idle_first = false) -> void {
    if (must_copy(t, committed, writer, skips)) {
      auto& entry = t.blocks[geometry_.index(committed)];
      t.copy_source = entry;
      entry = use(take(idle_first));
      t.stamp = 0;
      ++t.held;
    }
    for (auto const size = geometry_.blocks(committed + q); t.size() < size; ++t.held) {
      t.blocks.push_back(use(take(idle_first)));
    }
    account(t);
  }
  // Holds that end go to \p retire(block, end), `end` being the position behind what this sequence may have written there.
  /// Undoes `reserve`; fresh blocks retire, unless they are victims that will be restored.
  template <class Retire>
  auto roll_back(group_table& t, std::uint32_t committed, Retire retire) -> void {
    auto const give_back = [&](block_id block, std::uint32_t j) {
      --t.held;
      leave_use(t, block);
      if (pool_.state(block) != state_type::condemned) { retire(block, end_of(j)); }
    };
    for (; t.size() > t.before; t.blocks.pop_back()) { give_back(t.blocks.back(), t.size() - 1); }
    if (t.copy_source) {
      auto const j = geometry_.index(committed);
      auto& entry = t.blocks[j];
      give_back(entry, j);
      entry = t.copy_source;
      t.copy_source = block_id::none();
      t.stamp = 0;
    }
    account(t);
  }
  /// Makes the open plan's blocks the sequence's own. \p committed is the length before it.
  template <class Retire>
  auto commit(group_table& t, std::uint32_t committed, Retire retire) -> void {
    if (t.copy_source) {
      pool_.apply(t.blocks[geometry_.index(committed)], event_type::commit);
      leave_use(t, t.copy_source);
      retire(t.copy_source, committed); // it may have written that much of it
      t.copy_source = block_id::none();
      --t.held;
    }
    for (; t.before < t.size(); ++t.before) { pool_.apply(t.blocks[t.before], event_type::commit); }
    account(t);
  }
  /// Hangs the blocks that end in logical lead block \p u on \p lead, which is published now.
  auto publish(group_table const& t, std::uint32_t u, block_id lead) -> void {
    if (!shares_) { return; }
    auto const end = (u + 1) * lead_.block_tokens();
    auto place = std::size_t{lead.value()} * per_lead_;
    for (auto j = first_in(u); (j + 1) * geometry_.block_tokens() <= end; ++j, ++place) {
      if (j >= t.size() || !t.blocks[j] || hanging_[place]) { continue; }
      if (pool_.state(t.blocks[j]) != state_type::private_) { continue; }
      pool_.apply(t.blocks[j], event_type::publish);
      hanging_[place] = t.blocks[j];
      home_[t.blocks[j].value()] = static_cast<std::uint32_t>(place);
    }
  }
  /// Gives up what no query from \p oldest_query on can see. \complexity O(blocks given up)
  template <class Retire>
  auto give_up(group_table& t, std::uint32_t oldest_query, Retire retire) -> void {
    auto const dead = resident_range(token_pos{oldest_query}, keeps_, token_count{geometry_.block_tokens()}).dead;
    auto const end = std::min(dead.end.value(), t.size());
    if (end <= std::max(t.gone, dead.begin.value())) { return; } // nothing lies between sinks and tail yet
    for (auto j = std::max(t.gone, dead.begin.value()); j < end; ++j) { leave(t, j, retire); }
    t.gone = end;
    rebase(t);
    account(t);
  }
  /// The next position of a sequence that may be written without any of this, and how many: 0 = none.
  [[nodiscard]] auto lane(group_table& t, std::uint32_t committed) const -> std::uint32_t {
    auto const j = geometry_.index(committed);
    auto const offset = geometry_.offset(committed);
    if (offset == 0 || j >= t.size() || !t.blocks[j] || pool_.state(t.blocks[j]) != state_type::private_) { return 0; }
    t.lane_shift = (std::int64_t{t.blocks[j].value()} - j) * geometry_.block_tokens();
    return geometry_.block_tokens() - offset;
  }

  /// True if `next` has what it takes. \pre no copy is needed
  [[nodiscard]] auto has_next(group_table& t, std::uint32_t committed) const -> bool {
    return geometry_.index(committed) < t.size() ? lane(t, committed) > 0 : available() != block_count{};
  }
  /// Room for one more position, in a block of its own if the last one is full. \returns how many may follow without any of
  /// this, that one included. \pre `has_next`, `reserve_claims`, and the table has room
  auto next(group_table& t, std::uint32_t committed) -> std::uint32_t {
    auto const j = geometry_.index(committed);
    if (j < t.size()) { return lane(t, committed); }
    t.blocks.push_back(use(take()));
    ++t.held;
    account(t);
    t.lane_shift = (std::int64_t{t.blocks[j].value()} - j) * geometry_.block_tokens();
    return geometry_.block_tokens();
  }

  // --- sequences ----------------------------------------------------------------------------------------------------
  /// The first position from \p length on at which the sequence could go on after a cut back to it; none if there is none.
  [[nodiscard]] auto resumable(group_table const& t, std::uint32_t length, std::uint32_t committed) const
      -> std::optional<token_pos> {
    auto const begin = std::min(t.gone * geometry_.block_tokens(), committed);
    auto const present = position_interval{token_pos{begin}, token_pos{committed}};
    for (auto from = token_pos{length};;) {
      auto const at = earliest_resumable(from, present, keeps_);
      // A short window or a new chunk may need nothing from before, but what it writes first must have its block.
      if (!at || geometry_.offset(at->value()) == 0 || t.blocks[geometry_.index(at->value())]) { return at; }
      from = token_pos{(geometry_.index(at->value()) + 1) * geometry_.block_tokens()};
    }
  }
  /// True if others may read the partial last block of a sequence of \p length positions.
  [[nodiscard]] auto shared_end(group_table const& t, std::uint32_t length) const -> bool {
    auto const j = geometry_.index(length);
    return geometry_.offset(length) != 0 && t.blocks[j] && pool_.holders(t.blocks[j]) > 1;
  }
  template <class Retire>
  auto truncate(group_table& t, std::uint32_t length, Retire retire) -> void {
    auto const size = geometry_.blocks(length);
    for (auto j = t.size(); j-- > size;) { leave(t, j, retire); }
    t.blocks.resize(size);
    t.before = size;
    t.gone = std::min(t.gone, size);
    t.stored = 0;
    t.base = std::min(t.base, size);
    t.stamp = 0;
    account(t);
  }
  /// Shares what a child of \p length positions needs. \pre `resumable(parent, length)`, and the table has room
  auto fork(group_table const& parent, group_table& child, std::uint32_t length) -> void {
    auto const need = resident_range(token_pos{length}, keeps_, token_count{geometry_.block_tokens()});
    child.blocks.assign(geometry_.blocks(length), block_id::none());
    auto const share = [&](logical_block_interval blocks) {
      for (auto j = blocks.begin.value(); j < blocks.end.value(); ++j) {
        child.blocks[j] = parent.blocks[j];
        pool_.retain(child.blocks[j]);
        ++child.held;
      }
    };
    share(need.sink_blocks(token_count{length}));
    share(need.tail_blocks(token_count{length}));
    child.before = child.size();
    child.gone = gone_of(need.dead_blocks(token_count{length}));
    rebase(child);
  }
  /// Gives everything back, deepest first. \post the table is empty
  template <class Retire>
  auto drop(group_table& t, Retire retire) -> void {
    for (auto j = t.size(); j-- > t.gone;) { leave(t, j, retire); }
    for (auto j = std::min(t.gone, geometry_.blocks(keeps_.sinks.value())); j-- > 0;) { leave(t, j, retire); }
    budgets_ -= t.budget;
    forget(t);
    account(t);
  }
  /// Lets a sequence that begins hold up to \p budget blocks; 0 = it ends: what it holds is nobody's use any more.
  auto allow(group_table& t, std::uint32_t budget) -> void {
    auto const each = [&](auto visit) {
      if (t.copy_source) { visit(t.copy_source); }
      each_held(t, [&](std::uint32_t j) { visit(t.blocks[j]); });
    };
    if (budget > 0) {
      budgets_ += budget;
      t.budget = budget;
      each([&](block_id block) { use(block); });
    } else {
      each([&](block_id block) { leave_use(t, block); });
      budgets_ -= t.budget;
      t.budget = 0;
    }
    account(t);
  }
  /// Ends a hold on \p block that no device work needs any more.
  auto let_go(block_id block) -> void {
    if (!pool_.release(block)) { return; }
    if (pool_.state(block) != state_type::published) { return pool_.retire_and_reclaim(block); }
    idle_.push_back(*this, node_of(block));
    ++idle_count_;
  }

  /// Frees up to \p blocks that have been idle longest. \pre no plan is open \returns how many
  auto evict(std::uint32_t blocks) -> block_count {
    auto const n = std::min(blocks, idle_count_);
    for (std::uint32_t i = 0; i < n; ++i) {
      auto const block = block_id{idle_.front().value() - 1};
      leave_idle(block);
      hanging_[home_[block.value()]] = block_id::none();
      home_[block.value()] = nowhere;
      pool_.retire_and_reclaim(block);
    }
    return block_count{n};
  }

  // --- a lost device ------------------------------------------------------------------------------------------------
  /// Visits the blocks of \p t that reach beyond \p position.
  template <class Visit>
  auto each_behind(group_table const& t, std::uint32_t position, Visit visit) const -> void {
    for (auto j = geometry_.index(position); j < t.size(); ++j) {
      if (t.blocks[j]) { visit(t.blocks[j]); }
    }
  }
  /// [tokens] in front of the first block of \p t that is not \p ready(block); none if all are.
  template <class Ready>
  [[nodiscard]] auto ready_length(group_table const& t, Ready ready) const -> std::optional<std::uint32_t> {
    for (std::uint32_t j = 0; j < t.size(); ++j) {
      if (t.blocks[j] && !ready(t.blocks[j])) { return j * geometry_.block_tokens(); }
    }
    return std::nullopt;
  }
  /// Nobody finds \p block any more. \pre it has a holder
  auto detach(block_id block) -> void {
    auto const place = std::exchange(home_[block.value()], nowhere);
    if (place == nowhere) { return; }
    hanging_[place] = block_id::none();
    pool_.apply(block, event_type::unpublish);
  }
  /// Ends a hold on \p block, which is never used again, and hangs nowhere.
  auto lose(block_id block) -> void {
    if (!pool_.release(block)) { return; }
    pool_.apply(block, event_type::retire);
    ++lost_;
  }
  /// [blocks] given up because a device may still write them.
  [[nodiscard]] auto lost() const noexcept -> block_count { return block_count{lost_}; }

  // --- what the index does ------------------------------------------------------------------------------------------
  /// The open plan's victims are final. \returns [blocks] how many there were
  auto confirm() -> block_count {
    for (auto const block : claims_) {
      hanging_[home_[block.value()]] = block_id::none();
      home_[block.value()] = nowhere;
      pool_.reuse(block);
    }
    auto const n = block_count{static_cast<std::uint32_t>(claims_.size())};
    claims_.clear();
    return n;
  }
  /// The open plan is dropped: its victims are back in their places.
  auto restore() -> void {
    for (auto i = claims_.size(); i-- > 0;) {
      pool_.apply(claims_[i], event_type::restore);
      idle_.push_front(*this, node_of(claims_[i]));
      ++idle_count_;
    }
    claims_.clear();
  }
  /// Lead block \p lead left the index: what hung on it cannot be found any more. \pre none of it is claimed
  auto unhang(block_id lead) -> void {
    for (auto place = std::size_t{lead.value()} * per_lead_, end = place + per_lead_; place < end; ++place) {
      auto const block = std::exchange(hanging_[place], block_id::none());
      if (!block) { continue; }
      home_[block.value()] = nowhere;
      if (pool_.holders(block) > 0) {
        pool_.apply(block, event_type::unpublish);
      } else {
        leave_idle(block);
        pool_.retire_and_reclaim(block);
      }
    }
  }
  /// Lead block \p to took the place of \p from in the index.
  auto rehang(block_id from, block_id to) -> void {
    for (std::size_t i = 0; i < per_lead_; ++i) {
      auto const place = std::size_t{to.value()} * per_lead_ + i;
      auto const block = std::exchange(hanging_[std::size_t{from.value()} * per_lead_ + i], block_id::none());
      QUIRE_EXPECTS(!hanging_[place]);
      hanging_[place] = block;
      if (block) { home_[block.value()] = static_cast<std::uint32_t>(place); }
    }
  }
  /// Lead block b is block `to[b]` from now on, unless that is none. \pre every target was outside the index
  auto relocate_lead(std::span<block_id const> to) -> void {
    for (std::uint32_t b = 0; b < to.size(); ++b) {
      if (to[b]) { rehang(block_id{b}, to[b]); }
    }
  }
  /// Block b is block `to[b]` from now on, unless that is none. \pre every target is free
  auto relocate(std::span<block_id const> to) noexcept -> void {
    auto const place = [&](block_id block) { return to[block.value()] ? to[block.value()] : block; };
    pool_.relocate(to);
    for (std::uint32_t b = 0; b < to.size(); ++b) {
      if (to[b]) { std::swap(users_[b], users_[to[b].value()]); }
    }
    for (std::uint32_t b = 0; b < to.size(); ++b) {
      if (!to[b] || home_[b] == nowhere) { continue; }
      home_[to[b].value()] = std::exchange(home_[b], nowhere);
      hanging_[home_[to[b].value()]] = to[b];
    }
    auto at = std::exchange(idle_, order_list{}).front();
    while (at) { // the hooks of the new places are unused
      auto const next = next_idle(at);
      idle_.push_back(*this, node_of(place(block_id{at.value() - 1})));
      at = next;
    }
  }
  /// The same for a table.
  auto relocate(group_table& t, std::span<block_id const> to) const noexcept -> void {
    for (auto& block : t.blocks) {
      if (block && to[block.value()]) { block = to[block.value()]; }
    }
    t.stamp = 0;
  }

  /// First broken invariant, empty if all hold. \param holders as the tables and waiting holds count them, per block
  /// \param users as the tables of sequences that have not ended count them
  /// \param published(lead) tells whether a lead block is in the index
  template <class Published>
  [[nodiscard]] auto audit(std::span<std::uint32_t const> holders, std::span<std::uint32_t const> users, bool plan_open,
                           Published published) const -> std::string {
    std::uint32_t free = 0;
    std::uint32_t idle = 0;
    std::uint32_t in_use = 0;
    std::uint32_t retiring = 0;
    for (std::uint32_t b = 0; b < home_.size(); ++b) {
      auto const block = block_id{b};
      auto const state = pool_.state(block);
      auto const name = "group " + std::to_string(id_.value()) + ", block " + std::to_string(b);
      free += state == state_type::free ? 1U : 0U;
      retiring += state == state_type::retiring ? 1U : 0U;
      if (pool_.holders(block) != holders[b]) { return name + ": holders differ from the tables that name it"; }
      if (users_[b] != users[b]) { return name + ": the sequences that use it are miscounted"; }
      in_use += users[b] > 0 ? 1U : 0U;
      auto const hangs = home_[b] != nowhere;
      if (hangs != (state == state_type::published || state == state_type::condemned)) {
        return name + ": published and hanging disagree";
      }
      if (hangs && hanging_[home_[b]] != block) { return name + ": it does not hang where it says"; }
      if (hangs && !published(block_id{home_[b] / per_lead_})) {
        return name + ": it hangs on a block outside the index";
      }
      if (state == state_type::condemned && !plan_open) { return name + ": condemned without a plan"; }
      if ((state == state_type::writing || state == state_type::private_) && holders[b] == 0) {
        return name + ": in use without a holder";
      }
      idle += state == state_type::published && holders[b] == 0 ? 1U : 0U;
    }
    auto const name = "group " + std::to_string(id_.value());
    if (in_use != in_use_) { return name + ": blocks in use are miscounted"; }
    if (retiring != lost_) { return name + ": retiring blocks are not given up"; }
    if (shared_memory<typename Pool::allocation_type>::shared ? free < pool_.free_blocks().value()
                                                              : free != pool_.free_blocks().value()) {
      return name + ": free blocks are miscounted";
    }
    std::uint32_t listed = 0;
    for (auto at = idle_.front(); at && listed <= idle; at = next_idle(at)) { ++listed; }
    if (idle != idle_count_ || listed != idle) { return name + ": idle blocks are miscounted"; }
    for (std::size_t place = 0; place < hanging_.size(); ++place) {
      if (hanging_[place] && home_[hanging_[place].value()] != place) { return name + ": a place names a stranger"; }
    }
    return {};
  }
  /// Hook of a block in the order of idle ones.
  [[nodiscard]] auto hook(node_id node) noexcept -> order_hook& { return hooks_[node.value()]; }

private:
  static constexpr std::uint32_t nowhere = 0xffff'ffffU;
  static constexpr std::uint32_t least_shift = 8; // [blocks] views move on by at least that much

  /// A ring is a window whose blocks nobody shares: by whole blocks its pool recycles them as well.
  static auto stored(retention const& keeps) -> retention {
    if (keeps.kind != retention_kind::ring) { return keeps; }
    return retention::sink_window({.sinks = keeps.sinks, .window = keeps.extent});
  }
  [[nodiscard]] auto end_of(std::uint32_t j) const noexcept -> std::uint32_t {
    return (j + 1) * geometry_.block_tokens();
  }
  [[nodiscard]] auto next_idle(node_id at) const noexcept -> node_id {
    auto const next = hooks_[at.value()].next;
    return next == 0 ? node_id::none() : node_id{next};
  }
  static auto gone_of(logical_block_interval dead) noexcept -> std::uint32_t {
    return dead.begin < dead.end ? dead.end.value() : 0;
  }
  static auto node_of(block_id block) noexcept -> node_id { return node_id{block.value() + 1}; }
  /// First logical block that ends in logical lead block \p u.
  [[nodiscard]] auto first_in(std::uint32_t u) const noexcept -> std::uint32_t {
    return geometry_.index(u * lead_.block_tokens());
  }
  /// What the first query behind a hit needs; behind a hit of the whole prompt that is its last position.
  [[nodiscard]] auto need_of(std::uint32_t prompt, std::uint32_t hit) const -> resident_blocks {
    return resident_range(token_pos{std::min(hit, prompt - 1)}, keeps_, token_count{geometry_.block_tokens()});
  }
  /// Calls \p visit(j) for every entry that is not none: the sinks, and what lies behind what is gone.
  template <class Visit>
  auto each_held(group_table const& t, Visit visit) const -> void {
    auto const sinks = std::min(geometry_.blocks(keeps_.sinks.value()), t.gone);
    for (std::uint32_t j = 0; j < sinks; ++j) {
      if (t.blocks[j]) { visit(j); }
    }
    for (auto j = t.gone; j < t.size(); ++j) {
      if (t.blocks[j]) { visit(j); }
    }
  }
  /// Where logical block \p j hangs if it does. \pre the lead blocks reach there
  [[nodiscard]] auto place_of(std::span<block_id const> lead, std::uint32_t j) const noexcept -> std::size_t {
    if (geometry_.block_tokens() == lead_.block_tokens()) { return lead[j].value(); } // without divisions
    auto const u = lead_.index((j + 1) * geometry_.block_tokens() - 1);
    return std::size_t{lead[u].value()} * per_lead_ + (j - first_in(u));
  }
  /// The last block that a hit needs and that does not hang.
  [[nodiscard]] auto last_missing(std::span<block_id const> lead, std::uint32_t prompt, std::uint32_t hit) const
      -> std::optional<std::uint32_t> {
    auto const need = need_of(prompt, hit);
    auto const search = [&](logical_block_interval blocks) -> std::optional<std::uint32_t> {
      for (auto j = blocks.end.value(); j-- > blocks.begin.value();) {
        auto const block = hanging_[place_of(lead, j)];
        if (!block || pool_.state(block) != state_type::published) { return j; } // a plan may have claimed it
      }
      return std::nullopt;
    };
    if (auto const tail = search(need.tail_blocks(token_count{hit}))) { return tail; }
    return search(need.sink_blocks(token_count{hit}));
  }
  auto leave_idle(block_id block) -> void {
    idle_.erase(*this, node_of(block));
    --idle_count_;
  }
  auto hold(block_id block) -> void {
    if (pool_.holders(block) == 0) { leave_idle(block); }
    pool_.hold(block);
  }
  /// A free block, or the one that has been idle longest. \pre one is available, `reserve_claims`
  auto take(bool idle_first = false) -> block_id {
    if (!idle_first || idle_count_ == 0) {
      if (auto const block = pool_.try_allocate()) { return block; }
    }
    auto const victim = block_id{idle_.front().value() - 1};
    leave_idle(victim);
    pool_.apply(victim, event_type::claim);
    claims_.push_back(victim);
    return victim;
  }
  template <class Retire>
  auto leave(group_table& t, std::uint32_t j, Retire& retire) -> void {
    if (!t.blocks[j]) { return; }
    leave_use(t, t.blocks[j]);
    retire(t.blocks[j], end_of(j));
    t.blocks[j] = block_id::none();
    --t.held;
  }
  /// Lets views begin further right once at least half of what they show is gone: O(1) a step on average.
  auto rebase(group_table& t) const -> void {
    if (keeps_.sinks.value() > 0 || t.gone - t.base < std::max(least_shift, t.size() - t.gone)) { return; }
    t.base = t.gone;
    t.stamp = 0;
  }
  auto account(group_table& t) -> void {
    held_ = held_ - t.counted + t.held;
    t.counted = t.held;
  }
  auto use(block_id block) noexcept -> block_id {
    in_use_ += users_[block.value()]++ == 0 ? 1U : 0U;
    return block;
  }
  auto leave_use(group_table const& t, block_id block) noexcept -> void {
    if (t.budget > 0) { in_use_ -= --users_[block.value()] == 0 ? 1U : 0U; } // else its end has said so
  }

  group_id id_;
  retention keeps_;
  bool shares_;
  block_geometry geometry_;
  block_geometry lead_;
  std::uint32_t per_lead_; // blocks that end in one lead block, at most
  Pool pool_;
  std::vector<block_id> hanging_;   // [lead blocks · per_lead] what hangs there
  std::vector<std::uint32_t> home_; // [blocks] where a block hangs
  std::vector<order_hook> hooks_;
  order_list idle_; // longest idle first
  std::uint32_t idle_count_ = 0;
  std::vector<std::uint32_t> users_; // [blocks] sequences, not ended, that hold it
  std::uint32_t budgets_ = 0;
  std::uint32_t in_use_ = 0; // blocks with users
  std::uint32_t held_ = 0;
  std::uint32_t lost_ = 0;
  std::vector<block_id> claims_; // of the open plan
};
/// \endcond

} // namespace quire::detail
