// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Blocks that nobody holds but in-flight device work may still touch (S18).
///
/// ```text
///   timeline 0:  [ticket 7: 4→9→1] → [ticket 8: 3] → [ticket 11: 6→2]      oldest first
/// ```
///
/// Tickets of a timeline are monotone, so reclaiming pops while the head is reached. Blocks that retire under
/// one ticket share one entry and are chained through one link per block: no entry per block, no event per block.

#include <quire/core/types.hpp>

#include <boost/intrusive/slist.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace quire {

/// FIFO of retired blocks per timeline.
/// \tparam Timelines number of device queues.
template <std::size_t Timelines>
class limbo {
public:
  /// Room for \p capacity blocks of one pool. \complexity O(capacity)
  explicit limbo(block_count capacity) : link_(capacity.value()) {}

  /// Makes sure that `retire` under \p tickets new tickets needs no memory. \throws std::bad_alloc; nothing has changed then.
  auto reserve(std::size_t tickets = Timelines) -> void {
    while (spare_count_ < tickets) {
      spare_.push_front(entries_.emplace_back());
      ++spare_count_;
    }
  }
  /// Adds \p block, untouchable until \p until is reached on \p timeline.
  /// \pre `reserve` left room for a new ticket; tickets do not decrease. \complexity O(1)
  auto retire(block_id block, timeline_id timeline, ticket until) noexcept -> void {
    auto& queue = queues_[timeline.value()];
    if (queue.empty() || queue.back().until != until) {
      auto& fresh = spare_.front();
      spare_.pop_front();
      --spare_count_;
      fresh.until = until;
      fresh.head = block_id::none();
      queue.push_back(fresh);
    }
    auto& entry = queue.back();
    link_[block.value()] = entry.head;
    entry.head = block;
    ++size_;
  }
  /// Hands every block of \p timeline whose ticket \p reached(ticket) to \p reclaim(block_id), oldest ticket first.
  /// \p reclaim may retire the block again, on a later timeline. \complexity O(blocks handed out)
  template <class Reached, class Reclaim>
  auto drain(timeline_id timeline, Reached reached, Reclaim reclaim) -> void {
    auto& queue = queues_[timeline.value()];
    while (!queue.empty() && reached(queue.front().until)) { pop(queue, reclaim); }
  }
  /// Hands every block of \p timeline to \p give_up(block_id): the device is lost and they are never reused.
  template <class GiveUp>
  auto abandon(timeline_id timeline, GiveUp give_up) -> void {
    auto& queue = queues_[timeline.value()];
    while (!queue.empty()) { pop(queue, give_up); }
  }
  /// Blocks waiting.
  [[nodiscard]] auto size() const noexcept -> block_count { return block_count{size_}; }

private:
  struct batch : boost::intrusive::slist_base_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>> {
    ticket until;
    block_id head;
  };
  using list = boost::intrusive::slist<batch, boost::intrusive::constant_time_size<false>>;
  using fifo =
      boost::intrusive::slist<batch, boost::intrusive::constant_time_size<false>, boost::intrusive::cache_last<true>>;

  template <class Take>
  auto pop(fifo& from, Take& take) -> void {
    auto& entry = from.front();
    for (auto block = entry.head; block;) {
      auto const next = link_[block.value()];
      --size_;
      take(block);
      block = next;
    }
    from.pop_front();
    spare_.push_front(entry);
    ++spare_count_;
  }

  std::deque<batch> entries_; // stable addresses; grows to the number of tickets in flight, never per block
  list spare_;
  std::array<fifo, Timelines> queues_;
  std::vector<block_id> link_;
  std::size_t spare_count_ = 0;
  std::uint32_t size_ = 0;
};

} // namespace quire
