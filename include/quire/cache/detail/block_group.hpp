// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The blocks of one layer group: its pool, the tables of its sequences, and which blocks hang on which unit.
///
/// ```text
///   units (the index)        u0   u1   u2   u3         identity: tokens, parent
///   kept by path             7    2    9    4          the pin on the unit keeps the block
///   kept by block            -    -    5    3          holders keep it; it comes and goes by itself
/// ```
///
/// Two switches, both of them consequences of the retention: *who keeps a published block* (`by_path`: release touches no
/// block; otherwise a count per block does), and *who picks victims* (the tree's order: the unit goes, and every group's
/// block on it; or the group's own idle order: only its block goes).
///
/// Content of a unit begins to exist in `arrive` and ends in `depart`, and nowhere else.
///
/// A block that nobody holds may still be used by work in flight. It *waits*, in one queue per timeline, until the last use
/// that anybody who left it has told is over. Only then it is idle, or free.

#include <quire/cache/cache_group.hpp>
#include <quire/cache/detail/block_ledger.hpp>
#include <quire/cache/detail/idle_blocks.hpp>
#include <quire/cache/detail/unit_blocks.hpp>
#include <quire/cache/detail/waiting_blocks.hpp>
#include <quire/core/contract.hpp>
#include <quire/core/types.hpp>
#include <quire/model/capacity.hpp>
#include <quire/model/intervals.hpp>
#include <quire/model/resident_blocks.hpp>
#include <quire/model/retention.hpp>
#include <quire/sequence/block_geometry.hpp>
#include <quire/sequence/block_table.hpp>
#include <quire/sequence/prefix_path.hpp>

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
/// Why content left a group.
enum class leave_reason : std::uint8_t {
  evicted,  ///< Its room was needed.
  replaced, ///< An equal block took its place.
  lost,     ///< A device never finished it.
};

/// What a group is told of a step of one sequence.
struct append_request {
  std::uint32_t committed; ///< [tokens] before the step
  std::uint32_t tokens;    ///< [tokens] it adds
  std::uint32_t skips;     ///< [tokens] of them that the path has stored already
  bool owns_tail;          ///< the sequence may write a partial block that others read
  bool copies_unit;        ///< the unit it writes to is copied first
};

/// \tparam Pool a `block_pool`. \tparam Eviction models `eviction_policy`. \tparam Retention models `retention_policy`.
/// \tparam Clock a `fence_clock`.
template <class Pool, class Eviction, class Retention, class Clock>
class block_group {
  using state_type = typename Pool::state_type;
  using event_type = typename Pool::event_type;
  static constexpr std::size_t timelines = Clock::timelines;

public:
  using tickets = typename Clock::tickets;

  /// \param members the layer groups that have these blocks \param unit a multiple of the group's block
  /// \throws config_error, std::bad_alloc
  block_group(std::vector<group_id> members, cache_group const& spec, unit_count units, block_geometry unit, Pool pool,
              Clock const& clock)
      : members_{std::move(members)}, keeps_{stored(spec.keeps)}, by_path_{spec.keeps.keeps_all()},
        shares_{spec.keeps.shareable()}, geometry_{spec.block_tokens}, unit_{unit},
        sinks_{sinks_of(keeps_, spec.block_tokens)}, pool_{std::move(pool)}, clock_{&clock},
        ledger_{by_path_, capacity()},
        content_{units, unit.block_tokens() / spec.block_tokens.value(), by_path_ ? 0 : capacity()},
        idle_{by_path_ ? 0 : capacity()}, waiting_{clock, capacity()} {}
  block_group(block_group const&) = delete;
  auto operator=(block_group const&) -> block_group& = delete;

  // --- what it is ---------------------------------------------------------------------------------------------------
  [[nodiscard]] auto members() const noexcept -> std::span<group_id const> { return members_; }
  /// The first of its layer groups, which speaks for all.
  [[nodiscard]] auto id() const noexcept -> group_id { return members_.front(); }
  [[nodiscard]] auto keeps() const noexcept -> retention const& { return keeps_; }
  [[nodiscard]] auto by_path() const noexcept -> bool { return by_path_; }
  [[nodiscard]] auto per_unit() const noexcept -> std::uint32_t { return content_.per_unit(); }
  [[nodiscard]] auto geometry() const noexcept -> block_geometry const& { return geometry_; }
  [[nodiscard]] auto pool() const noexcept -> Pool const& { return pool_; }
  [[nodiscard]] auto capacity() const noexcept -> std::uint32_t { return pool_.capacity().value(); }
  /// Nothing of it can be rebuilt by computing positions again from somewhere on.
  [[nodiscard]] auto has_sinks() const noexcept -> bool { return keeps_.sinks.value() > 0 || sinks_ > 0; }

  // --- accounts -----------------------------------------------------------------------------------------------------
  [[nodiscard]] auto free() const noexcept -> std::uint32_t { return pool_.free_blocks().value(); }
  /// [blocks] that hold matchable content which nobody uses, in the group's own order.
  [[nodiscard]] auto idle() const noexcept -> std::uint32_t { return idle_.evictable(); }
  /// What sequences hold, were promised, and have reserved.
  [[nodiscard]] auto ledger() noexcept -> block_ledger& { return ledger_; }
  [[nodiscard]] auto ledger() const noexcept -> block_ledger const& { return ledger_; }
  /// [blocks] that wait for work in flight.
  [[nodiscard]] auto waiting() const noexcept -> std::uint32_t { return waiting_.size(); }
  /// [blocks] that a lost device may still write.
  [[nodiscard]] auto lost() const noexcept -> std::uint32_t { return waiting_.lost(); }
  /// [blocks] that can be matched.
  [[nodiscard]] auto published() const noexcept -> std::uint32_t { return content_.size(); }

