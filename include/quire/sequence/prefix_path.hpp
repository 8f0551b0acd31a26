// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The identity half of a sequence: which units it stands on. Knows an index and no block.
///
/// ```text
///   units    [ 7  2  9 | 4  1 ]         |: pinned = 3
///              └ published, through the pin
///                        └ private: counted as a holder; others may hold them too, once it was forked
/// ```
///
/// A full private unit is *published*; where the index has an equal one, the path goes on from that. A unit that another
/// holder has published is *adopted*: the hold becomes the pin. Both happen in `settle`, step by step, so that whoever
/// keeps blocks for units can follow.

#include <quire/core/detail/unfilled_vector.hpp>
#include <quire/core/types.hpp>
#include <quire/prefix/prefix_pin.hpp>
#include <quire/sequence/block_geometry.hpp>
#include <quire/sequence/sequence_lengths.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace quire {

/// How the last unit of a `settled` step came to lie on the pinned path.
enum class unit_origin : std::uint8_t {
  published, ///< By this sequence, just now.
  adopted,   ///< Another holder had published it.
  idle_twin, ///< The index had an equal unit, which nobody used: the own one has taken its place.
  busy_twin, ///< The index has an equal unit, which others use: the path goes on from that.
  pinned,    ///< It has been there all along.
};

/// One step of settling: logical units [first, end) lie on the pinned path now. All but the last are `published`.
struct settled_units {
  std::uint32_t first = 0;                   ///< [units]
  std::uint32_t end = 0;                     ///< [units] Equal to `first`: nothing is left to settle.
  unit_origin last = unit_origin::published; ///< Where the last one comes from.
  unit_id replaced{};                        ///< Of an `idle_twin`: the unit whose place it took.
  [[nodiscard]] auto empty() const noexcept -> bool { return first == end; } ///< Nothing happened.
};

/// Units of one sequence. Operations that may need memory say so; all others allocate nothing below `reserve`.
class prefix_path {
public:
  /// Publishes whatever is full.
  static constexpr std::uint32_t publish_all = std::numeric_limits<std::uint32_t>::max();

  /// Makes room for \p units entries. \throws std::bad_alloc
  auto reserve(std::uint32_t units) -> void { units_.reserve(units); }
  /// By logical unit.
  [[nodiscard]] auto units() const noexcept -> std::span<unit_id const> { return units_; }
  /// Units in all.
  [[nodiscard]] auto size() const noexcept -> std::uint32_t { return static_cast<std::uint32_t>(units_.size()); }
  /// [units] on the pinned path.
  [[nodiscard]] auto pinned() const noexcept -> std::uint32_t { return pinned_; }
  /// Path in the prefix index.
  [[nodiscard]] auto pin() const noexcept -> prefix_pin const& { return pin_; }
  /// It may write its partial last unit although others read it.
  [[nodiscard]] auto owns_tail() const noexcept -> bool { return owns_tail_; }
  /// The last unit is read by others who may not see what this sequence would write.
  auto disown_tail() noexcept -> void { owns_tail_ = false; }
  /// It is a fork or was forked: others may publish private units of its path.
  [[nodiscard]] auto forked() const noexcept -> bool { return forked_; }
  /// Units that end at or before \p end [tokens] may be published.
  auto publish_until(std::uint32_t end) noexcept -> void { publish_end_ = end; }
  /// [tokens] in front of the first private unit.
  [[nodiscard]] auto shared_until(block_geometry const& unit) const noexcept -> std::uint32_t {
    return pinned_ * unit.block_tokens();
  }
  /// The token at position \p at, whose id is known.
  template <class Index>
  [[nodiscard]] auto token(Index const& index, block_geometry const& unit, std::uint32_t at) const -> token_id {
    return index.tokens(units_[unit.index(at)])[unit.offset(at)];
  }
  /// [tokens] as told.
  [[nodiscard]] auto publish_end() const noexcept -> std::uint32_t { return publish_end_; }

  // --- beginning ----------------------------------------------------------------------------------------------------
  /// Becomes \p units entries, for a look-up to fill.
  auto open(std::uint32_t units) -> std::span<unit_id> {
    units_.resize(units);
    return units_;
  }
  /// Keeps the first \p units entries of a look-up.
  auto shrink(std::uint32_t units) noexcept -> void { units_.resize(units); }
  /// Pins a match, whose units stand in the path already. \complexity O(nodes) \source S26 (1)
  template <class Index>
  auto attach(Index& index, prefix_match const& match) -> void {
    pin_ = index.pin(match);
    pinned_ = match.units.value();
    units_.resize(pinned_);
    owns_tail_ = forked_ = false;
  }

