// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Multiplications of low-rank attention, counted.

#include <quire/attention/latent_form.hpp>
#include <quire/attention/latent_shape.hpp>
#include <quire/core/checked.hpp>
#include <quire/core/types.hpp>
#include <quire/model/attention_rule.hpp>
#include <quire/model/work.hpp>

#include <cstdint>

namespace quire {

/// The phases whose work is told apart.
enum class latent_phase : std::uint8_t {
  prefill, ///< Many positions at once.
  decode,  ///< One position per sequence.
};

/// Multiplications by what they are for. Counts of operations, never times (S8).
struct latent_work {
  /// Making keys and values from latents; 0 in the absorbed form.
  std::uint64_t expansion = 0;
  /// Taking U_K into the queries and U_V out of the results; 0 in the expanded form.
  std::uint64_t absorption = 0;
  /// Scores.
  std::uint64_t scores = 0;
  /// Weighted sums.
  std::uint64_t sums = 0;

  /// All of them. \throws config_error on overflow
  [[nodiscard]] constexpr auto total() const -> std::uint64_t {
    return checked_add(checked_add(expansion, absorption, "latent work"), checked_add(scores, sums, "latent work"),
                       "latent work");
  }
  /// Adds another forward's work. \throws config_error on overflow
  constexpr auto operator+=(latent_work const& other) -> latent_work& {
    expansion = checked_add(expansion, other.expansion, "latent work, expansion");
    absorption = checked_add(absorption, other.absorption, "latent work, absorption");
    scores = checked_add(scores, other.scores, "latent work, scores");
    sums = checked_add(sums, other.sums, "latent work, sums");
    return *this;
  }
  /// Same counts.
  friend constexpr auto operator==(latent_work const&, latent_work const&) noexcept -> bool = default;

  /// Lengths of one forward, named so that they cannot be swapped.
  struct forward {
    /// [tokens] L, whose latents are cached.
    token_count cached = {};
    /// [tokens] q.
    token_count appended = {};
  };
  /// Size of one computation, named so that the three cannot be swapped.
  struct amounts {
    /// Query rows.
    std::uint64_t queries = 0;
    /// Cached rows at hand.
    std::uint64_t keys = 0;
    /// Query–key pairs that the rule admits, for one head.
    std::uint64_t pairs = 0;
  };

  /// Work of one computation in one layer when only latents are cached: the expanded form makes keys and values of all
  /// rows at hand, the absorbed one treats the queries. \throws config_error on overflow \source S8, S12
  [[nodiscard]] static constexpr auto of(latent_shape const& shape, latent_form form, amounts size) -> latent_work {
    auto const pairs = checked_mul(size.pairs, shape.heads, "latent work, pairs");
    auto const per_token =
        checked_mul(std::uint64_t{shape.heads} * shape.rank, std::uint64_t{shape.content_width} + shape.value_width,
                    "latent work, one token");
    if (form == latent_form::expanded) {
      return {.expansion = checked_mul(per_token, size.keys, "latent work, expansion"),
              .scores = checked_mul(pairs, shape.query_width(), "latent work, scores"),
              .sums = checked_mul(pairs, shape.value_width, "latent work, sums")};
    }
    return {.absorption = checked_mul(per_token, size.queries, "latent work, absorption"),
            .scores = checked_mul(pairs, shape.cached_width(), "latent work, scores"),
            .sums = checked_mul(pairs, shape.rank, "latent work, sums")};
  }
  /// Work of one forward over all L + q positions. \throws config_error on overflow \complexity as `forward_work`
  /// \source S8, S12
  [[nodiscard]] static constexpr auto of(latent_shape const& shape, latent_form form, forward lengths,
                                         attention_rule const& rule = attention_rule::causal()) -> latent_work {
    return of(shape, form,
              amounts{.queries = lengths.appended.value(),
                      .keys = std::uint64_t{lengths.cached.value()} + lengths.appended.value(),
                      .pairs = forward_work(token_pos{} + lengths.cached, lengths.appended, rule).pairs});
  }
};

} // namespace quire
