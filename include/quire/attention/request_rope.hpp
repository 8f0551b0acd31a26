// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The rotary parameters of one request, fixed for as long as its keys live.
///
/// Rules that depend on the length were the source of a well-known bug: keys of length 8 rotated with one base, keys of
/// length 9 with another, both in one cache. Here the parameters are chosen once, for the length the request asks for.
/// To grow beyond it, the request is told which positions have to be computed again, and nothing changes until it says
/// that it does so.

#include <quire/attention/resolved_rope.hpp>
#include <quire/attention/rope_config.hpp>
#include <quire/core/types.hpp>
#include <quire/model/intervals.hpp>

#include <utility>

namespace quire {

/// The position rule of one request. \source S32; cases 69, 70
class request_rope {
public:
  /// Lengths of a request, named so that they cannot be swapped.
  struct growth {
    /// [tokens] whose keys are cached now.
    token_count cached = {};
    /// [tokens] that the request is to reach.
    token_count length = {};
  };

  /// Fixes \p config for a request of up to \p length positions, prompt and output together.
  /// \throws config_error if \p config contradicts itself
  request_rope(rope_config config, token_count length) : rule_{std::move(config), length}, length_{length} {}

  /// The rule in force.
  [[nodiscard]] auto rule() const noexcept -> resolved_rope const& { return rule_; }
  /// [tokens] The length it is fixed for.
  [[nodiscard]] auto length() const noexcept -> token_count { return length_; }

  /// Which cached positions would have to be computed again, in every layer, before the request may reach
  /// `wanted.length`. Changes nothing.
  /// \returns [0, cached) if other parameters would come into force; an empty interval if the keys stay right. Shorter
  ///   lengths never change parameters: keys stay as they were rotated.
  [[nodiscard]] auto rebuild_for(growth wanted) const -> position_interval {
    auto const changes = wanted.length > length_ && resolved_rope{rule_.config(), wanted.length} != rule_;
    return {.begin = token_pos{}, .end = changes ? token_pos{} + wanted.cached : token_pos{}};
  }
  /// Puts the parameters for `wanted.length` positions into force, or keeps those of a longer length.
  /// \returns what `rebuild_for` said just before: the positions to compute again, in every layer, under the identity of the new
  ///   rule. Nobody who drops it goes on unnoticed
  [[nodiscard]] auto grow(growth wanted) -> position_interval {
    auto const rebuild = rebuild_for(wanted);
    if (wanted.length > length_) {
      rule_ = resolved_rope{rule_.config(), wanted.length};
      length_ = wanted.length;
    }
    return rebuild;
  }

private:
  resolved_rope rule_;
  token_count length_;
};

} // namespace quire
