// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What an observer learns when published blocks were given up.

#include <quire/core/types.hpp>

namespace quire {

/// Idle published blocks were evicted; final, so not before the launch of the plan that needed them. It names the scope
/// that lost them, not the one that needed room: neither may learn of the other (S37).
struct evict_event {
  /// Scope that can no longer match them; `none()` where the victims of one step come from several (S37).
  scope_number scope = {};
  /// Layer group they belonged to.
  group_id group = {};
  /// [blocks] evicted.
  block_count blocks = {};
};

} // namespace quire