  // --- growing ------------------------------------------------------------------------------------------------------
  /// True if the next write goes to a unit that must be copied first: one that is published, or that others may read.
  template <class Index>
  [[nodiscard]] auto must_copy(Index const& index, block_geometry const& unit, sequence_lengths const& at) const
      -> bool {
    auto const u = unit.index(at.committed);
    if (u >= size() || at.skips() > 0) { return false; }
    if (owns_tail_ && u >= pinned_) { return false; } // nobody else can have filled and published it
    return u < pinned_ || index.published(units_[u]) || (!owns_tail_ && index.holders(units_[u]) > 1);
  }
  /// [units] that \p q more positions take, a copy included.
  template <class Index>
  [[nodiscard]] auto units_for(Index const& index, block_geometry const& unit, sequence_lengths const& at,
                               std::uint32_t q) const -> std::uint32_t {
    auto const wanted = unit.blocks(at.committed + q);
    return (wanted > size() ? wanted - size() : 0) + (must_copy(index, unit, at) ? 1U : 0U);
  }
  /// Takes what \p q more positions need. \returns the unit that was copied, none if none was.
  /// \pre the index has `units_for` free units, and the path has room
  template <class Index>
  auto take(Index& index, block_geometry const& unit, sequence_lengths const& at, std::uint32_t q) -> unit_id {
    auto source = unit_id::none();
    if (must_copy(index, unit, at)) {
      auto& entry = units_[unit.index(at.committed)];
      source = std::exchange(entry, index.take_unit());
      auto const front = index.tokens(source).first(unit.offset(at.committed));
      std::copy(front.begin(), front.end(), index.tokens(entry).begin());
    }
    for (auto const wanted = unit.blocks(at.committed + q); size() < wanted;) { units_.push_back(index.take_unit()); }
    return source;
  }
  /// Undoes `take`.
  template <class Index>
  auto give_back(Index& index, block_geometry const& unit, sequence_lengths const& at, unit_id source) -> void {
    for (auto const before = unit.blocks(at.covered()); size() > before; units_.pop_back()) {
      index.drop_unit(units_.back());
    }
    if (source) { index.drop_unit(std::exchange(units_[unit.index(at.committed)], source)); }
  }
  /// Exchanges logical unit \p u for \p by: a copy steps aside for its source while holds on that are settled.
  auto swap(std::uint32_t u, unit_id by) noexcept -> unit_id { return std::exchange(units_[u], by); }
  /// Gives up the unit \p source, of which logical unit \p u is the copy. \returns a pin to give back, empty if none is
  template <class Index>
  [[nodiscard]] auto leave_source(Index& index, std::uint32_t u, unit_id source) -> prefix_pin {
    if (u < pinned_) { return shorten(index, u); }
    index.drop_unit(source);
    return {};
  }
  /// Positions from \p at on get their ids; nobody else writes there.
  template <class Index>
  auto keep_tokens(Index& index, block_geometry const& unit, std::uint32_t at, std::span<token_id const> tokens)
      -> void {
    while (!tokens.empty()) {
      auto const offset = unit.offset(at);
      auto const n = std::min<std::size_t>(unit.block_tokens() - offset, tokens.size());
      std::copy_n(tokens.begin(), n, index.tokens(units_[unit.index(at)]).subspan(offset).begin());
      tokens = tokens.subspan(n);
      at += static_cast<std::uint32_t>(n);
    }
  }
  /// What it takes in a step is its own.
  auto own_tail() noexcept -> void { owns_tail_ = true; }

