// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Who waits, who runs, and who loses its blocks.
///
/// ```text
///   wait ─▶ waiting ── admit_next ─▶ running ── finish, end_early ─▶ over
///    ▲       ▲                         │
///    │       └── to the front: preempt ┘     the youngest, the last one that entered, loses its blocks first
///   follow ── disband, when the leader is over or its prompt cannot be shared
/// ```
///
/// The queue owns the order of those that wait and of those that run, and their places in the cache. It knows no model, no
/// step and no clock: it is told what a step has refused.

#include <quire/cache/requests.hpp>
#include <quire/core/contract.hpp>
#include <quire/core/errc.hpp>
#include <quire/core/expected.hpp>
#include <quire/core/types.hpp>
#include <quire/generate/detail/generation_record.hpp>
#include <quire/generate/generator_options.hpp>
#include <quire/generate/stop_rules.hpp>

#include <algorithm> // std::find, std::max_element, std::min
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <utility> // std::exchange, std::move
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
template <class Cache>
class generation_queue {
public:
  using sequence = typename Cache::sequence;
  using record = generation_record<sequence>;

  /// Lets in to \p cache, which outlives it.
  generation_queue(Cache& cache, generator_options const& options)
      : cache_{&cache}, draft_{options.draft}, max_members_{options.max_members} {}

  // --- places -------------------------------------------------------------------------------------------------------
  /// The batch, in the order of its rows.
  [[nodiscard]] auto running() const noexcept -> std::span<record* const> { return running_; }
  [[nodiscard]] auto waiting() const noexcept -> std::size_t { return waiting_.size(); }
  /// True if one more may run.
  [[nodiscard]] auto has_place() const noexcept -> bool { return running_.size() < max_members_; }
  /// Makes room for \p more, so that `enter` cannot fail.
  auto reserve(std::size_t more) -> void { running_.reserve(running_.size() + more); }
  /// \pre \p order is a permutation of those that run
  auto reorder(std::vector<record*> order) -> void {
    QUIRE_EXPECTS(order.size() == running_.size());
    for (auto at = order.begin(); at != order.end(); ++at) {
      QUIRE_EXPECTS((*at)->seq && std::find(order.begin(), at, *at) == at);
    }
    running_ = std::move(order);
  }

  // --- coming in ----------------------------------------------------------------------------------------------------
  /// \p m waits for room.
  auto wait(record& m) -> void { waiting_.push_back(&m); }
  /// \p m waits for the prompt of \p leader.
  auto follow(record& leader, record& m) -> void {
    leader.followers.push_back(&m);
    m.leader = &leader;
  }
  /// The first one that waits for the prompt of \p leader: it does so no longer. \pre somebody does
  [[nodiscard]] auto next_follower(record& leader) -> record& {
    auto& m = *leader.followers.front();
    leader.followers.erase(leader.followers.begin());
    m.leader = nullptr;
    return m;
  }
  /// Lets in the first one that waits; who can never be let in is over.
  /// \returns who it was; nothing if there is nobody to let in, or no place. \errors why the first one has to wait
  [[nodiscard]] auto admit_next() -> expected<record*> {
    if (running_.empty()) { full_ = false; }
    while (!waiting_.empty() && !full_ && has_place()) {
      auto& m = *waiting_.front();
      reserve(1);
      auto admitted = ask(m);
      if (!admitted) {
        auto const why = admitted.error().code;
        if (why == errc::no_blocks || why == errc::too_many_sequences) { return refuse(why); }
        waiting_.pop_front();
        over(m, m.closing == stop_reason::none ? stop_reason::failed : m.closing);
        continue;
      }
      waiting_.pop_front();
      enter(m, std::move(*admitted));
      if (!m.result.times.admitted) { m.result.cached = m.seq.cached(); }
      return &m;
    }
    return nullptr;
  }
  /// \p m runs on \p seq from now on, as the youngest.
  auto enter(record& m, sequence seq) -> void {
    running_.push_back(&m);
    m.seq = std::move(seq);
    m.result.covered = m.seq.length();
    m.age = ++ages_;
  }

