// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The future, for the offline optimum: for every full block of every path, which request uses it next.
///
/// ```text
///   path of a branch    prompt ··············│ output ········      a request *uses* the full blocks of its prompt,
///   full blocks         [0] [1] [2] [3] … [k-1]│[k] [k+1] …           each of its branches *leaves* all of its path
/// ```
///
/// Blocks are named by what they hold and by all that stands before it, as the cache names them.

#include "replay/block_map.hpp"
#include "replay/tokens.hpp" // mix
#include "replay/trace.hpp"

#include <quire/prefix/optimal_eviction.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace replay {

/// [blocks] that a request takes until its last permitted position.
[[nodiscard]] inline auto budget_of(request const& r, std::uint32_t block_tokens) noexcept -> std::uint64_t {
  return (std::uint64_t{r.prompt} + std::max(1U, r.output) + block_tokens - 1) / block_tokens;
}

/// Next uses of all blocks of a trace.
class future {
public:
  /// Next use of what is never used again.
  static constexpr std::uint32_t never = quire::optimal_eviction::never;

  /// Looks ahead in \p t. Requests that do not fit a pool of \p blocks blocks use and leave nothing.
  future(trace const& t, std::uint32_t block_tokens, std::uint64_t blocks)
      : first_path_(t.requests.size()), fits_(t.requests.size()) {
    for (std::size_t i = 0; i < t.requests.size(); ++i) {
      auto const& r = t.requests[i];
      first_path_[i] = paths_.size();
      fits_[i] = budget_of(r, block_tokens) <= blocks;
      for (std::uint32_t b = 0; b < r.branches; ++b) {
        auto const full = static_cast<std::uint32_t>((std::uint64_t{r.prompt} + r.output) / block_tokens);
        paths_.push_back({next_.size(), full, r.prompt / block_tokens});
        next_.resize(next_.size() + full, never);
      }
    }
    block_map last; // the next request that uses a block, while going back in time
    for (auto i = t.requests.size(); i-- > 0;) {
      if (!fits_[i]) { continue; }
      auto const& r = t.requests[i];
      for (std::uint32_t b = 0; b < r.branches; ++b) {
        auto const& p = paths_[first_path_[i] + b];
        name_blocks(t, r, b, block_tokens);
        for (std::uint32_t j = 0; j < p.blocks; ++j) { next_[p.first + j] = last(names_[j], never); }
      }
      auto const used = paths_[first_path_[i]].used;
      references_ += used;
      for (std::uint32_t j = 0; j < used; ++j) {
        last(names_[j], never) = static_cast<std::uint32_t>(i);
      } // alike in all branches
    }
    distinct_ = last.size();
  }

  /// Whether request \p i fits the pool.
  [[nodiscard]] auto fits(std::size_t i) const noexcept -> bool { return fits_[i] != 0; }
  /// Requests that fit.
  [[nodiscard]] auto fitting() const noexcept -> std::size_t {
    return static_cast<std::size_t>(std::count(fits_.begin(), fits_.end(), std::uint8_t{1}));
  }
  /// Uses of blocks by the requests that fit.
  [[nodiscard]] auto references() const noexcept -> std::uint64_t { return references_; }
  /// Different blocks that the requests that fit leave.
  [[nodiscard]] auto distinct() const noexcept -> std::size_t { return distinct_; }
  /// [blocks] that request \p i uses.
  [[nodiscard]] auto used(std::size_t i) const noexcept -> std::uint32_t { return paths_[first_path_[i]].used; }
  /// By depth, the next use of the blocks that branch \p b of request \p i leaves.
  [[nodiscard]] auto next_uses(std::size_t i, std::uint32_t b) const noexcept -> std::span<std::uint32_t const> {
    auto const& p = paths_[first_path_[i] + b];
    return {next_.data() + p.first, p.blocks};
  }
  /// The same for a release that happens when requests before \p now have been admitted already.
  [[nodiscard]] auto next_uses(std::size_t i, std::uint32_t b, std::size_t now) -> std::span<std::uint32_t const> {
    auto const told = next_uses(i, b);
    later_.assign(told.begin(), told.end());
    for (std::size_t j = 0; j < later_.size(); ++j) {
      while (later_[j] != never && later_[j] < now) { later_[j] = next_[paths_[first_path_[later_[j]]].first + j]; }
    }
    return later_;
  }

private:
  struct path {
    std::size_t first;    // in next_
    std::uint32_t blocks; // full ones
    std::uint32_t used;   // of the prompt
  };

  /// Fills `names_` with the names of the full blocks on a path.
  auto name_blocks(trace const& t, request const& r, std::uint32_t branch, std::uint32_t block_tokens) -> void {
    names_.clear();
    std::uint64_t name = 1;
    std::uint32_t in_block = 0;
    auto const add = [&](segment const& s) {
      for (std::uint32_t from = 0; from < s.tokens;) {
        auto const n = std::min(s.tokens - from, block_tokens - in_block);
        name = mix(mix(name ^ static_cast<std::uint64_t>(s.text)) ^ ((std::uint64_t{from} << 32U) | n));
        from += n;
        in_block += n;
        if (in_block == block_tokens) {
          names_.push_back(name != 0 ? name : 1);
          in_block = 0;
        }
      }
    };
    for (auto const& s : t.prompt_of(r)) { add(s); }
    add({answer_text(r.number, branch), r.output});
  }

  std::vector<std::size_t> first_path_; // of a request
  std::vector<std::uint8_t> fits_;
  std::vector<path> paths_;
  std::vector<std::uint32_t> next_;
  std::vector<std::uint32_t> later_;
  std::vector<std::uint64_t> names_;
  std::uint64_t references_ = 0;
  std::size_t distinct_ = 0;
};

} // namespace replay
