// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What an observer learns when an operation refused.

#include <quire/core/errc.hpp>
#include <quire/core/types.hpp>

namespace quire {

/// An admission or a step item was refused; nothing changed, and nothing else is counted (case 132).
struct refuse_event {
  /// For whom.
  scope_number scope = {};
  /// Which sequence; `none()` if it was never admitted.
  sequence_number sequence = {};
  /// Why.
  errc reason = errc::ok;
  /// [blocks] that were missing; 0 if blocks were not the reason.
  block_count missing = {};
};

} // namespace quire
