// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What the retention of a layer group means, as a policy: the functions of the model room.

#include <quire/core/types.hpp>
#include <quire/model/capacity.hpp>
#include <quire/model/intervals.hpp>
#include <quire/model/resident_blocks.hpp>
#include <quire/model/resident_range.hpp>
#include <quire/model/retention.hpp>
#include <quire/sequence/concepts.hpp>

#include <optional>

namespace quire {

/// Exact for every kind of `retention`. The default; models `retention_policy`. An engine with a rule of its own derives
/// from it and replaces what differs.
struct standard_retention {
  /// What must stay so that queries at \p oldest and later can read all they may see. \source S27, S29
  [[nodiscard]] static constexpr auto resident(token_pos oldest, retention const& keeps, token_count block)
      -> resident_blocks {
    return resident_range(oldest, keeps, block);
  }
  /// The earliest position from \p target on at which a sequence can go on with only \p present. \source S30
  [[nodiscard]] static constexpr auto earliest_resumable(token_pos target, position_interval present,
                                                         retention const& keeps) -> std::optional<token_pos> {
    return quire::earliest_resumable(target, present, keeps);
  }
  /// [blocks] that a sequence of \p length positions holds at once at most. \source S16, S27
  [[nodiscard]] static constexpr auto peak_blocks(retention const& keeps, token_count length, paging pages)
      -> block_count {
    return quire::peak_blocks(keeps, length, pages);
  }
};
static_assert(retention_policy<standard_retention>);

} // namespace quire
