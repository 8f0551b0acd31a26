// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Who holds which block, and in which state of its life it is.
///
/// ```text
///   word[block]    31    29 28                              0
///                 ├────────┼─────────────────────────────────┤
///                 │ state  │ holders (sequences, by table)   │
///                 └────────┴─────────────────────────────────┘
/// ```
///
/// *Holders* counts the sequences that reach a private block through their tables. A published block is
/// held through pins of its prefix node instead, so that releasing a long shared prefix touches no block.

#include <quire/block/block_state.hpp> // IWYU pragma: keep, a default
#include <quire/block/concepts.hpp>
#include <quire/block/fwd.hpp>
#include <quire/block/lifo_allocation.hpp> // IWYU pragma: keep, a default
#include <quire/core/config_error.hpp>
#include <quire/core/contract.hpp>
#include <quire/core/types.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace quire {

/// A pool of blocks with their states and holders. Knows nothing of tokens, prefixes or sequences.
/// \tparam Allocation models `allocation_policy`. \tparam Lifecycle models `block_lifecycle`.
template <allocation_policy Allocation, block_lifecycle Lifecycle>
class block_pool {
public:
  /// States of the life cycle.
  using state_type = typename Lifecycle::state;
  /// Where free blocks come from.
  using allocation_type = Allocation;
  /// Events of the life cycle.
  using event_type = typename Lifecycle::event;

  /// Creates \p capacity free blocks. \throws config_error if \p capacity is 0 or does not fit.
  explicit block_pool(block_count capacity) : words_(checked(capacity).value(), 0), free_{capacity} {}
  /// Creates \p capacity blocks of which \p free has those that can be allocated: a policy that was made elsewhere, such as
  /// `group_allocation`. \throws config_error as above. \pre every block that \p free hands out is below \p capacity
  block_pool(block_count capacity, Allocation free) : words_(checked(capacity).value(), 0), free_{std::move(free)} {}

  /// [blocks] in total.
  [[nodiscard]] auto capacity() const noexcept -> block_count {
    return block_count{static_cast<std::uint32_t>(words_.size())};
  }
  /// [blocks] that can be allocated at once.
  [[nodiscard]] auto free_blocks() const noexcept -> block_count { return free_.available(); }

  /// Takes one free block into `writing` with one holder; `none()` if there is none. \complexity O(1)
  [[nodiscard]] auto try_allocate() noexcept -> block_id {
    auto const block = free_.take();
    if (block) { words_[block.value()] = word(state_type::writing, 1); }
    return block;
  }
  /// Fills \p out from the front with blocks in `writing`; returns how many. \complexity O(out)
  auto try_allocate(std::span<block_id> out) noexcept -> block_count {
    auto const n = free_.take(out);
    for (std::uint32_t i = 0; i < n.value(); ++i) { words_[out[i].value()] = word(state_type::writing, 1); }
    return n;
  }

  /// State of \p block. \pre it belongs to this pool.
  [[nodiscard]] auto state(block_id block) const -> state_type {
    QUIRE_EXPECTS(block.value() < words_.size());
    return static_cast<state_type>(words_[block.value()] >> state_shift);
  }
  /// Sequences that hold \p block through their tables. \pre it belongs to this pool.
  [[nodiscard]] auto holders(block_id block) const -> std::uint32_t {
    QUIRE_EXPECTS(block.value() < words_.size());
    return words_[block.value()] & holders_mask;
  }

  /// Applies \p event to \p block. \pre the life-cycle table has that edge: an illegal transition is a bug
  /// of the caller and is refused before anything changes (S25).
  auto apply(block_id block, event_type event) -> void { set_state(block, after(state(block), event)); }

  /// Adds a holder to a published block, which may have none.
  auto hold(block_id block) -> void {
    QUIRE_EXPECTS(state(block) == state_type::published);
    ++words_[block.value()];
  }
  /// Adds a holder. \pre \p block has one.
  auto retain(block_id block) -> void {
    QUIRE_EXPECTS(holders(block) > 0);
    ++words_[block.value()];
  }
  /// Drops a holder; true if it was the last one. \pre \p block has a holder (a double release is caught here).
  [[nodiscard]] auto release(block_id block) -> bool {
    QUIRE_EXPECTS(holders(block) > 0);
    return (--words_[block.value()] & holders_mask) == 0;
  }

  /// Drops a holder and, if it was the last one, retires the block: true then. One write for both.
  /// \pre \p block has a holder, and its state may retire
  [[nodiscard]] auto release_and_retire(block_id block) -> bool {
    QUIRE_EXPECTS(holders(block) > 0);
    auto const last = holders(block) == 1;
    if (!last) {
      --words_[block.value()];
      return false;
    }
    words_[block.value()] = word(after(state(block), event_type::retire), 0);
    return true;
  }

  /// Publishes a private block that has one holder, and drops that: somebody else keeps it from now on. One write for both.
  /// \returns false, with nothing done, if it is no such block
  [[nodiscard]] auto publish_and_release(block_id block) -> bool {
    auto& current = words_[block.value()];
    if (current != word(state_type::private_, 1)) { return false; }
    current = word(after(state_type::private_, event_type::publish), 0);
    return true;
  }

