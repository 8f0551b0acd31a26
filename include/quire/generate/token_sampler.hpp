// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// How a token is chosen from logits, and who chooses it.
///
///     logits ─▶ · 1/T ─▶ keep top_k ─▶ softmax ─▶ keep top_p ─▶ one uniform number picks
///
/// Exactly one number is drawn per choice that is not greedy, whatever the options: the state of a request then depends
/// on how many tokens it has, and on nothing else.

#include <quire/core/config_error.hpp>
#include <quire/core/types.hpp>
#include <quire/generate/random_state.hpp>

#include <algorithm> // std::max, std::min, std::partial_sort
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace quire {

/// Choice of a token. Changes no cached byte and is therefore part of no key (S34).
struct sampling_options {
  /// Divides the logits; 0 = greedy: the largest logit, the lowest id among equals, and no randomness.
  double temperature = 0.0;
  /// Only this many of the most likely tokens; 0 = all.
  std::uint32_t top_k = 0;
  /// Only the smallest set of most likely tokens whose probabilities reach this, at least one token; 1 = all.
  double top_p = 1.0;

  /// Checks all of it. \throws config_error naming what was wrong and what would work
  void validate() const {
    if (!(temperature >= 0.0) || !std::isfinite(temperature)) {
      throw config_error{"sampling: the temperature must be 0 (greedy) or positive, often 0.7 to 1"};
    }
    if (!(top_p > 0.0 && top_p <= 1.0)) { throw config_error{"sampling: top_p must be in (0, 1], 1 for all tokens"}; }
  }
  /// Same options.
  friend auto operator==(sampling_options const&, sampling_options const&) noexcept -> bool = default;
};

/// Chooses; keeps its working memory, so that a steady decode allocates nothing.
class token_sampler {
public:
  /// Makes room for \p tokens candidates, so that `choose` allocates nothing for up to as many logits.
  auto reserve(std::size_t tokens) -> void { candidates_.reserve(tokens); }

  /// The token that \p options choose from \p logits, drawing from \p random.
  /// \param logits \shape [V] a NaN is never chosen, −∞ neither
  /// \returns nothing if no logit can be chosen: the model has failed. One number has been drawn even then.
  /// \complexity O(V), O(V log k) with top-k, O(V log V) with top-p
  [[nodiscard]] auto choose(std::span<float const> logits, sampling_options const& options, random_state& random)
      -> std::optional<token_id> {
    if (options.temperature == 0.0) { return greedy(logits); }
    auto const draw = random.uniform();
    candidates_.clear();
    for (std::size_t i = 0; i < logits.size(); ++i) {
      if (logits[i] > -infinity) { candidates_.push_back({static_cast<double>(logits[i]), static_cast<token_id>(i)}); }
    }
    if (candidates_.empty()) { return std::nullopt; }
    auto const count = keep(options);
    auto const best = greatest(count);
    auto total = 0.0;
    for (std::size_t i = 0; i < count; ++i) {
      auto& c = candidates_[i];
      c.weight = c.weight == best ? 1.0 : std::exp((c.weight - best) / options.temperature); // ∞ − ∞ is 0 here
      total += c.weight;
    }
    auto const kept = nucleus(count, options, total);
    auto at = draw * total;
    for (std::size_t i = 0; i + 1 < kept; ++i) {
      at -= candidates_[i].weight;
      if (at < 0.0) { return candidates_[i].token; }
    }
    return last_likely(kept);
  }

  /// The token with the largest logit, the lowest id among equals. \returns nothing if every logit is NaN or −∞
  [[nodiscard]] static auto greedy(std::span<float const> logits) noexcept -> std::optional<token_id> {
    auto out = std::optional<token_id>{};
    auto best = -infinity;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      if (logits[i] > best) { // false for NaN
        best = logits[i];
        out = static_cast<token_id>(i);
      }
    }
    return out;
  }

private:
  static constexpr auto infinity = std::numeric_limits<float>::infinity();
  struct candidate {
    double weight; // logit, then unnormalised probability
    token_id token;
  };
  static auto more_likely(candidate const& a, candidate const& b) noexcept -> bool {
    return a.weight != b.weight ? a.weight > b.weight : a.token < b.token;
  }

  /// Sorts as far as the options need. \returns how many candidates are left by top-k
  auto keep(sampling_options const& options) -> std::size_t {
    auto const all = candidates_.size();
    auto const count = options.top_k == 0 ? all : std::min<std::size_t>(options.top_k, all);
    if (count < all || options.top_p < 1.0) {
      std::partial_sort(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(count),
                        candidates_.end(), more_likely);
    }
    return count;
  }
  [[nodiscard]] auto greatest(std::size_t count) const noexcept -> double {
    auto out = candidates_.front().weight;
    for (std::size_t i = 1; i < count; ++i) { out = std::max(out, candidates_[i].weight); }
    return out;
  }
  /// Cuts off what top-p leaves out and takes it from \p total.
  [[nodiscard]] auto nucleus(std::size_t count, sampling_options const& options, double& total) const noexcept
      -> std::size_t {
    if (options.top_p >= 1.0) { return count; }
    auto const enough = options.top_p * total;
    auto reached = 0.0;
    for (std::size_t i = 0; i < count; ++i) {
      reached += candidates_[i].weight;
      if (reached >= enough) {
        total = reached;
        return i + 1;
      }
    }
    return count;
  }
  /// What is left when rounding has used up the draw: never a token of probability 0.
  [[nodiscard]] auto last_likely(std::size_t kept) const noexcept -> token_id {
    while (kept > 1 && candidates_[kept - 1].weight == 0.0) { --kept; }
    return candidates_[kept - 1].token;
  }

  std::vector<candidate> candidates_;
};

} // namespace quire
