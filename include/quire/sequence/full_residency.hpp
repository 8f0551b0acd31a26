// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The residency of full attention, which is also the null model: nothing ever goes.

#include <quire/model/retention.hpp>
#include <quire/sequence/concepts.hpp>
#include <quire/sequence/residency_of.hpp>

namespace quire {

/// Every position stays until the sequence ends, decided by the one `resident_range` like every residency.
struct full_residency : residency_of<full_residency> {
  /// What it keeps.
  static constexpr retention keeps = retention::full();
};
static_assert(residency_policy<full_residency>);

} // namespace quire