  /// Gives a block without holders back: `retiring` → `free`. \pre the fence of its last use is reached.
  auto reclaim(block_id block) -> void {
    QUIRE_EXPECTS(holders(block) == 0);
    apply(block, event_type::reclaim);
    free_.give(block);
  }
  /// Retires and reclaims at once: the path of a block that no in-flight work touches.
  auto retire_and_reclaim(block_id block) -> void {
    QUIRE_EXPECTS(holders(block) == 0);
    words_[block.value()] = word(after(after(state(block), event_type::retire), event_type::reclaim), 0);
    free_.give(block);
  }
  /// The same for a block that leaves the index and that nobody holds.
  auto evict_and_reclaim(block_id block) -> void {
    QUIRE_EXPECTS(holders(block) == 0);
    words_[block.value()] = word(after(after(state(block), event_type::evict), event_type::reclaim), 0);
    free_.give(block);
  }
  /// Drops a holder of each of \p blocks and frees those that had no other: what a sequence held that no in-flight work
  /// touches. Words come in runs of equal ones, so the table is asked once a run.
  /// \pre as `release_and_retire` and `reclaim`; no block is named twice. \complexity O(blocks)
  auto release_and_reclaim(std::span<block_id const> blocks) -> void {
    auto seen = ~std::uint32_t{0}; // more holders than there can be: none of these
    std::uint32_t next = 0;
    auto all_free = true;
    for (auto const block : blocks) {
      QUIRE_EXPECTS(block.value() < words_.size());
      auto& current = words_[block.value()];
      if (current != seen) {
        QUIRE_EXPECTS(holders(block) > 0);
        seen = current;
        next = holders(block) > 1 ? current - 1
                                  : word(after(after(state(block), event_type::retire), event_type::reclaim), 0);
        all_free = all_free && next == 0;
      }
      current = next;
    }
    if constexpr (requires { free_.give(blocks); }) {
      if (all_free) { return free_.give(blocks); }
    }
    for (auto const block : blocks) {
      if (words_[block.value()] == 0) { free_.give(block); }
    }
  }
  /// Renumbers blocks in use: block b becomes `to[b]` (a free one) unless that is `none()`.
  /// \pre every target is free and named once. \complexity O(capacity)
  auto relocate(std::span<block_id const> to) -> void {
    QUIRE_EXPECTS(to.size() == words_.size());
    for (auto n = free_.available().value(); n > 0; --n) { static_cast<void>(free_.take()); }
    for (std::size_t b = 0; b < to.size(); ++b) {
      if (to[b]) { std::swap(words_[b], words_[to[b].value()]); }
    }
    for (auto b = words_.size(); b-- > 0;) {
      if (words_[b] == 0) { free_.give(block_id{static_cast<std::uint32_t>(b)}); }
    }
  }

  /// The same where free blocks belong to somebody else as well: every target was taken from the pool before, and the places
  /// left are given back.
  auto relocate_to_taken(std::span<block_id const> to) -> void {
    QUIRE_EXPECTS(to.size() == words_.size());
    for (std::size_t b = 0; b < to.size(); ++b) {
      if (!to[b]) { continue; }
      words_[to[b].value()] = std::exchange(words_[b], 0);
      free_.give(block_id{static_cast<std::uint32_t>(b)});
    }
  }

private:
  static constexpr unsigned state_shift = 29;
  static constexpr std::uint32_t holders_mask = (std::uint32_t{1} << state_shift) - 1;
  static_assert(static_cast<std::uint32_t>(state_type::count_) <= (1U << (32 - state_shift)),
                "the state must fit 3 bits");
  static_assert(static_cast<std::uint32_t>(state_type::free) == 0, "a zeroed word is a free block");

  static auto checked(block_count capacity) -> block_count {
    if (capacity.value() == 0) { throw config_error{"block_pool: capacity is 0 blocks, it must be at least 1"}; }
    if (capacity.value() > max_blocks) {
      throw config_error{"block_pool: more than 2^31 - 1 blocks: use larger blocks or several pools"};
    }
    return capacity;
  }
  static constexpr std::uint32_t max_blocks = 0x7fff'ffffU; // the views carry block numbers as int32
  [[nodiscard]] static constexpr auto word(state_type state, std::uint32_t holders) noexcept -> std::uint32_t {
    return (static_cast<std::uint32_t>(state) << state_shift) | holders;
  }
  /// The state that \p event leads to. `allows` comes first: the optional of `next` alone would go through memory.
  [[nodiscard]] static auto after(state_type from, event_type event) -> state_type {
    QUIRE_EXPECTS(Lifecycle::table.allows(from, event));
    return *Lifecycle::table.next(from, event);
  }
  auto set_state(block_id block, state_type to) noexcept -> void {
    words_[block.value()] = word(to, words_[block.value()] & holders_mask);
  }

  std::vector<std::uint32_t> words_;
  Allocation free_;
};

} // namespace quire
