// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The observer that keeps the counters: the one place where events become numbers.

#include <quire/observe/cache_statistics.hpp>
#include <quire/observe/concepts.hpp>
#include <quire/observe/events.hpp>

#include <cstdint>

namespace quire {

/// Adds up events. Tokens are counted at commit and nowhere else.
class counting_observer {
public:
  /// The counters now; a value, so that a reading does not move under its reader (case 77).
  [[nodiscard]] constexpr auto statistics() const noexcept -> cache_statistics { return statistics_; }

  /// Counts the admission; no token.
  constexpr void on_admit(admit_event const& /*event*/) noexcept { ++statistics_.admissions; }
  /// Counts the step's tokens, each in one box.
  constexpr void on_commit(commit_event const& event) noexcept {
    auto const found = std::uint64_t{event.hit.value()};
    auto const loaded = std::uint64_t{event.loaded.value()};
    auto const computed = std::uint64_t{event.computed_prompt.value()};
    if (event.resumed) {
      statistics_.resumed_requests += event.first ? 1 : 0;
      statistics_.resumed_tokens += found + loaded + computed;
      statistics_.self_hit_tokens += found + loaded;
      statistics_.recomputed_tokens += computed;
    } else {
      statistics_.requests += event.first ? 1 : 0;
      statistics_.prompt_tokens += found + loaded + computed;
      statistics_.hit_tokens += found;
      statistics_.loaded_tokens += loaded;
      statistics_.computed_tokens += computed;
    }
    statistics_.output_tokens += event.computed_output.value();
    statistics_.copied_blocks += event.copied.value();
  }
  /// Counts new and duplicate blocks.
  constexpr void on_publish(publish_event const& event) noexcept {
    statistics_.published_blocks += event.blocks.value();
    statistics_.duplicate_blocks += event.duplicates.value();
  }
  /// Counts evicted blocks.
  constexpr void on_evict(evict_event const& event) noexcept { statistics_.evicted_blocks += event.blocks.value(); }
  /// Counts the release or the preemption.
  constexpr void on_release(release_event const& event) noexcept {
    ++(event.preempted ? statistics_.preemptions : statistics_.releases);
  }
  /// Counts the refusal; no token.
  constexpr void on_refuse(refuse_event const& /*event*/) noexcept { ++statistics_.refusals; }

private:
  cache_statistics statistics_ = {};
};

static_assert(observer<counting_observer>);

} // namespace quire