  // --- going away ---------------------------------------------------------------------------------------------------
  /// \p m has said everything, or cannot go on.
  auto finish(record& m, stop_reason why) -> void {
    leave(m);
    cache_->release(std::move(m.seq));
    over(m, why);
  }
  /// Ends \p m wherever it stands. \returns false if it was over already
  auto end_early(record& m, stop_reason why) -> bool {
    if (m.result.over()) { return false; }
    if (m.seq) {
      leave(m);
      why == stop_reason::timed_out ? cache_->time_out(std::move(m.seq)) : cache_->cancel(std::move(m.seq));
    } else if (m.leader != nullptr) {
      std::erase(m.leader->followers, &m);
    } else {
      waiting_.erase(std::find(waiting_.begin(), waiting_.end(), &m));
    }
    over(m, m.closing == stop_reason::none ? why : m.closing);
    return true;
  }
  /// Who waits for the prompt of \p m gets on without it.
  auto disband(record& m) -> void {
    for (auto* const follower : m.followers) {
      follower->leader = nullptr;
      waiting_.push_back(follower);
    }
    m.followers.clear();
  }

  // --- losing blocks ------------------------------------------------------------------------------------------------
  /// Takes the blocks of \p m away and lets it wait at the head of the queue; it will compute again what is gone.
  auto preempt(record& m) -> void {
    if (m.closing != stop_reason::none) { return finish(m, m.closing); } // it has said everything
    waiting_.push_front(&m);
    leave(m);
    m.stray = false;
    if (cache_->preempt(m.seq)) {
      m.queued_before = true;
      ++m.result.preemptions;
    } else {
      m.seq = sequence{}; // nothing was computed yet
    }
  }
  /// Those whose wrong guesses the cache did not cut off compute again what is right.
  auto preempt_strays() -> void {
    for (auto i = running_.size(); i-- > 0;) {
      if (running_[i]->stray) { preempt(*running_[i]); }
    }
  }
  /// Deals with the \p rows that a step refused. \returns false if the only member finds no room
  [[nodiscard]] auto make_room(std::span<step_row<record> const> rows) -> bool {
    auto short_of_blocks = false;
    auto progress = false;
    for (auto const& row : rows) {
      if (row.status == errc::ok) {
        progress = true;
      } else if (row.status == errc::no_blocks) {
        short_of_blocks = true;
      } else if (row.status == errc::stale_epoch) {
        preempt(*row.of);
      } else {
        finish(*row.of, stop_reason::failed);
      }
    }
    if (!short_of_blocks || progress) { restarted_ = false; }
    if (!short_of_blocks) { return true; }
    if (running_.size() < 2) {
      if (progress) { return true; } // the others have just left
      // Blocks that it computed at the same time as somebody else are held twice, its own and the published ones:
      // admitted again it finds the published ones.
      if (std::exchange(restarted_, true)) { return false; }
      preempt(*running_.front());
      return true;
    }
    preempt(**std::max_element(running_.begin(), running_.end(),
                               [](auto const* a, auto const* b) { return a->age < b->age; }));
    full_ = true; // until somebody leaves: else it comes back to lose its blocks again
    return true;
  }

private:
  /// Asks the cache for a place, and for less where all of it can never fit.
  [[nodiscard]] auto ask(record& m) {
    auto admitted = ask(m, m.request.reuse);
    auto const never_fits = [&] { return !admitted && admitted.error().code == errc::never_fits; };
    if (never_fits() && m.drafts && draft_ != token_count{}) {
      m.drafts = false; // what windows keep for guesses is too much
      admitted = ask(m, m.request.reuse);
    }
    if (never_fits() && m.request.reuse == reuse_rule::read_and_write) {
      admitted = ask(m, reuse_rule::write_only); // a copy of what it finds is the one block too many
    }
    return admitted;
  }
  [[nodiscard]] auto ask(record const& m, reuse_rule reuse) {
    auto const left = m.outputs_left();
    auto const draft = m.drafts ? std::min(draft_.value(), left - 1) : 0U; // none lies beyond the last output
    return cache_->admit({.scope = m.request.scope,
                          .prompt = m.text,
                          .max_output = token_count{left - draft},
                          .draft = token_count{draft},
                          .reuse = reuse,
                          .resumed = m.queued_before});
  }
  /// Takes \p m out of the batch; the last row takes its place.
  auto leave(record& m) -> void {
    if (!m.stray) { m.result.covered = m.seq.length(); }
    auto const at = std::find(running_.begin(), running_.end(), &m);
    if (at == running_.end()) { return; }
    *at = running_.back();
    running_.pop_back();
    full_ = false;
  }
  auto over(record& m, stop_reason why) -> void {
    m.result.reason = why;
    disband(m);
  }

  Cache* cache_;
  token_count draft_;
  std::uint32_t max_members_;
  std::vector<record*> running_;
  std::deque<record*> waiting_;
  std::uint64_t ages_ = 0;
  bool restarted_ = false; // the only member has lost its blocks to itself
  bool full_ = false;      // somebody lost its blocks: nobody comes in before somebody leaves
};
/// \endcond

} // namespace quire::detail
