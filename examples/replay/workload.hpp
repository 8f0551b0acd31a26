// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A workload of agents and chats, made from a seed; the same seed gives the same requests everywhere.
///
/// ```text
///   chat     [system prompt of the product][user][answer][user][answer] …     seconds to minutes between turns
///   agent    [instructions][tools][task][call][result][call][result] …         seconds; results can be long
///                                         ├─[call']                            some steps sample several calls (forks),
///                                         └─[call'']                           and go on with one of them
/// ```
///
/// Each turn's prompt is the whole conversation so far, the answers of the cache's own earlier requests included.

#include "replay/tokens.hpp" // mix
#include "replay/trace.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility> // std::move
#include <vector>

namespace replay {

namespace detail {

/// Random numbers that do not depend on a standard library.
class dice {
public:
  explicit dice(std::uint64_t seed) noexcept : state_{mix(seed)} {}
  /// Even over [\p least, \p most].
  [[nodiscard]] auto between(std::uint32_t least, std::uint32_t most) noexcept -> std::uint32_t {
    return least + static_cast<std::uint32_t>((next() >> 32U) * (std::uint64_t{most} - least + 1) >> 32U);
  }
  /// True in \p percent of 100 cases.
  [[nodiscard]] auto chance(std::uint32_t percent) noexcept -> bool { return between(1, 100) <= percent; }

private:
  [[nodiscard]] auto next() noexcept -> std::uint64_t { return mix(state_++); }
  std::uint64_t state_;
};

} // namespace detail

/// Makes \p conversations conversations from \p seed. Requests are in order of arrival.
[[nodiscard]] inline auto make_workload(std::uint64_t seed, std::uint32_t conversations = 300) -> trace {
  struct turn {
    double arrival;
    std::uint32_t conversation;
    std::uint32_t answer; // [tokens]
    std::uint32_t branches;
    std::uint32_t goes_on;     // the branch whose answer the next turn contains
    std::vector<segment> said; // before it, by others than the model
  };
  constexpr std::array<std::uint32_t, 3> products{350, 620, 1100}; // [tokens] of system prompts of chats
  constexpr std::array<std::uint32_t, 3> agents{2400, 3800, 6100}; // [tokens] of instructions and tools of agents
  auto dice = detail::dice{seed};
  auto turns = std::vector<turn>{};
  std::uint64_t texts = 0;
  auto const fresh = [&](std::uint32_t tokens) {
    return segment{own_text((mix(seed) & 0xffff'ffffU) << 24U | texts++), tokens};
  };
  auto prompts = std::vector<segment>{};
  for (auto const tokens : products) { prompts.push_back(fresh(tokens)); }
  for (auto const tokens : agents) { prompts.push_back(fresh(tokens)); }

  double start = 0;
  for (std::uint32_t s = 0; s < conversations; ++s) {
    start += dice.between(200, 3000) / 1000.0;
    auto const agent = dice.chance(40);
    auto now = start;
    auto const steps = agent ? dice.between(3, 14) : dice.between(1, 8);
    for (std::uint32_t k = 0; k < steps; ++k) {
      auto t = turn{.arrival = now, .conversation = s, .answer = 0, .branches = 1, .goes_on = 0, .said = {}};
      if (k == 0) { t.said.push_back(prompts[dice.between(0, 2) + (agent ? 3 : 0)]); }
      t.said.push_back(
          fresh(agent ? (k == 0 ? dice.between(50, 600) : dice.between(60, 1800)) : dice.between(15, 400)));
      t.answer = agent ? dice.between(30, 250) : dice.between(40, 700);
      if (agent && dice.chance(20)) {
        t.branches = dice.between(2, 4);
        t.goes_on = dice.between(0, t.branches - 1);
      }
      now += t.answer / 40.0 + (agent ? dice.between(500, 8000) : dice.between(5000, 90'000)) / 1000.0;
      turns.push_back(std::move(t));
    }
  }
  std::stable_sort(turns.begin(), turns.end(), [](auto const& a, auto const& b) { return a.arrival < b.arrival; });

  auto out =
      trace{.name = "workload of " + std::to_string(conversations) + " agents and chats, seed " + std::to_string(seed)};
  auto so_far = std::vector<std::vector<segment>>(conversations);
  for (auto const& t : turns) {
    auto& talk = so_far[t.conversation];
    talk.insert(talk.end(), t.said.begin(), t.said.end());
    auto r = request{.arrival = t.arrival,
                     .first_segment = out.segments.size(),
                     .segments = static_cast<std::uint32_t>(talk.size()),
                     .output = t.answer,
                     .branches = t.branches,
                     .number = out.requests.size()};
    for (auto const& s : talk) { r.prompt += s.tokens; }
    out.segments.insert(out.segments.end(), talk.begin(), talk.end());
    talk.push_back({answer_text(r.number, t.goes_on), t.answer});
    out.requests.push_back(r);
  }
  return out;
}

} // namespace replay
