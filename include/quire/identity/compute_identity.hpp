// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The conditions under which cached bytes were computed: by name, and in canonical form.

#include <quire/identity/adapter.hpp>
#include <quire/identity/cache_format.hpp>
#include <quire/identity/detail/canonical_encoder.hpp>
#include <quire/identity/identity_bytes.hpp>
#include <quire/identity/identity_digest.hpp>

#include <cstddef> // std::byte
#include <span>
#include <string_view>
#include <utility> // std::move
#include <vector>

namespace quire {

/// Everything except tokens that cached bytes depend on. Each member has a type of its own without a default: leaving
/// one out or exchanging two does not compile. What does not change cached bytes has no member here: sampling
/// parameters, seeds, stop rules (S34), and names or paths (S35).
/// \source S33, S34
struct compute_identity_fields {
  weights_digest weights;                 ///< Parameters, after merges and quantisation.
  structure_digest structure;             ///< What the parameters are put into.
  tokenizer_digest tokenizer;             ///< How text becomes tokens.
  prompt_template_digest prompt_template; ///< How messages become text, or `none()`.
  adapter_list adapters;                  ///< In order, with scales, or `none()`.
  compute_precision precision;            ///< Arithmetic of the computation.
  cache_format format;                    ///< Exact, or a named approximate mode.
  position_config positions;              ///< Resolved parameters of the position rule.
  visibility_rule attention;              ///< What may be seen.
  external_conditions conditions;         ///< Inputs other than tokens, or `none()`.
};

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
