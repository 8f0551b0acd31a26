// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Many requests at a time, by their time of arrival, in the rounds of a continuously batching engine.
///
/// ```text
///   clock   ──┬──────┬──────┬──────┬──▶  rounds of 20 ms; an idle engine jumps to the next arrival
///   arrive    a      b c             first come, first served: who does not fit waits, and all behind it
///   a         [prefill ──][d][d][d]──▶ release          d = a block's worth of output
///   b                [prefill]…                         one plan_step serves all that are due in a round
/// ```
///
/// Time is computed from lengths and two rates, never measured, so a replay always does the same.

#include "replay/engine.hpp"
#include "replay/tokens.hpp"
#include "replay/trace.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <queue>
#include <span>
#include <tuple>
#include <utility> // std::move
#include <vector>

namespace replay {

/// The loop; its constructor runs it. \pre the requests are sorted by arrival
template <class Eviction, class Progress>
class overlap_loop {
  using sequence = typename engine<Eviction>::sequence;
  using step_item = typename engine<Eviction>::step_item;

public:
  /// Replays everything in \p e. \param progress is called with the number of requests that were let in or refused.
  overlap_loop(engine<Eviction>& e, Progress progress) : e_{&e}, progress_{progress} {
    auto const& requests = e.input().requests;
    if (!requests.empty()) { round_ = round_of(requests.front().arrival); }
    let_in();
    while (!due_.empty() || next_ < requests.size()) {
      auto until = due_.empty() ? round_of(requests[next_].arrival) : due_.top().round;
      if (next_ < requests.size() && !blocked_) {
        until = std::min(until, std::max(round_ + 1, round_of(requests[next_].arrival)));
      }
      e.sample(static_cast<double>(until - round_) * round_seconds);
      round_ = until;
      run_due();
      let_in();
    }
  }

private:
  static constexpr double round_seconds = 0.02;

  struct running {
    std::size_t request = 0;
    std::vector<sequence> branches;
    std::vector<std::uint32_t> branch_of; // of an entry of `branches`
    bool prefilled = false;
    std::uint32_t done = 0; // [tokens] of output of each branch
  };
  struct event {
    std::uint64_t round;
    std::uint64_t order; // of creation, so that ties are always broken alike
    std::size_t slot;
    friend auto operator>(event const& a, event const& b) noexcept -> bool {
      return std::tie(a.round, a.order) > std::tie(b.round, b.order);
    }
  };

  [[nodiscard]] static auto round_of(double seconds) -> std::uint64_t {
    return static_cast<std::uint64_t>(std::ceil(seconds / round_seconds));
  }
  auto wake(std::size_t slot, double seconds) -> void {
    due_.push({round_ + std::max<std::uint64_t>(1, round_of(seconds)), ++orders_, slot});
  }

  /// Admits, in order, whoever has arrived and fits.
  auto let_in() -> void {
    auto const& requests = e_->input().requests;
    while (next_ < requests.size() && round_of(requests[next_].arrival) <= round_) {
      auto const refused = e_->result().refused;
      auto admitted = e_->admit(next_);
      if (!admitted && e_->result().refused == refused) { // no room now
        blocked_ = true;
        return;
      }
      blocked_ = false;
      if (admitted && round_of(requests[next_].arrival) < round_) { ++e_->result().waited; }
      if (admitted) { start(std::move(*admitted)); }
      progress_(++next_);
    }
  }
  auto start(sequence&& s) -> void {
    auto slot = slots_.size();
    if (unused_.empty()) {
      slots_.emplace_back();
    } else {
      slot = unused_.back();
      unused_.pop_back();
    }
    auto const left = e_->prompt().size() - s.cached().value();
    auto& r = slots_[slot];
    r.request = next_;
    r.prefilled = false;
    r.done = 0;
    r.branch_of.assign(1, 0);
    r.branches.clear();
    r.branches.push_back(std::move(s));
    e_->result().peak_running = std::max(e_->result().peak_running, slots_.size() - unused_.size());
    wake(slot, static_cast<double>(left) / e_->options().prefill_rate);
  }

