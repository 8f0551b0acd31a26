// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// How a generator schedules.

#include <quire/core/types.hpp>
#include <quire/model/attention_rule.hpp>

#include <cstdint>

namespace quire {

/// Options of a generator.
struct generator_options {
  /// [tokens] of a prompt that one step computes for one member; 0 = all at once.
  token_count chunk{};
  /// Members of a batch; at most `cache_options::max_rows`.
  std::uint32_t max_members = 256;
  /// [tokens] guessed per member and step; 0 = no speculation (B6).
  token_count draft{};
  /// Prompts whose last logits are kept, so that an equal prompt needs no forward pass at all (S22); 0 = none.
  std::uint32_t kept_outputs = 0;
  /// Which pairs the counters count (S8).
  attention_rule rule = attention_rule::causal();
};

} // namespace quire
