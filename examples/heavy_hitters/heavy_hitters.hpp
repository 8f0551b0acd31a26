// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Which positions of a full-attention layer stay when it may keep a few only: those that were attended to most, and the latest.
///
/// A full-attention layer sees everything, so that dropping any position changes its output: this is an approximate mode. Its
/// name, with its sizes, goes into `model_description::approximation` and into the `cache_format` of the identity; entries of
/// another mode, and exact ones, are then out of reach. \source S6, S27; H2O (Zhang et al. 2023), algorithm 1

#include <quire/core/config_error.hpp>
#include <quire/core/contract.hpp>
#include <quire/core/types.hpp>

#include <algorithm> // std::min_element
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace heavy_hitters_example {

/// How much stays, by name, so that the two cannot be swapped.
struct sizes {
  quire::token_count budget{}; ///< [tokens] that stay in all.
  quire::token_count recent{}; ///< [tokens] of them that are the latest ones, whatever their weight.
};

/// The positions that one layer of one sequence keeps.
class heavy_hitters {
public:
  /// One kept position.
  struct entry {
    quire::token_pos position{}; ///< Logical; it never changes, and the key stays turned for it.
    double weight = 0.0;         ///< Attention it got so far, over all queries and heads.
  };

  /// Keeps nothing yet. \throws config_error if the budget is 0 or smaller than the recent part
  explicit heavy_hitters(sizes wanted) : sizes_{wanted} {
    if (wanted.budget == quire::token_count{} || wanted.recent > wanted.budget) {
      throw quire::config_error{"heavy_hitters: " + std::to_string(wanted.recent.value()) +
                                " recent positions in a budget of " + std::to_string(wanted.budget.value()) +
                                ": use a budget of at least 1 and of the recent ones"};
    }
  }

  /// The name of the execution mode. Other sizes keep other positions, so that they are part of it.
  [[nodiscard]] auto mode_name() const -> std::string {
    return "heavy_hitters/budget=" + std::to_string(sizes_.budget.value()) +
           "/recent=" + std::to_string(sizes_.recent.value());
  }
  /// Kept positions in ascending order.
  [[nodiscard]] auto kept() const noexcept -> std::span<entry const> { return kept_; }

  /// A new position; it stays until `evict` chooses otherwise. \pre it lies behind all others
  void append(quire::token_pos position) {
    QUIRE_EXPECTS(kept_.empty() || kept_.back().position < position);
    kept_.push_back({.position = position});
  }
  /// What one query gave to the kept positions. \param weights \shape [kept] as the softmax left them
  void observe(std::span<double const> weights) {
    QUIRE_EXPECTS(weights.size() == kept_.size());
    for (std::size_t i = 0; i < kept_.size(); ++i) { kept_[i].weight += weights[i]; }
  }
  /// Lets positions go until the budget holds: the one with the least weight that is not among the latest, and of equal ones the
  /// oldest. \returns them, in the order of choice \complexity O(victims · kept)
  auto evict() -> std::vector<quire::token_pos> {
    auto victims = std::vector<quire::token_pos>{};
    while (kept_.size() > sizes_.budget.value()) {
      auto const old = kept_.end() - static_cast<std::ptrdiff_t>(sizes_.recent.value());
      auto const least =
          std::min_element(kept_.begin(), old, [](entry const& a, entry const& b) { return a.weight < b.weight; });
      victims.push_back(least->position);
      kept_.erase(least);
    }
    return victims;
  }

private:
  sizes sizes_;
  std::vector<entry> kept_ = {};
};

} // namespace heavy_hitters_example