  /// Steps everything that is due in this round.
  auto run_due() -> void {
    while (!due_.empty() && due_.top().round <= round_) {
      batch_.clear();
      std::size_t rows = 0;
      std::size_t tokens = 0;
      while (!due_.empty() && due_.top().round <= round_ &&
             rows + slots_[due_.top().slot].branches.size() <= engine<Eviction>::max_rows) {
        auto const slot = due_.top().slot;
        due_.pop();
        batch_.push_back(slot);
        rows += slots_[slot].branches.size();
        tokens += slots_[slot].branches.size() * share_of(slots_[slot]);
      }
      step(tokens);
      e_->sample(0); // the peak is before the releases
      for (auto const slot : batch_) { advance(slot); }
    }
  }
  /// [tokens] that each branch of \p r adds in its next step.
  [[nodiscard]] auto share_of(running const& r) const -> std::uint32_t {
    auto const& request = e_->input().requests[r.request];
    return r.prefilled ? std::min(e_->options().block_tokens, request.output - r.done)
                       : request.prompt - r.branches.front().cached().value();
  }
  auto step(std::size_t tokens) -> void {
    auto const& t = e_->input();
    tokens_.resize(tokens);
    items_.clear();
    std::size_t at = 0;
    for (auto const slot : batch_) {
      auto const& r = slots_[slot];
      auto const& request = t.requests[r.request];
      auto const n = share_of(r);
      for (std::size_t k = 0; k < r.branches.size(); ++k) {
        auto const own = std::span{tokens_}.subspan(at, n);
        at += n;
        if (r.prefilled) {
          write_tokens(answer_text(request.number, r.branch_of[k]), r.done, own);
        } else {
          write_rest(request, request.prompt - n, own);
        }
        items_.emplace_back(r.branches[k], own);
      }
    }
    e_->step(items_);
  }
  /// Writes the prompt of \p r from position \p from on.
  auto write_rest(request const& r, std::uint32_t from, std::span<quire::token_id> out) -> void {
    std::uint32_t begin = 0;
    for (auto const& s : e_->input().prompt_of(r)) {
      auto const skip = from > begin ? std::min(from - begin, s.tokens) : 0;
      if (skip < s.tokens) { write_tokens(s.text, skip, out.subspan(begin + skip - from, s.tokens - skip)); }
      begin += s.tokens;
    }
  }
  auto advance(std::size_t slot) -> void {
    auto& r = slots_[slot];
    auto const& request = e_->input().requests[r.request];
    if (r.prefilled) {
      r.done += share_of(r);
    } else {
      r.prefilled = true;
      for (std::uint32_t b = 1; request.output > 0 && b < request.branches; ++b) {
        if (auto child = e_->fork(r.branches.front())) {
          r.branches.push_back(std::move(*child));
          r.branch_of.push_back(b);
        }
      }
    }
    if (r.done < request.output) {
      wake(slot, static_cast<double>(share_of(r)) / e_->options().decode_rate);
      return;
    }
    for (std::size_t k = 0; k < r.branches.size(); ++k) {
      e_->release(std::move(r.branches[k]), r.request, r.branch_of[k], next_);
    }
    r.branches.clear();
    unused_.push_back(slot);
  }

  engine<Eviction>* e_;
  Progress progress_;
  std::uint64_t round_ = 0;
  std::uint64_t orders_ = 0;
  std::size_t next_ = 0; // request to let in
  bool blocked_ = false; // it waits for blocks
  std::vector<running> slots_;
  std::vector<std::size_t> unused_;
  std::priority_queue<event, std::vector<event>, std::greater<>> due_;
  std::vector<std::size_t> batch_;
  std::vector<step_item> items_;
  std::vector<quire::token_id> tokens_;
};

} // namespace replay