  // --- publishing ---------------------------------------------------------------------------------------------------
  /// Publishes the next full units, moves onto an equal one that exists already, or turns the hold on a unit that another
  /// holder has published into the pin. Call it until nothing is left.
  /// \param publishes false: nothing new is published, unless a unit behind it was, so that the pin must get there
  /// \complexity O(units settled) \source S21, S26 (2)
  template <class Index>
  auto settle(Index& index, block_geometry const& unit, sequence_lengths const& at, bool publishes = true)
      -> settled_units {
    auto const first = pinned_;
    if (first >= size()) { return {.first = first, .end = first}; }
    if (forked_ && index.published(units_[first])) {
      index.adopt(pin_, units_[first]);
      ++pinned_;
      return {.first = first, .end = pinned_, .last = unit_origin::adopted};
    }
    auto full = publishes ? unit.index(std::min({at.committed, at.known, publish_end_})) : 0U;
    if (first >= full) {
      if (!published_behind(index)) { return {.first = first, .end = first}; }
      full = first + 1;
    }
    auto end = first;
    if (!forked_) { end = full; }
    for (auto holders = 1U; end < full && holders == 1 && !index.published(units_[end]);) {
      holders = index.holders(units_[end++]);
    }
    auto const done = index.publish(pin_, std::span{units_}.subspan(first, end - first));
    pinned_ += done.published.value();
    if (done.replaced) {
      return {.first = first, .end = pinned_, .last = unit_origin::idle_twin, .replaced = done.replaced};
    }
    if (!done.existing) { return {.first = first, .end = pinned_}; }
    index.drop_unit(std::exchange(units_[pinned_], done.existing));
    ++pinned_;
    return {.first = first, .end = pinned_, .last = unit_origin::busy_twin};
  }

  // --- forking, cutting, ending -------------------------------------------------------------------------------------
  /// Makes \p child a copy of the first \p units units. \pre it is empty and has room. \source S23, B7
  template <class Index>
  auto fork(Index& index, prefix_path& child, std::uint32_t units) -> void {
    child.units_.assign(units_.begin(), units_.begin() + units);
    child.pinned_ = std::min(pinned_, units);
    child.pin_ = index.pin_back(pin_, unit_count{pinned_ - child.pinned_});
    for (auto u = child.pinned_; u < units; ++u) { index.share_unit(units_[u]); }
    child.owns_tail_ = false;
    child.publish_end_ = publish_end_;
    child.forked_ = forked_ = true;
  }
  /// [units] that would become evictable if only the first \p units stayed pinned.
  template <class Index>
  [[nodiscard]] auto would_release(Index const& index, std::uint32_t units) const -> unit_count {
    return units < pinned_ ? index.would_release(pin_, unit_count{pinned_ - units}) : unit_count{0};
  }
  /// [units] that become free if only the first \p units are kept.
  template <class Index>
  [[nodiscard]] auto would_free(Index const& index, std::uint32_t units) const -> std::uint32_t {
    auto const begin = units_.begin() + std::max(units, pinned_);
    return begin < units_.end() ? static_cast<std::uint32_t>(std::count_if(
                                      begin, units_.end(), [&](unit_id u) { return index.holders(u) == 1; }))
                                : 0U;
  }
  /// Cuts back to the first \p units units. Nothing unpublishes: what was shared stays shared.
  /// \returns a pin to give back, empty if none is. \pre no plan is open. \source B6
  template <class Index>
  [[nodiscard]] auto truncate(Index& index, std::uint32_t units) -> prefix_pin {
    index.drop_units(this->units().subspan(std::min(std::max(units, pinned_), size())));
    units_.resize(units);
    auto longer = units < pinned_ ? shorten(index, units) : prefix_pin{};
    // Others may read what this sequence would now overwrite: it is a reader like them until it is alone.
    owns_tail_ = units <= pinned_ || index.holders(units_[units - 1]) == 1;
    return longer;
  }
  /// Gives all private units back. \returns the pin to give back. \pre no plan is open, and everything is settled
  template <class Index>
  [[nodiscard]] auto drop(Index& index) -> prefix_pin {
    index.drop_units(units().subspan(pinned_));
    units_.clear();
    pinned_ = 0;
    owns_tail_ = forked_ = false;
    return std::move(pin_);
  }

private:
  template <class Index>
  [[nodiscard]] auto shorten(Index& index, std::uint32_t units) -> prefix_pin {
    auto shorter = index.pin_back(pin_, unit_count{pinned_ - units});
    auto longer = std::move(pin_);
    pin_ = std::move(shorter);
    pinned_ = units;
    return longer;
  }
  /// True if a unit behind the first unpinned one was published by another holder.
  template <class Index>
  [[nodiscard]] auto published_behind(Index const& index) const noexcept -> bool {
    if (!forked_) { return false; }
    return std::any_of(units_.begin() + pinned_ + 1, units_.end(), [&](unit_id u) { return index.published(u); });
  }

  prefix_pin pin_;
  std::uint32_t pinned_ = 0;
  std::uint32_t publish_end_ = publish_all;
  detail::unfilled_vector<unit_id> units_;
  bool owns_tail_ = false;
  bool forked_ = false;
};

} // namespace quire
