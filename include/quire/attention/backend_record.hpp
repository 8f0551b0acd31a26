// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// One call of an attention backend, as it is remembered.

#include <quire/core/types.hpp>
#include <quire/view/action.hpp>

#include <cstdint>
#include <vector>

namespace quire {

/// Which call of a backend.
enum class backend_call : std::uint8_t {
  run,    ///< Actions.
  write,  ///< Keys and values to slots.
  attend, ///< Queries over a view.
};

/// What one call was about: its actions, or what its view said. The rows themselves are not kept.
struct backend_record {
  /// Which call.
  backend_call call = backend_call::run;
  /// The layer of a write or attend.
  layer_id layer = {};
  /// The actions of a run.
  std::vector<action> actions = {};
  /// \shape [Σq] slots of the view.
  std::vector<std::int64_t> slots = {};
  /// \shape [Σq] logical positions of the view.
  std::vector<std::int32_t> positions = {};
  /// \shape [B] lengths of the view.
  std::vector<std::int32_t> lengths = {};
  /// \shape [B + 1] where rows begin.
  std::vector<std::int32_t> query_start = {};
  /// \shape [Σ blocks read] blocks of all rows, in logical order.
  std::vector<std::int32_t> blocks = {};

  /// Same call.
  friend auto operator==(backend_record const&, backend_record const&) -> bool = default;
};

} // namespace quire
