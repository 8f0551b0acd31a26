// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// How far back a lost window must be recomputed so that the result is exact (S28).
///
/// A key of layer l at position p needs the output of layer l − 1 at p, which needs *that* layer's whole
/// window before p. Stacked windows add up; re-running only the last w tokens gives other keys.
/// ```
///   layer 2 (window w)                              [ needs w − 1 ]|h
///   layer 1 (window w)              [ needs w − 1 more ][           ]
///   layer 0 (full: still cached)    [ queries only, from here on    ]
/// ```

#include <quire/core/types.hpp>
#include <quire/model/model_spec.hpp>
#include <quire/model/resident_range.hpp>
#include <quire/model/retention.hpp>

#include <algorithm> // std::min
#include <vector>

namespace quire {

/// The first position to recompute so that all windows and chunks of a sequence of \p length positions are
/// exact again, when the full groups (and the sinks) are still there and the others are lost.
/// \returns a position in [0, length]; `length` itself if nothing is lost. `length - result` is at most
/// N_w · (w − 1) for N_w stacked windows. \complexity O(layers) \source S28
[[nodiscard]] inline auto rebuild_start(model_spec const& model, token_count length) -> token_pos {
  auto const end = token_pos{} + length;
  auto start = end;                                 // layers above need inputs from here on
  std::vector<token_pos> keys(model.layers(), end); // an owner's keys are needed from here on
  for (auto i = model.layers(); i-- > 0;) {
    auto const& layer = model.layer(layer_id{i});
    auto const owner = model.owner_of(layer_id{i});
    auto const keeps = model.group(model.group_of(layer_id{i})).keeps;
    if (!keeps.keeps_all()) {
      auto const needed = resident_range(start, retention::of(layer.rule), token_count{1}).tail(length).begin;
      keys[owner.value()] = std::min(keys[owner.value()], needed);
    }
    if (owner == layer_id{i}) { start = std::min(start, keys[i]); }
  }
  return start;
}

} // namespace quire
