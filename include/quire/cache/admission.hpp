// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Who is let in (S17): the concept and its models. Semantics that no compiler sees: docs/concepts/admission_policy.md.

#include <quire/core/config_error.hpp>
#include <quire/core/types.hpp>

#include <concepts>
#include <cstdint>

namespace quire {

/// What an admission policy decides on. All figures are blocks, after the matched prefix would be pinned.
struct admission_query {
  block_count now;       ///< Needed to compute the prompt.
  block_count in_total;  ///< Needed until the request has reached its last permitted position.
  block_count promised;  ///< Still owed to the requests that run.
  block_count available; ///< Free or evictable.
  block_count capacity;  ///< In the pool.
};

/// Decides whether a request, a fork or a growing truncation fits beside those that run.
template <class A>
concept admission_policy = std::movable<A> && requires(A const& policy, admission_query const& query) {
  { policy.admits(query) } noexcept -> std::same_as<bool>;
};

/// Every admitted request finishes without preemption: its whole budget is set aside. The default.
struct reserve_all {
  /// True if the budget fits beside everything promised.
  [[nodiscard]] auto admits(admission_query const& q) const noexcept -> bool {
    return std::uint64_t{q.in_total.value()} + q.promised.value() <= q.available.value();
  }
};
static_assert(admission_policy<reserve_all>);

/// Lets in what can be prefilled now. Only the oldest request is sure to finish; the engine preempts younger ones.
struct optimistic {
  /// True if the prompt fits.
  [[nodiscard]] auto admits(admission_query const& q) const noexcept -> bool { return q.now <= q.available; }
};
static_assert(admission_policy<optimistic>);

/// Like `optimistic`, but leaves a share of the pool to the growth of those that run.
class watermark {
public:
  /// Leaves 1 % free.
  watermark() noexcept = default;
  /// Leaves \p per_mille thousandths of the pool free. \throws config_error above 1000.
  explicit watermark(std::uint32_t per_mille) : per_mille_{per_mille} {
    if (per_mille > 1000) { throw config_error{"watermark: more than 1000 per mille of the pool cannot stay free"}; }
  }
  /// True if the prompt fits above the mark.
  [[nodiscard]] auto admits(admission_query const& q) const noexcept -> bool {
    auto const mark = std::uint64_t{q.capacity.value()} * per_mille_ / 1000;
    return q.now.value() + mark <= q.available.value();
  }

private:
  std::uint32_t per_mille_ = 10;
};
static_assert(admission_policy<watermark>);

/// The null model: everybody is let in, and steps are refused when blocks run out.
struct admit_all {
  /// True.
  [[nodiscard]] auto admits(admission_query const&) const noexcept -> bool { return true; }
};
static_assert(admission_policy<admit_all>);

} // namespace quire
