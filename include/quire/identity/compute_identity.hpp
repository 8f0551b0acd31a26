// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The conditions under which cached bytes were computed.

#include <quire/identity/compute_identity_fields.hpp>
#include <quire/identity/detail/canonical_encoder.hpp>

#include <cstddef> // std::byte
#include <span>
#include <string_view>
#include <utility> // std::move
#include <vector>

namespace quire {

/// Fields in canonical form. Blocks computed under two identities are never exchanged, however alike their tokens.
class compute_identity {
public:
  /// Version of the encoding; the first field of every identity.
  static constexpr std::string_view encoding = "quire/compute/1";

  /// Encodes \p fields; every one of them is part of the identity.
  /// \source S33, S34; cases 5 to 12
  explicit compute_identity(compute_identity_fields const& fields) {
    auto adapters = detail::canonical_encoder{};
    for (auto const& item : fields.adapters.items()) { // 40 bytes each, so the list needs no inner lengths
      adapters.raw(item.digest.bytes()).number(item.scale.bits());
    }
    auto out = detail::canonical_encoder{};
    out.field(1, encoding)
        .field(2, fields.weights.bytes())
        .field(3, fields.structure.bytes())
        .field(4, fields.tokenizer.bytes())
        .field(5, fields.prompt_template.bytes())
        .field(6, adapters.bytes())
        .field(7, fields.precision.bytes())
        .field(8, fields.format.bytes())
        .field(9, fields.positions.bytes())
        .field(10, fields.attention.bytes())
        .field(11, fields.conditions.bytes());
    bytes_ = std::move(out).take();
  }

  /// The encoding; equal bytes mean equal fields. Valid while this lives and is not assigned to.
  [[nodiscard]] auto bytes() const noexcept -> std::span<std::byte const> { return bytes_; }
  /// True if every field is equal.
  friend auto operator==(compute_identity const&, compute_identity const&) noexcept -> bool = default;

private:
  std::vector<std::byte> bytes_;
};

} // namespace quire