  /// [blocks] that a sequence of up to \p limit positions takes at most: all of them, or, where blocks are given up, what it
  /// holds at once when a step adds up to \p append and up to \p rewind may be taken back, one to copy into included.
  [[nodiscard]] auto budget(std::uint64_t limit, std::uint64_t append, std::uint64_t rewind) const -> std::uint32_t {
    if (by_path_) { return geometry_.blocks(static_cast<std::uint32_t>(limit)); }
    auto const step = static_cast<std::uint32_t>(std::min(append + rewind, limit + rewind));
    auto const pages = paging{.block_tokens = token_count{geometry_.block_tokens()}, .step = token_count{step}};
    return Retention::peak_blocks(keeps_, token_count{static_cast<std::uint32_t>(limit)}, pages).value() + 1;
  }
  /// Columns that views need for tables of that \p budget and up to \p limit positions.
  [[nodiscard]] auto columns(std::uint32_t limit, std::uint32_t budget) const noexcept -> std::uint32_t {
    auto const all = geometry_.blocks(limit);
    if (by_path_) { return std::min(all, capacity()); } // a sequence never holds a block twice
    return has_sinks() ? all : std::min(all, 2 * std::min(budget, capacity()) + least_shift);
  }
  /// A sequence begins that may hold \p blocks; 0 = it ends: what it holds is nobody's use any more.
  auto set_budget(block_table& t, std::uint32_t blocks) -> void {
    if (by_path_) { return ledger_.owe(t, blocks); }
    if (blocks > 0) {
      ledger_.set_budget(t, blocks);
      each_held(t, [&](std::uint32_t j) { ledger_.use(t, t.blocks[j]); });
    } else {
      each_held(t, [&](std::uint32_t j) { ledger_.leave_use(t, t.blocks[j]); });
      ledger_.set_budget(t, 0);
    }
    ledger_.account(t);
  }
  /// [blocks] that a sequence kept by path has still to take until \p limit.
  [[nodiscard]] auto owes(block_table const& t, std::uint32_t limit, append_request const& next) const
      -> std::uint32_t {
    auto const most = geometry_.blocks(limit);
    return (most > t.size() ? most - t.size() : 0) + copies(t, next);
  }

  // --- matching -----------------------------------------------------------------------------------------------------
  /// The longest hit of at most \p hit positions of a prompt of \p prompt that this group can serve, \p units being those
  /// found. It only shrinks. \complexity O(blocks inspected): none is inspected twice. \source S29
  [[nodiscard]] auto longest_hit(std::span<unit_id const> units, std::uint32_t prompt, std::uint32_t hit) const
      -> std::uint32_t {
    if (by_path_) { return hit; }
    if (!shares_) { return 0; }
    for (;;) {
      hit -= geometry_.offset(hit);
      auto const missing = hit == 0 ? std::nullopt : last_missing(units, prompt, hit);
      if (!missing) { return hit; }
      hit = *missing * geometry_.block_tokens(); // every longer hit, up to this one, needs that block
    }
  }
  /// Writes what a hit needs into the table of a new sequence, which does not hold it yet.
  /// \returns [blocks] of them that are idle, which holding them takes out of what is available (kept by block)
  /// \pre `longest_hit` gave the hit, and the table has room \complexity O(blocks of the hit)
  auto map_hit(block_table& t, std::span<unit_id const> units, std::uint32_t prompt, std::uint32_t hit) const
      -> std::uint32_t {
    auto const size = geometry_.blocks(hit);
    t.skip_until = hit;
    if (by_path_) {
      if (per_unit() == 1) {
        t.blocks.resize(size);
        for (std::uint32_t j = 0; j < size; ++j) { t.blocks[j] = content_[units[j].value()]; }
      } else {
        t.blocks.clear();
        for (std::uint32_t j = 0; j < size; ++j) { t.blocks.push_back(content_[content_.place(units, j)]); }
      }
      return 0;
    }
    auto const need = need_of(prompt, hit);
    t.blocks.assign(size, block_id::none());
    std::uint32_t idle = 0;
    auto const write = [&](logical_block_interval blocks) {
      for (auto j = blocks.begin.value(); j < blocks.end.value(); ++j) {
        t.blocks[j] = content_[content_.place(units, j)];
        idle += is_idle(t.blocks[j]) ? 1U : 0U;
      }
    };
    write(need.sink_blocks(token_count{hit}));
    write(need.tail_blocks(token_count{hit}));
    t.released_end = released_by(need.dead_blocks(token_count{hit}));
    move_view(t);
    return idle;
  }
  /// Holds what `map_hit` wrote.
  auto attach(block_table& t) -> void {
    if (by_path_) { return; }
    each_held(t, [&](std::uint32_t j) {
      hold(t.blocks[j]);
      ++t.held;
    });
    ledger_.account(t);
  }
  /// Begins at \p position, a multiple of the block, as if nothing came before: what is computed from there on rebuilds the
  /// window. \pre no sinks, and the table has room \source S28
  auto begin_at(block_table& t, std::uint32_t position) -> void {
    t.blocks.assign(geometry_.blocks(position), block_id::none());
    t.released_end = t.view_begin = t.size();
    t.version = 0;
  }
  /// The table of a sequence that is not let in after all, or that is over.
  auto reset(block_table& t) noexcept -> void {
    t.blocks.clear();
    t.released_end = t.view_begin = t.skip_until = t.budget = t.held = 0;
    t.version = 0;
    ledger_.account(t);
  }

