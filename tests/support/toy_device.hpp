// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A device that is late. Each timeline is a queue of jobs and tickets; jobs run in the order of their queue, queues
/// advance in any order, and a `wait` action holds a job back until another queue has come to a ticket.
///
///     timeline 0   [job][t1][job: wait 1≥t1][t2] …      memory[block · p_b + offset] = KV of one position
///     timeline 1   [job][t1] …
///
/// A job poisons the blocks it was given, performs its actions, writes the KV of its new positions to their slots and then
/// reads *every* readable position of every row back through the view itself, which has to be what it was at launch.

#include <quire/core/types.hpp>
#include <quire/view/action.hpp>
#include <quire/view/batch_view.hpp>
#include <quire/view/host_executor.hpp>
#include <quire/view/host_plane.hpp>
#include <quire/view/mirror.hpp>
#include <quire/view/validate.hpp>

#include "support/toy_kv.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace quire_test {

/// What one launched step asks the device to do.
struct toy_job {
  quire::batch_view view;                     ///< Read when the job runs, not when it is enqueued.
  std::vector<quire::action> actions;         ///< To perform first, in order.
  std::vector<quire::block_id> fresh;         ///< Blocks that the step was given.
  std::vector<std::vector<std::uint64_t>> kv; ///< [rows] KV of every readable position, the new ones included.
  std::vector<std::int32_t> table;            ///< The view's table at launch.
  std::vector<std::int64_t> slot;             ///< The view's slots at launch.
  std::vector<std::int32_t> queries;          ///< [rows] New positions.
};

/// Memory and queues. \tparam Timelines number of queues.
template <std::size_t Timelines>
class toy_device {
  struct entry {
    toy_job job;
    std::uint64_t ticket = 0; // not 0: a ticket instead of a job
  };

public:
  /// Memory of \p blocks blocks of \p block_tokens positions, all poison.
  toy_device(std::uint32_t blocks, std::uint32_t block_tokens)
      : block_tokens_{block_tokens}, memory_(std::size_t{blocks} * block_tokens, toy_poison),
        plane_{.bytes = std::as_writable_bytes(std::span{memory_}),
               .block_stride = quire::byte_count{8ULL * block_tokens},
               .token_stride = quire::byte_count{8}},
        group_{.blocks = quire::block_count{blocks},
               .block_tokens = quire::token_count{block_tokens},
               .planes = {&plane_, 1}} {}
  toy_device(toy_device const&) = delete;
  auto operator=(toy_device const&) -> toy_device& = delete;

  /// Adds a job to the end of a queue.
  void enqueue(std::size_t timeline, toy_job job) { queues_[timeline].push_back({std::move(job)}); }
  /// Adds a ticket to the end of a queue: it is reached when everything before it has run.
  void enqueue(std::size_t timeline, quire::ticket ticket) { queues_[timeline].push_back({{}, ticket.value()}); }
  /// Runs the first entry of a queue; false if there is none or it has to wait.
  auto run_one(std::size_t timeline) -> bool {
    auto& queue = queues_[timeline];
    if (queue.empty() || !ready(queue.front().job)) { return false; }
    auto const next = std::move(queue.front());
    queue.pop_front();
    if (next.ticket != 0) {
      executed_[timeline] = next.ticket;
    } else {
      perform(next.job);
    }
    return true;
  }
  /// Runs whatever can run.
  void run_all() {
    for (auto again = true; again;) {
      again = false;
      for (std::size_t t = 0; t < Timelines; ++t) {
        while (run_one(t)) { again = true; }
      }
    }
  }
  /// The queue stops for good. Its jobs become zombies: their writes may still land at any later time.
  void lose(std::size_t timeline) {
    for (auto& e : queues_[timeline]) {
      if (e.ticket == 0) { zombies_.push_back(std::move(e.job)); }
    }
    queues_[timeline].clear();
  }
  /// One zombie writes what it once was to write; nobody cares what it reads.
  void run_zombie(std::size_t which) {
    if (zombies_.empty()) { return; }
    auto const at = zombies_.begin() + static_cast<std::ptrdiff_t>(which % zombies_.size());
    std::erase_if(at->actions, [](auto const& a) { return a.kind == quire::action_kind::wait; });
    toy_check(executor().run(at->actions).has_value(), "the executor refused");
    write(*at);
    zombies_.erase(at);
  }
  /// Performs \p actions now, on the host's word that nothing is in flight.
  void perform(std::span<quire::action const> actions) {
    toy_check(idle(), "actions outside a step while work is in flight");
    toy_check(executor().run(actions).has_value(), "the executor refused");
  }
  /// Fills a block with poison.
  void poison(quire::block_id block) {
    std::fill_n(memory_.begin() + static_cast<std::ptrdiff_t>(std::size_t{block.value()} * block_tokens_),
                block_tokens_, toy_poison);
  }
  /// True if all queues are empty.
  [[nodiscard]] auto idle() const -> bool {
    return std::all_of(queues_.begin(), queues_.end(), [](auto const& queue) { return queue.empty(); });
  }
  /// True if one queue is empty.
  [[nodiscard]] auto idle(std::size_t timeline) const -> bool { return queues_[timeline].empty(); }
  /// The ticket a queue has come to.
  [[nodiscard]] auto executed(std::size_t timeline) const -> std::uint64_t { return executed_[timeline]; }
  /// What memory holds at \p offset of \p block.
  [[nodiscard]] auto at(quire::block_id block, std::uint32_t offset) const -> std::uint64_t {
    return memory_[std::size_t{block.value()} * block_tokens_ + offset];
  }
  /// Positions whose write a step skipped.
  [[nodiscard]] auto skipped_writes() const -> std::uint64_t { return skipped_; }

private:
  struct wait_checked {
    toy_device const* device;
    void operator()(quire::timeline_id timeline, quire::ticket until) const {
      toy_check(device->executed_[timeline.value()] >= until.value(), "a job ran before the ticket it waits for");
    }
  };
  [[nodiscard]] auto executor() { return quire::host_executor<wait_checked>{{&group_, 1}, std::byte{0}, {this}}; }
  [[nodiscard]] auto ready(toy_job const& job) const -> bool {
    return std::all_of(job.actions.begin(), job.actions.end(), [this](auto const& a) {
      return a.kind != quire::action_kind::wait || executed_[a.timeline.value()] >= a.until.value();
    });
  }

