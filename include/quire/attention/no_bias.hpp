// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The bias of scores without one.

#include <quire/attention/score_place.hpp>

namespace quire {

/// Adds nothing to any score. Null model of `attention_bias`.
struct no_bias {
  /// 0, for every score.
  [[nodiscard]] constexpr auto operator()(score_place const& /*at*/) const noexcept -> double { return 0.0; }
};

} // namespace quire