  // --- steps --------------------------------------------------------------------------------------------------------
  /// [tokens] of a step whose write this group skips.
  [[nodiscard]] static auto skips(block_table const& t, append_request const& a) noexcept -> std::uint32_t {
    return std::min(a.skips, t.skips(a.committed));
  }
  /// [blocks] that a step copies first: all of the unit that it has, where the unit is; a partial block that others may read.
  [[nodiscard]] auto copies(block_table const& t, append_request const& a) const -> std::uint32_t {
    if (by_path_) { return a.copies_unit ? geometry_.blocks(a.committed) - first_in(unit_.index(a.committed)) : 0; }
    auto const j = geometry_.index(a.committed);
    if (skips(t, a) > 0 || j >= t.size() || !t.blocks[j]) { return 0; }
    return pool_.state(t.blocks[j]) == state_type::published || (!a.owns_tail && pool_.holders(t.blocks[j]) > 1);
  }
  /// [blocks] that a step takes.
  [[nodiscard]] auto needs(block_table const& t, append_request const& a) const -> std::uint32_t {
    auto const size = geometry_.blocks(a.committed + a.tokens);
    return (size > t.size() ? size - t.size() : 0) + copies(t, a);
  }
  /// Takes them. \p copied(j, source, target) is told of each copy.
  /// \pre that many are free, and the table has room \returns [blocks]
  template <class Copied>
  auto take(block_table& t, append_request const& a, Copied copied) -> std::uint32_t {
    auto const size = geometry_.blocks(a.committed + a.tokens);
    auto const before = t.size();
    auto const n = copies(t, a);
    if (n > 0) {
      for (auto j = geometry_.blocks(a.committed) - n, end = j + n; j < end; ++j) {
        auto const source = std::exchange(t.blocks[j], take_one(t));
        ++t.held;
        copied(j, source, t.blocks[j]);
      }
      t.version = 0;
    }
    for (; t.size() < size; ++t.held) { t.blocks.push_back(take_one(t)); }
    ledger_.account(t);
    auto const taken = n + t.size() - before;
    ledger_.took(t, taken);
    return taken;
  }
  /// The same for one position of a decoding sequence, which nobody's copies concern. \returns how many may follow in the
  /// block at hand, that one included
  auto take_next(block_table& t, std::uint32_t committed) -> std::uint32_t {
    auto const j = geometry_.index(committed);
    if (j == t.size()) {
      t.blocks.push_back(take_one(t));
      ++t.held;
      ledger_.account(t);
      ledger_.took(t, 1);
    }
    return point(t, committed);
  }
  /// Undoes `take`, but for copies: the table has \p before blocks again. Work of \p last may have written the others.
  auto give_back(block_table& t, std::uint32_t before, tickets const& last) -> void {
    while (t.size() > before) {
      drop_written(t, t.blocks.back(), last);
      t.blocks.pop_back();
    }
    ledger_.account(t);
  }
  /// Undoes one copy of `take`.
  auto undo_copy(block_table& t, std::uint32_t j, block_id source, tickets const& last) -> void {
    drop_written(t, std::exchange(t.blocks[j], source), last);
    t.version = 0;
    ledger_.account(t);
  }
  /// Blocks that the step took are the sequence's own, and written by work that ends with \p until.
  auto commit(block_table& t, append_request const& a, std::uint32_t timeline, ticket until) -> void {
    auto const begin = a.committed + skips(t, a);
    auto const end = a.committed + a.tokens;
    if (begin >= end) { return; }
    for (auto j = geometry_.index(begin); j < geometry_.blocks(end); ++j) { own(t.blocks[j], timeline, until); }
  }
  /// The step was launched and is dropped: its work may write all the same.
  auto note_writes(block_table const& t, append_request const& a, tickets const& last) noexcept -> void {
    auto const begin = a.committed + skips(t, a);
    auto const end = a.committed + a.tokens;
    for (auto j = geometry_.index(begin); begin < end && j < geometry_.blocks(end); ++j) {
      waiting_.note_writes(t.blocks[j], last);
    }
  }
  auto own(block_id block, std::uint32_t timeline, ticket until) -> void {
    if (pool_.state(block) == state_type::writing) { pool_.apply(block, event_type::commit); }
    waiting_.note_write(block, timeline, until);
  }
  /// Gives up the \p source of a copy. \param pinned the path keeps it: nothing is counted here
  auto leave_source(block_table& t, block_id source, bool pinned, tickets const& last) -> void {
    if (by_path_ && pinned) { return; }
    drop(t, source, last);
    ledger_.account(t);
  }
  /// The \p source of a copy in flight is nobody's use any more: its sequence ends.
  auto end_use(block_table& t, block_id source) noexcept -> void { ledger_.leave_use(t, source); }
  /// Gives up what no query from \p oldest on can see. \complexity O(blocks given up)
  auto trim(block_table& t, std::uint32_t oldest, tickets const& last) -> void {
    if (by_path_) { return; }
    auto const dead = Retention::resident(token_pos{oldest}, keeps_, token_count{geometry_.block_tokens()}).dead;
    auto const end = std::min(dead.end.value(), t.size());
    if (end <= std::max(t.released_end, dead.begin.value())) { return; } // nothing lies between sinks and tail yet
    for (auto j = std::max(t.released_end, dead.begin.value()); j < end; ++j) { release(t, j, last); }
    t.released_end = end;
    move_view(t);
    ledger_.account(t);
  }

