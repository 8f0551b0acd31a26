// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What work in flight may still do with the blocks of a group, and the blocks that wait for it.
///
/// ```text
///   left by its last holder ─▶ [ queue of the first timeline that is behind ] ─▶ [ of the next one ] ─▶ idle, free or lost
/// ```
///
/// A block waits until the last use that anybody who left it has told is over. One that is held again meanwhile stays in its
/// queue, and is passed over when it is its turn.

#include <quire/cache/detail/fence_clock.hpp>
#include <quire/core/types.hpp>

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
/// Without work in flight (an immediate clock) it is empty, and every call is nothing.
template <class Clock>
class waiting_blocks {
  static constexpr bool immediate = Clock::immediate;

public:
  using tickets = typename Clock::tickets;

  waiting_blocks(Clock const& clock, std::uint32_t blocks) : clock_{&clock}, uses_(immediate ? 0 : blocks) {}

  /// Somebody left \p block, whose work may use it until \p last.
  auto note_use([[maybe_unused]] block_id block, [[maybe_unused]] tickets const& last) noexcept -> void {
    if constexpr (!immediate) { join(uses_[block.value()].last, last); }
  }
  /// Work until \p last may have written \p block.
  auto note_writes([[maybe_unused]] block_id block, [[maybe_unused]] tickets const& last) noexcept -> void {
    if constexpr (!immediate) { join(uses_[block.value()].written, last); }
  }
  /// Work of \p timeline writes \p block \p until then.
  auto note_write([[maybe_unused]] block_id block, [[maybe_unused]] std::uint32_t timeline,
                  [[maybe_unused]] ticket until) noexcept -> void {
    if constexpr (!immediate) { uses_[block.value()].written[timeline] = until; }
  }
  /// Adds to \p until what those who left \p block still do with it.
  auto join_use([[maybe_unused]] block_id block, [[maybe_unused]] tickets& until) const noexcept -> void {
    if constexpr (!immediate) { join(until, uses_[block.value()].last); }
  }

  // --- queues -------------------------------------------------------------------------------------------------------
  /// [blocks] without a holder in the queues.
  [[nodiscard]] auto size() const noexcept -> std::uint32_t { return waiting_; }
  /// True if \p block stands in a queue.
  [[nodiscard]] auto queued([[maybe_unused]] block_id block) const noexcept -> bool {
    if constexpr (immediate) {
      return false;
    } else {
      return uses_[block.value()].next != unqueued;
    }
  }
  /// The last holder of \p block left. \returns true if it waits
  auto enter([[maybe_unused]] block_id block) noexcept -> bool {
    if constexpr (immediate) {
      return false;
    } else {
      auto& use = uses_[block.value()];
      if (use.doomed) { return false; } // nobody will have it again: there is nothing to wait for
      if (use.next == unqueued) {
        if (clock_->reached(use.last)) { return false; }
        auto& queue = queues_[clock_->behind(use.last)];
        (queue.head == none ? queue.head : uses_[queue.tail].next) = block.value();
        queue.tail = block.value();
        use.next = none;
      }
      ++waiting_;
      return true;
    }
  }
  /// \p block, which waits, is held again.
  auto hold_again() noexcept -> void { --waiting_; }
  /// Calls \p over(block) for each that waited for tickets that are reached now. \param held tells if somebody holds a block
  template <class Held, class Over>
  auto reclaim([[maybe_unused]] Held held, [[maybe_unused]] Over over) -> void {
    if constexpr (!immediate) {
      for (std::uint32_t t = 0; t < Clock::timelines; ++t) {
        auto& queue = queues_[t];
        while (queue.head != none && clock_->reached(t, uses_[queue.head].last[t])) {
          auto const block = block_id{queue.head};
          queue.head = std::exchange(uses_[queue.head].next, unqueued);
          if (held(block) || doomed(block)) { continue; }
          --waiting_;
          over(block);
        }
      }
    }
  }
  /// Visits every block in the queues that is not lost, held again or not.
  template <class Visit>
  auto for_each([[maybe_unused]] Visit visit) const -> void {
    if constexpr (!immediate) {
      for (auto const& queue : queues_) {
        for (auto b = queue.head; b != none; b = uses_[b].next) {
          if (!uses_[b].doomed) { visit(block_id{b}); }
        }
      }
    }
  }

  // --- lost timelines -----------------------------------------------------------------------------------------------
  /// Blocks that \p timeline may still write are never used again; those that wait are lost now. \param held tells if
  /// somebody holds a block \pre the clock has not given the timeline up yet
  template <class Held>
  auto doom(std::uint32_t timeline, Held held) -> void {
    for (std::uint32_t b = 0; b < uses_.size(); ++b) {
      auto& use = uses_[b];
      if (use.doomed || clock_->reached(timeline, use.written[timeline])) { continue; }
      use.doomed = true;
      if (use.next == unqueued || held(block_id{b})) { continue; }
      --waiting_;
      ++lost_;
    }
  }
  [[nodiscard]] auto doomed([[maybe_unused]] block_id block) const noexcept -> bool {
    if constexpr (immediate) {
      return false;
    } else {
      return uses_[block.value()].doomed;
    }
  }
  /// Nobody holds a doomed block any more.
  auto lose() noexcept -> void { ++lost_; }
  /// [blocks] that are lost for good.
  [[nodiscard]] auto lost() const noexcept -> std::uint32_t { return lost_; }

private:
  static constexpr std::uint32_t none = 0xffff'ffffU;
  static constexpr std::uint32_t unqueued = 0xffff'fffeU;

  struct block_uses {
    tickets written{};             // the last that wrote it
    tickets last{};                // the last use of those who left it
    std::uint32_t next = unqueued; // in the queue it waits in
    bool doomed = false;           // a device that was given up may write it
  };
  struct queue_type {
    std::uint32_t head = none;
    std::uint32_t tail = none;
  };

  Clock const* clock_;
  std::vector<block_uses> uses_; // by block
  std::array<queue_type, Clock::timelines> queues_{};
  std::uint32_t waiting_ = 0;
  std::uint32_t lost_ = 0;
};
/// \endcond

} // namespace quire::detail
