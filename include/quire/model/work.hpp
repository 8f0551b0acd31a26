// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Operation counts of a run, with and without a cache (S8). Counts, never times.

#include <quire/core/checked.hpp>
#include <quire/core/config_error.hpp>
#include <quire/core/types.hpp>
#include <quire/model/attention_rule.hpp>

#include <cstdint>

namespace quire {

/// What a run computes in one layer and, for the pairs, one query head.
struct work {
  std::uint64_t positions = 0; ///< Positions put through the linear layers.
  std::uint64_t pairs = 0;     ///< Query–key pairs that the visibility rule admits.

  /// Adds another run's work. \throws config_error on overflow.
  constexpr auto operator+=(work const& other) -> work& {
    positions = checked_add(positions, other.positions, "positions");
    pairs = checked_add(pairs, other.pairs, "query-key pairs");
    return *this;
  }
  /// Same counts.
  friend constexpr auto operator==(work const&, work const&) noexcept -> bool = default;
};

/// Prompt and output of a generation, named so that they cannot be swapped.
struct generation_lengths {
  token_count prompt{}; ///< [tokens] P, at least 1.
  token_count output{}; ///< [tokens] G, at least 1.
};

/// Work of one forward that appends \p appended positions after \p cached ones.
/// \returns the pairs Σ_r |A_r| of S2. \throws config_error on overflow.
/// \complexity O(1) for causal rules, O(appended) otherwise \source S2, S8
[[nodiscard]] constexpr auto forward_work(token_pos cached, token_count appended,
                                          attention_rule const& rule = attention_rule::causal()) -> work {
  auto const before = std::uint64_t{cached.value()};
  auto const count = std::uint64_t{appended.value()};
  work out{.positions = count, .pairs = 0};
  if (rule.pattern == attention_pattern::causal) {
    // Σ_{r<q} (L + r + 1); both factors are below 2^33, so the half product fits
    out.pairs = checked_add(checked_mul(count, before, "query-key pairs"), count * (count + 1) / 2, "query-key pairs");
    return out;
  }
  for (std::uint64_t row = 0; row < count; ++row) {
    auto const query = token_pos{static_cast<std::uint32_t>(before + row)};
    out.pairs = checked_add(out.pairs, rule.visible_count(query).value(), "query-key pairs");
  }
  return out;
}

/// Work of a generation that caches: one prefill of P positions and G − 1 forwards of one.
/// \throws config_error if the prompt or the output is empty. \complexity O(1) for causal rules, O(P + G) otherwise
/// \source S1, S8
[[nodiscard]] constexpr auto cached_work(generation_lengths lengths,
                                         attention_rule const& rule = attention_rule::causal()) -> work {
  if (lengths.prompt == token_count{} || lengths.output == token_count{}) {
    throw config_error{"cached_work: an empty prompt or output: use at least 1 token of each"};
  }
  auto out = forward_work(token_pos{}, lengths.prompt, rule);
  out += forward_work(token_pos{} + lengths.prompt, lengths.output - token_count{1}, rule);
  return out;
}

/// Work of a generation that recomputes everything: G forwards of P, P + 1, … positions.
/// \throws config_error if the prompt or the output is empty. \complexity O(G) for causal rules, O(G · (P + G))
/// otherwise \source S1, S8
[[nodiscard]] constexpr auto recompute_work(generation_lengths lengths,
                                            attention_rule const& rule = attention_rule::causal()) -> work {
  if (lengths.prompt == token_count{} || lengths.output == token_count{}) {
    throw config_error{"recompute_work: an empty prompt or output: use at least 1 token of each"};
  }
  work out{};
  for (std::uint32_t fed = 0; fed < lengths.output.value(); ++fed) {
    out += forward_work(token_pos{}, lengths.prompt + token_count{fed}, rule);
  }
  return out;
}

} // namespace quire