  // --- the append cursor --------------------------------------------------------------------------------------------
  /// [tokens] that may be appended into the block at hand without anything but writing; 0 = it takes more.
  [[nodiscard]] auto room(block_table& t, std::uint32_t committed) const -> std::uint32_t {
    auto const j = geometry_.index(committed);
    if (j >= t.size() || !t.blocks[j] || pool_.state(t.blocks[j]) != state_type::private_) { return 0; }
    return point(t, committed);
  }
  /// [blocks] that one more position of a decoding sequence takes, if it takes nothing but blocks; none if it takes more.
  [[nodiscard]] auto needs_next(block_table const& t, std::uint32_t committed) const -> std::optional<std::uint32_t> {
    auto const j = geometry_.index(committed);
    if (j >= t.size()) { return 1; }
    if (!t.blocks[j] || pool_.state(t.blocks[j]) != state_type::private_) { return std::nullopt; }
    return 0;
  }

  // --- sequences ----------------------------------------------------------------------------------------------------
  /// The first position from \p length on at which the sequence could go on after a cut back to it; none if there is none.
  [[nodiscard]] auto resumable(block_table const& t, std::uint32_t length, std::uint32_t committed) const
      -> std::optional<std::uint32_t> {
    if (by_path_) { return length; }
    auto const begin = std::min(t.released_end * geometry_.block_tokens(), committed);
    auto const present = position_interval{token_pos{begin}, token_pos{committed}};
    for (auto from = token_pos{length};;) {
      auto const at = Retention::earliest_resumable(from, present, keeps_);
      if (!at) { return std::nullopt; }
      // A short window or a new chunk may need nothing from before, but what it writes first must have its block.
      if (geometry_.offset(at->value()) == 0 || t.blocks[geometry_.index(at->value())]) { return at->value(); }
      from = token_pos{(geometry_.index(at->value()) + 1) * geometry_.block_tokens()};
    }
  }
  [[nodiscard]] auto can_resume_at(block_table const& t, std::uint32_t length, std::uint32_t committed) const -> bool {
    return resumable(t, length, committed) == std::optional{length};
  }
  /// True if others may read the partial last block of a sequence of \p length positions.
  [[nodiscard]] auto shared_end(block_table const& t, std::uint32_t length) const -> bool {
    auto const j = geometry_.index(length);
    return !by_path_ && geometry_.offset(length) != 0 && t.blocks[j] && pool_.holders(t.blocks[j]) > 1;
  }
  /// [blocks] that a cut back to \p length would free at once or past their fence, of those that no pin keeps.
  [[nodiscard]] auto would_free(block_table const& t, std::uint32_t length, std::uint32_t pinned) const
      -> std::uint32_t {
    std::uint32_t n = 0;
    auto const begin = std::max(geometry_.blocks(length), by_path_ ? pinned * per_unit() : 0U);
    for (auto j = begin; j < t.size(); ++j) { n += t.blocks[j] && pool_.holders(t.blocks[j]) == 1 ? 1U : 0U; }
    return n;
  }
  /// Adds to \p until what still uses the blocks that \p t alone holds: others may have left them with work in flight.
  auto join_uses(block_table const& t, std::uint32_t pinned, tickets& until) const -> void {
    if constexpr (!Clock::immediate) {
      for (auto j = by_path_ ? pinned * per_unit() : 0U; j < t.size(); ++j) {
        if (t.blocks[j] && pool_.holders(t.blocks[j]) == 1) { waiting_.join_use(t.blocks[j], until); }
      }
    }
  }
  /// Cuts back to \p length. \param pinned [units] the path had pinned before
  auto truncate(block_table& t, std::uint32_t length, std::uint32_t pinned, tickets const& last) -> void {
    auto const size = geometry_.blocks(length);
    auto const counted_from = by_path_ ? std::max(size, pinned * per_unit()) : size;
    for (auto j = t.size(); j-- > counted_from;) { release(t, j, last); }
    t.blocks.resize(size);
    t.released_end = std::min(t.released_end, size);
    t.view_begin = std::min(t.view_begin, size);
    t.skip_until = 0;
    t.version = 0;
    ledger_.account(t);
  }
  /// Shares what a child of \p length positions needs. \param pinned [units] the child's path has pinned
  /// \pre `can_resume_at(parent, length)`, and the table has room
  auto fork(block_table const& parent, block_table& child, std::uint32_t length, std::uint32_t pinned) -> void {
    auto const share = [&](std::uint32_t begin, std::uint32_t end) {
      for (auto j = begin; j < end; ++j) {
        child.blocks[j] = parent.blocks[j];
        pool_.retain(child.blocks[j]);
        ++child.held;
      }
    };
    auto const size = geometry_.blocks(length);
    if (by_path_) {
      child.blocks.assign(parent.blocks.begin(), parent.blocks.begin() + size);
      share(std::min(size, pinned * per_unit()), size);
    } else {
      auto const need = Retention::resident(token_pos{length}, keeps_, token_count{geometry_.block_tokens()});
      child.blocks.assign(size, block_id::none());
      auto const sinks = need.sink_blocks(token_count{length});
      auto const tail = need.tail_blocks(token_count{length});
      share(sinks.begin.value(), sinks.end.value());
      share(tail.begin.value(), tail.end.value());
      child.released_end = released_by(need.dead_blocks(token_count{length}));
      move_view(child);
    }
    ledger_.account(child);
  }
  /// Gives everything back, deepest first. \param pinned [units] that the path has pinned \post the table is empty
  auto drop_all(block_table& t, std::uint32_t pinned, tickets const& last) -> void {
    auto const begin = by_path_ ? std::min(t.size(), pinned * per_unit()) : std::min(t.released_end, t.size());
    if (Clock::immediate && by_path_ && begin < t.size()) { // nothing waits: one pass
      pool_.release_and_reclaim(std::span{t.blocks}.subspan(begin));
    } else {
      for (auto j = t.size(); j-- > begin;) { release(t, j, last); }
    }
    if (!by_path_) {
      for (auto j = std::min(t.released_end, sinks_); j-- > 0;) { release(t, j, last); }
    }
    ledger_.set_budget(t, 0);
    ledger_.owe(t, 0);
    reset(t);
  }

