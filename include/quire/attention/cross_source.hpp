// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Whose keys and values a cross-attention cache holds.

#include <quire/core/config_error.hpp>
#include <quire/core/errc.hpp>
#include <quire/core/expected.hpp>
#include <quire/core/types.hpp>

#include <algorithm> // std::equal
#include <cstddef>
#include <span>
#include <vector>

namespace quire {

/// Tells when the keys and values of a source have to be computed: once, and again only for another encoder output.
/// Truncating or rolling back the target never touches it (case 136). \source S5
class cross_source {
public:
  /// True if the cache holds the source whose encoder output has \p identity: nothing to compute.
  [[nodiscard]] auto holds(std::span<std::byte const> identity) const noexcept -> bool {
    return filled_ && std::equal(identity_.begin(), identity_.end(), identity.begin(), identity.end());
  }
  /// [tokens] of the source; 0 if the cache is empty.
  [[nodiscard]] auto length() const noexcept -> token_count { return length_; }

  /// Records that all positions of a source have been written.
  /// \param identity of the encoder output: its input and everything the encoder depends on \param length its positions
  /// \errors errc::illegal_transition if it holds another source: `clear` first, a filled cache is immutable
  /// \throws config_error if the identity or the source is empty
  [[nodiscard]] auto fill(std::span<std::byte const> identity, token_count length) -> expected<void> {
    if (identity.empty()) { throw config_error{"cross source: an empty identity: use a digest of the encoder output"}; }
    if (length == token_count{}) {
      throw config_error{"cross source: a source of 0 positions has nothing to attend to"};
    }
    if (filled_) {
      if (holds(identity) && length == length_) { return {}; }
      return refuse(errc::illegal_transition);
    }
    identity_.assign(identity.begin(), identity.end());
    length_ = length;
    filled_ = true;
    return {};
  }
  /// Forgets the source; its positions are no longer to be read.
  void clear() noexcept {
    filled_ = false;
    length_ = {};
  }

private:
  std::vector<std::byte> identity_ = {};
  token_count length_ = {};
  bool filled_ = false;
};

} // namespace quire