  void perform(toy_job const& job) {
    auto const& view = job.view;
    toy_check(std::equal(job.table.begin(), job.table.end(), view.block_table.begin(), view.block_table.end()),
              "a view's table changed before its ticket was reached");
    toy_check(std::equal(job.slot.begin(), job.slot.end(), view.slot.begin(), view.slot.end()),
              "a view's slots changed before its ticket was reached");
    toy_check(quire::validate(view, {.pool = group_.blocks}).has_value(), "a view contradicts itself");
    toy_check(quire::validate_writes(view).has_value(), "a row writes what another row reads");
    auto& mirror = mirrors_[view.buffer];
    if (view.whole_table) { mirror.resize(view.block_table.size()); }
    toy_check(mirror.size() == view.block_table.size(), "a table changed its shape without saying so");
    quire::update_mirror(view, mirror);
    toy_check(std::equal(mirror.begin(), mirror.end(), view.block_table.begin()), "deltas do not give the table");

    for (auto const block : job.fresh) { poison(block); }
    toy_check(executor().run(job.actions).has_value(), "the executor refused");
    write(job);
    for (std::int32_t row = 0; row < view.rows; ++row) {
      auto const& kv = job.kv[static_cast<std::size_t>(row)];
      toy_check(static_cast<std::size_t>(view.row_length(row)) == kv.size(), "a row shows another length");
      for (std::uint32_t p = 0; p < kv.size(); ++p) {
        auto const place = view.locate(row, quire::token_pos{p});
        auto const found = at(place.block, place.offset.value());
        toy_check(found != toy_poison, "read poison at position", p);
        toy_check(found == kv[p], "read foreign or stale bytes at position", p);
      }
    }
  }
  void write(toy_job const& job) {
    for (std::size_t row = 0, k = 0; row < job.kv.size(); ++row) {
      auto const queries = static_cast<std::size_t>(job.queries[row]);
      for (std::size_t i = 0; i < queries; ++i, ++k) {
        if (job.slot[k] < 0) {
          ++skipped_;
          continue;
        }
        memory_[static_cast<std::size_t>(job.slot[k])] = job.kv[row][job.kv[row].size() - queries + i];
      }
    }
  }

  std::uint32_t block_tokens_;
  std::vector<std::uint64_t> memory_;
  quire::host_plane plane_;
  quire::host_group group_;
  std::array<std::deque<entry>, Timelines> queues_;
  std::array<std::uint64_t, Timelines> executed_{};
  std::map<std::int32_t, std::vector<std::int32_t>> mirrors_; // the device's copy of each buffer's table
  std::vector<toy_job> zombies_;
  std::uint64_t skipped_ = 0;
};

} // namespace quire_test