  // --- content of units ---------------------------------------------------------------------------------------------
  /// Logical unit \p u of a path lies in the index as \p unit. Blocks that the unit lacks arrive there. Where it has a block
  /// that nobody uses, the own one takes its place, so that no room is taken twice; where others use it, the table goes on
  /// with theirs and the own one is given up.
  auto arrive(block_table& t, std::uint32_t u, unit_id unit, unit_origin origin, tickets const& last) -> void {
    if (!shares_) { return; }
    auto const begin = first_in(u);
    auto const end = std::min(begin + per_unit(), t.size());
    for (auto j = begin; j < end; ++j) {
      if (t.blocks[j]) { arrive(t, j, content_.place(unit, j - begin), origin, last); }
    }
    ledger_.account(t);
  }
  /// The same for logical units [\p first, \p end) that their sequence has published just now.
  auto arrive(block_table& t, std::uint32_t first, std::uint32_t end, std::span<unit_id const> units,
              tickets const& last) -> void {
    auto const plain = Clock::immediate && by_path_ && per_unit() == 1; // nothing hangs there, and nothing is doomed
    for (auto u = first; u < end; ++u) {
      if (plain && pool_.publish_and_release(t.blocks[u])) {
        content_.hang(t.blocks[u], units[u].value());
        --t.held;
      } else {
        arrive(t, u, units[u], unit_origin::published, last);
      }
    }
    ledger_.account(t);
  }
  /// Unit \p to took the place of \p from in the index, with all that hangs there.
  auto move(unit_id from, unit_id to) noexcept -> void { content_.move(from, to); }
  /// \p unit leaves the index. \returns [blocks] that were its content and are free now, or wait
  auto depart(unit_id unit, leave_reason why) -> std::uint32_t {
    std::uint32_t n = 0;
    for (std::uint32_t i = 0; i < per_unit(); ++i) {
      auto const at = content_.place(unit, i);
      if (auto const block = content_[at]) { n += depart(block, at, why) ? 1U : 0U; }
    }
    return n;
  }
  /// Frees up to \p blocks of its own order. \returns how many
  auto evict(std::uint32_t blocks) -> std::uint32_t {
    std::uint32_t n = 0;
    for (; n < blocks; ++n) {
      auto const victim = idle_.victim([this](block_id b) { return content_.unreachable(b) && is_idle(b); });
      if (!victim) { break; }
      depart(victim, content_.of(victim), leave_reason::evicted);
    }
    return n;
  }

  /// Nobody can find any more what hangs now: it leaves first. Nothing is moved: O(1)
  auto close_epoch() noexcept -> void {
    if (by_path_) { return; } // the index closes its roots
    content_.close_epoch();
    idle_.sweep_again();
  }

