// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Guessing ahead (B6): who is guessed for, which guesses held, and what is cut off.
///
/// ```text
///   fed       [ last output | g0 g1 g2 ]      by count: no id is known to the cache, so nothing of it publishes
///   chosen    [          o0   o1       ]      o0 = g0 confirms g0; o1 ≠ g1 is an output all the same, and the last one
///   held      [      ✓        ✓  ✗  ✗  ]      n outputs hold n positions: their ids are told, the others are cut off
/// ```

#include <quire/core/types.hpp>
#include <quire/generate/concepts.hpp>
#include <quire/generate/stop_rules.hpp>

#include <algorithm> // std::min
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility> // std::move

namespace quire::detail {

/// \cond INTERNAL
/// Owns the drafter.
template <drafter Drafter>
class speculation {
public:
  /// Guesses up to \p most of a vocabulary of \p vocabulary tokens.
  speculation(token_count most, std::size_t vocabulary, Drafter drafter)
      : most_{most}, vocabulary_{vocabulary}, drafter_{std::move(drafter)} {}

  /// Guesses what \p m says next, never beyond its limit. \returns how many
  template <class Record>
  auto guess(Record& m) -> std::uint32_t {
    m.guesses.clear();
    if (most_ == token_count{} || !m.drafts || m.result.state.output.empty()) { return 0; }
    if (m.pending() != 1 || m.closing != stop_reason::none) { return 0; }
    m.guesses.resize(std::min(most_.value(), m.outputs_left() - 1));
    auto count = m.guesses.empty() ? std::size_t{0} : std::min(drafter_.propose(m.text, m.guesses), m.guesses.size());
    for (std::size_t i = 0; i < count; ++i) {
      if (m.guesses[i] < 0 || static_cast<std::size_t>(m.guesses[i]) >= vocabulary_) { count = i; }
    }
    m.guesses.resize(count);
    return static_cast<std::uint32_t>(count);
  }
  /// True if the logits behind output number \p outputs of the step stand behind what \p m has said: it was fed as a guess,
  /// or nothing was.
  template <class Record>
  [[nodiscard]] auto confirmed(Record const& m, std::uint32_t outputs) const -> bool {
    return outputs > m.guesses.size() || m.text.back() == m.guesses[outputs - 1];
  }
  /// Cuts off the guesses that were wrong and tells the ids of the others. With n outputs in this step, n of its positions
  /// hold: the fed one, and every guess that an output has confirmed and a later output has used. \param from [tokens]
  /// before the step
  template <class Cache, class Record>
  auto keep_verified(Cache& cache, Record& m, token_count from, token_count outputs) const -> void {
    auto const guesses = static_cast<std::uint32_t>(m.guesses.size());
    m.result.drafted += token_count{guesses};
    m.result.accepted += outputs - token_count{1};
    auto const wrong = token_count{1 + guesses} - outputs;
    auto const right = std::span<token_id const>{m.text}.subspan(from.value(), outputs.value());
    m.stray = !cache.drop_last(m.seq, wrong) || !cache.resolve(m.seq, right);
    m.result.covered = from + outputs;
  }

  [[nodiscard]] auto guesser() noexcept -> Drafter& { return drafter_; }

private:
  token_count most_;
  std::size_t vocabulary_;
  [[no_unique_address]] Drafter drafter_;
};
/// \endcond

} // namespace quire::detail
