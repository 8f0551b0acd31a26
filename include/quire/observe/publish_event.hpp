// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What an observer learns when blocks became matchable.

#include <quire/core/types.hpp>

namespace quire {

/// Full blocks of a sequence were published.
struct publish_event {
  /// In which scope they can be matched.
  scope_number scope = {};
  /// Who computed them.
  sequence_number sequence = {};
  /// [blocks] that became matchable.
  block_count blocks = {};
  /// [blocks] that existed already, so that the sequence kept its own private.
  block_count duplicates = {};
};

} // namespace quire