  // --- work in flight -----------------------------------------------------------------------------------------------
  /// Frees what waited for tickets that are reached now.
  auto reclaim() -> void {
    waiting_.reclaim([this](block_id b) { return pool_.holders(b) > 0; }, [this](block_id b) { settle(b); });
  }
  /// Blocks that \p timeline may still write are never used again: nobody finds them, and they are counted as lost once
  /// nobody holds them. \pre the clock has not given the timeline up yet
  auto doom(std::uint32_t timeline) -> void {
    waiting_.doom(timeline, [this](block_id b) { return pool_.holders(b) > 0; });
    if (by_path_) { return; } // the index takes their units out
    for (std::uint32_t b = 0; b < capacity(); ++b) {
      auto const block = block_id{b};
      auto const at = content_.of(block);
      if (!doomed(block) || at == unit_blocks::nowhere) { continue; }
      content_.take_off(block, at);
      if (pool_.holders(block) > 0) {
        pool_.apply(block, event_type::unpublish);
        continue;
      }
      auto const queued = waiting_.queued(block);
      if (!queued) { idle_.leave(block); }
      pool_.apply(block, event_type::evict);
      if (!queued) { waiting_.lose(); } // one that waited is counted already
    }
  }
  [[nodiscard]] auto doomed(block_id block) const noexcept -> bool { return waiting_.doomed(block); }
  /// Marks the units of which a block is doomed.
  auto mark_doomed(std::span<std::uint8_t> units) const -> void {
    if (!by_path_) { return; }
    for (std::size_t at = 0; auto const block : content_.all()) {
      if (block && doomed(block)) { units[at / per_unit()] = 1; }
      ++at;
    }
  }
  /// [tokens] in front of the first block of \p t that is doomed; none if none is.
  [[nodiscard]] auto ready_length(block_table const& t) const -> std::optional<std::uint32_t> {
    for (std::uint32_t j = 0; j < t.size(); ++j) {
      if (t.blocks[j] && doomed(t.blocks[j])) { return j * geometry_.block_tokens(); }
    }
    return std::nullopt;
  }

  // --- compaction ---------------------------------------------------------------------------------------------------
  /// Takes free blocks with lower numbers than those in use, for these to move to, where free blocks are not this group's
  /// alone. \param to by block, all none: new places, none = stays
  /// \param fits tells if what is promised to all groups can still be had: a fresh page may be one too many.
  template <class Fits>
  auto take_places(std::span<block_id> to, Fits fits) -> void {
    for (auto high = capacity();;) {
      while (high > 0 && !movable(block_id{high - 1})) { --high; }
      auto const low = high > 0 ? pool_.try_allocate() : block_id::none();
      if (!low) { return; }
      if (low.value() >= high - 1 || !fits()) {
        if (pool_.release_and_retire(low)) { pool_.reclaim(low); }
        return;
      }
      to[--high] = low;
    }
  }
  /// Finds such places among the free blocks, where all of them are this group's.
  auto find_places(std::span<block_id> to) const -> void {
    auto low = std::uint32_t{0};
    for (auto high = capacity();;) {
      while (low < high && pool_.state(block_id{low}) != state_type::free) { ++low; }
      while (low < high && !movable(block_id{high - 1})) { --high; }
      if (low >= high) { return; }
      to[--high] = block_id{low++};
    }
  }
  /// Block b is block `to[b]` from now on, unless that is none.
  /// \param taken the targets come from `take_places`, otherwise they are free \param scratch room for every block
  /// \pre nothing waits
  auto relocate(std::span<block_id const> to, bool taken, std::vector<block_id>& scratch) -> void {
    if (taken) {
      pool_.relocate_to_taken(to);
    } else {
      pool_.relocate(to);
    }
    scratch.clear();
    idle_.take_all(scratch);
    content_.relocate(to);
    for (std::uint32_t b = 0; b < to.size() && !by_path_; ++b) {
      if (to[b]) { ledger_.swap(block_id{b}, to[b]); }
    }
    for (auto const from : scratch) {
      auto const block = to[from.value()] ? to[from.value()] : from;
      idle_.create(block);
      idle_.enter(block, content_.unreachable(block));
    }
  }
  /// The same for a table.
  auto relocate(block_table& t, std::span<block_id const> to) const noexcept -> void {
    for (auto& block : t.blocks) {
      if (block && to[block.value()]) { block = to[block.value()]; }
    }
    t.version = 0;
  }

  /// First broken invariant, empty if all hold. \param holders as the tables count them, per block
  /// \param users as the tables of sequences that have not ended count them \param in_index by unit
  [[nodiscard]] auto audit(std::span<std::uint32_t const> holders, std::span<std::uint32_t const> users,
                           std::span<std::uint8_t const> in_index, bool shared_memory, bool denies) const
      -> std::string;

private:
  static constexpr std::uint32_t least_shift = 8; // [blocks] views move on by at least that much
  static constexpr std::uint32_t max_query = 0x7fff'ffffU;

  /// A ring is a window whose blocks nobody shares: by whole blocks its pool recycles them as well.
  static auto stored(retention const& keeps) -> retention {
    if (keeps.kind != retention_kind::ring) { return keeps; }
    return retention::sink_window({.sinks = keeps.sinks, .window = keeps.extent});
  }
  /// [blocks] in front of all that is ever given up: the policy says so, which may keep more than \p keeps asks for.
  static auto sinks_of(retention const& keeps, token_count block) -> std::uint32_t {
    auto const dead = Retention::resident(token_pos{max_query}, keeps, block).dead;
    return dead.begin < dead.end ? dead.begin.value() : 0;
  }
  static auto released_by(logical_block_interval dead) noexcept -> std::uint32_t {
    return dead.begin < dead.end ? dead.end.value() : 0;
  }
  /// First logical block of logical unit \p u.
  [[nodiscard]] auto first_in(std::uint32_t u) const noexcept -> std::uint32_t { return u * per_unit(); }
  /// What the first query behind a hit needs; behind a hit of the whole prompt that is its last position.
  [[nodiscard]] auto need_of(std::uint32_t prompt, std::uint32_t hit) const -> resident_blocks {
    return Retention::resident(token_pos{std::min(hit, prompt - 1)}, keeps_, token_count{geometry_.block_tokens()});
  }
  /// The last block that a hit needs and that does not hang.
  [[nodiscard]] auto last_missing(std::span<unit_id const> units, std::uint32_t prompt, std::uint32_t hit) const
      -> std::optional<std::uint32_t> {
    auto const need = need_of(prompt, hit);
    auto const search = [&](logical_block_interval blocks) -> std::optional<std::uint32_t> {
      for (auto j = blocks.end.value(); j-- > blocks.begin.value();) {
        if (!content_[content_.place(units, j)]) { return j; }
      }
      return std::nullopt;
    };
    if (auto const tail = search(need.tail_blocks(token_count{hit}))) { return tail; }
    return search(need.sink_blocks(token_count{hit}));
  }
  /// Calls \p visit(j) for every entry that is not none: the sinks, and what lies behind what was released.
  template <class Visit>
  auto each_held(block_table const& t, Visit visit) const -> void {
    auto const sinks = std::min(sinks_, t.released_end);
    for (std::uint32_t j = 0; j < sinks; ++j) {
      if (t.blocks[j]) { visit(j); }
    }
    for (auto j = t.released_end; j < t.size(); ++j) {
      if (t.blocks[j]) { visit(j); }
    }
  }
  /// Lets views begin further right once at least half of what they show is released: O(1) a step on average.
  auto move_view(block_table& t) const -> void {
    if (has_sinks() || t.released_end - t.view_begin < std::max(least_shift, t.size() - t.released_end)) { return; }
    t.view_begin = t.released_end;
    t.version = 0;
  }
  /// Notes the block at hand. \returns [tokens] of room in it
  auto point(block_table& t, std::uint32_t committed) const -> std::uint32_t {
    auto const j = geometry_.index(committed);
    t.slot_shift = (std::int64_t{t.blocks[j].value()} - j) * geometry_.block_tokens();
    return geometry_.block_tokens() - geometry_.offset(committed);
  }

  [[nodiscard]] auto movable(block_id block) const -> bool {
    auto const state = pool_.state(block);
    return state == state_type::private_ || state == state_type::published;
  }

  // --- holds --------------------------------------------------------------------------------------------------------
  [[nodiscard]] auto is_idle(block_id block) const -> bool {
    return pool_.holders(block) == 0 && !waiting_.queued(block);
  }
  auto take_one(block_table const& t) -> block_id {
    auto const block = pool_.try_allocate();
    QUIRE_EXPECTS(static_cast<bool>(block)); // the plan counted it
    ledger_.use(t, block);
    return block;
  }
  /// Adds a holder to a published block, which may have none.
  auto hold(block_id block) -> void {
    if (pool_.holders(block) == 0) {
      if (is_idle(block)) {
        idle_.leave(block);
      } else {
        waiting_.hold_again();
      }
      idle_.use(block);
    }
    pool_.hold(block);
  }
  /// Ends a hold of \p t on \p block, which is not in the table any more.
  auto drop(block_table& t, block_id block, tickets const& last) -> void {
    --t.held;
    ledger_.leave_use(t, block);
    leave(block, last);
  }
  /// The same, and the work of \p last may have written it.
  auto drop_written(block_table& t, block_id block, tickets const& last) -> void {
    waiting_.note_writes(block, last);
    drop(t, block, last);
  }
  /// Entry \p j of a table is given up.
  auto release(block_table& t, std::uint32_t j, tickets const& last) -> void {
    if (t.blocks[j]) { drop(t, std::exchange(t.blocks[j], block_id::none()), last); }
  }
  /// One holder leaves, whose work may use the block until \p last.
  auto leave(block_id block, tickets const& last) -> void {
    waiting_.note_use(block, last);
    if (!pool_.release(block)) { return; }
    if (pool_.state(block) != state_type::published) {
      pool_.apply(block, event_type::retire);
    } else if (by_path_) {
      return; // the pin on its unit keeps it
    }
    settle(block);
  }
  /// A block without holders waits for what may still use it, and then is idle or free, or lost.
  auto settle(block_id block) -> void {
    if (waiting_.enter(block)) { return; }
    if (doomed(block)) {
      waiting_.lose();
    } else if (pool_.state(block) == state_type::published) {
      idle_.enter(block, content_.unreachable(block));
    } else {
      pool_.reclaim(block);
    }
  }

  // --- the seam: content comes and goes -------------------------------------------------------------------------------
  auto arrive(block_table& t, std::uint32_t j, std::uint32_t at, unit_origin origin, tickets const& last) -> void {
    auto& entry = t.blocks[j];
    auto const there = content_[at];
    if (there == entry) {
      if (by_path_ && origin != unit_origin::pinned) { // the hold has become the pin
        --t.held;
        static_cast<void>(pool_.release(entry));
      }
      return;
    }
    if (origin == unit_origin::adopted) { return; } // a step has added it, and copies the unit
    if (pool_.state(entry) != state_type::private_ || doomed(entry)) { return; } // it hangs elsewhere, or must not
    if (there && (by_path_ ? origin == unit_origin::idle_twin : is_idle(there))) {
      depart(there, at, leave_reason::replaced);
    } else if (there) {
      if (by_path_) {
        drop(t, std::exchange(entry, there), last);
      } else {
        hold(there);
        ++t.held;
        ledger_.use(t, there);
        drop(t, std::exchange(entry, there), last);
      }
      t.version = 0;
      return;
    }
    on_arrive(entry, at);
    if (by_path_) {
      --t.held;
      static_cast<void>(pool_.release(entry));
    }
  }
  auto on_arrive(block_id block, std::uint32_t at) -> void {
    pool_.apply(block, event_type::publish);
    content_.hang(block, at);
    if (!by_path_) { idle_.create(block); }
  }
  /// \returns true if nobody holds it
  auto depart(block_id block, std::uint32_t at, [[maybe_unused]] leave_reason why) -> bool {
    content_.take_off(block, at);
    if (by_path_) {
      if constexpr (Clock::immediate) {
        pool_.evict_and_reclaim(block);
      } else {
        pool_.apply(block, event_type::evict);
        // What a lost timeline takes out of the index may still be in use on another one.
        if (why == leave_reason::lost) { waiting_.note_use(block, clock_->latest()); }
        settle(block);
      }
      return true;
    }
    if (pool_.holders(block) > 0) {
      pool_.apply(block, event_type::unpublish);
      return false;
    }
    if (is_idle(block)) {
      idle_.leave(block);
      pool_.evict_and_reclaim(block);
    } else {
      pool_.apply(block, event_type::evict); // and is freed when it is its turn
    }
    return true;
  }

  std::vector<group_id> members_;
  retention keeps_;
  bool by_path_; // the pin on a unit keeps its published blocks, and the tree's order picks victims
  bool shares_;
  block_geometry geometry_;
  block_geometry unit_;
  std::uint32_t sinks_; // [blocks]
  Pool pool_;
  Clock const* clock_;
  block_ledger ledger_;
  unit_blocks content_;
  idle_blocks<Eviction> idle_;
  waiting_blocks<Clock> waiting_;
};

template <class Pool, class Eviction, class Retention, class Clock>
auto block_group<Pool, Eviction, Retention, Clock>::audit(std::span<std::uint32_t const> holders,
                                                          std::span<std::uint32_t const> users,
                                                          std::span<std::uint8_t const> in_index, bool shared_memory,
                                                          bool denies) const -> std::string {
  auto const group = "group " + std::to_string(id().value());
  std::uint32_t free = 0;
  std::uint32_t idle = 0;
  std::uint32_t in_use = 0;
  std::uint32_t retiring = 0;
  std::uint32_t published = 0;
  std::uint32_t waiting = 0;
  std::vector<std::uint32_t> place(capacity(), unit_blocks::nowhere);
  for (std::uint32_t at = 0; at < content_.all().size(); ++at) {
    if (!content_[at]) { continue; }
    auto& known = place[content_[at].value()];
    auto const name = group + ", block " + std::to_string(content_[at].value());
    if (known != unit_blocks::nowhere) { return name + ": it hangs on two units"; }
    known = at;
    if (in_index[at / per_unit()] == 0) { return name + ": it hangs on a unit outside the index"; }
  }
  for (std::uint32_t u = 0; u < in_index.size() && by_path_; ++u) {
    for (std::uint32_t i = 0; i < per_unit(); ++i) {
      if (in_index[u] != 0 && !content_[content_.place(unit_id{u}, i)]) {
        return group + ": unit " + std::to_string(u) + " lacks a block";
      }
    }
  }
  for (std::uint32_t b = 0; b < capacity(); ++b) {
    auto const block = block_id{b};
    auto const state = pool_.state(block);
    auto const name = group + ", block " + std::to_string(b);
    free += state == state_type::free ? 1U : 0U;
    retiring += state == state_type::retiring ? 1U : 0U;
    published += state == state_type::published ? 1U : 0U;
    if (pool_.holders(block) != holders[b]) { return name + ": holders differ from the tables that name it"; }
    if (!by_path_ && ledger_.users(block) != users[b]) { return name + ": the sequences that use it are miscounted"; }
    in_use += users[b] > 0 ? 1U : 0U;
    if ((place[b] != unit_blocks::nowhere) != (state == state_type::published)) {
      return name + ": published and hanging disagree";
    }
    if (!by_path_ && content_.of(block) != place[b]) { return name + ": it does not hang where it says"; }
    if ((state == state_type::writing || state == state_type::private_) && holders[b] == 0) {
      return name + ": in use without a holder";
    }
    if (!by_path_ && state == state_type::published && holders[b] == 0) { idle += is_idle(block) ? 1U : 0U; }
  }
  std::uint32_t waiting_retired = 0;
  waiting_.for_each([&](block_id block) {
    waiting += holders[block.value()] == 0 ? 1U : 0U;
    waiting_retired += pool_.state(block) == state_type::retiring ? 1U : 0U;
  });
  if (!by_path_ && in_use != ledger_.in_use()) { return group + ": blocks in use are miscounted"; }
  if (published != content_.size()) { return group + ": published blocks are miscounted"; }
  if (idle != idle_.size()) { return group + ": idle blocks are miscounted"; }
  if (waiting != waiting_.size()) { return group + ": waiting blocks are miscounted"; }
  if (retiring != waiting_retired + waiting_.lost()) {
    return group + ": retiring blocks neither wait nor are given up";
  }
  auto const counted = pool_.free_blocks().value();
  if (shared_memory ? free < counted : (denies ? 0 : free) != counted) {
    return group + ": free blocks are miscounted";
  }
  return {};
}
/// \endcond

} // namespace quire::detail
