// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The scope of a cache entry: under which conditions it was computed, and who may see it. Two requests can share
/// blocks only if their scope keys are equal, byte for byte.
///
///     scope_key = encoding version | digest scheme | tokens per block | compute identity | sharing domain
///                 each field: tag, 8-byte length, value  ->  injective

#include <quire/core/config_error.hpp>
#include <quire/core/types.hpp>
#include <quire/identity/compute_identity.hpp>
#include <quire/identity/detail/canonical_encoder.hpp>
#include <quire/identity/digest_scheme.hpp>
#include <quire/identity/sharing_domain.hpp>

#include <cstddef> // std::byte
#include <cstdint>
#include <span>
#include <string_view>
#include <utility> // std::move
#include <vector>

namespace quire {

/// The canonical encoding of everything except tokens that an entry's bytes and its visibility depend on.
///
/// There is no default scope: a look-up that does not say for whom it is made does not compile (case 14).
/// The bytes contain the domain's salt: they belong in the cache and in tiers that may hold its content, and not in
/// events or logs, where the digest stands for them (S37).
class scope_key {
public:
  /// Version of the encoding; the first field of every key.
  static constexpr std::string_view encoding = "quire/scope/1";

  /// Encodes the scope. Every argument is part of the key.
  /// \param scheme how blocks of this scope are digested. \param block_tokens [tokens] per block, at least 1.
  /// \param identity under which conditions. \param domain for whom.
  /// \throws config_error if \p block_tokens is 0.
  /// \source S33, S36; cases 4, 11, 14
  scope_key(digest_scheme scheme, token_count block_tokens, compute_identity const& identity,
            sharing_domain const& domain)
      : scheme_{scheme}, block_tokens_{block_tokens} {
    if (block_tokens.value() == 0) {
      throw config_error{"scope_key: a block of 0 tokens holds nothing: use at least 1"};
    }
    auto out = detail::canonical_encoder{};
    out.field(1, encoding)
        .field(2, scheme.name())
        .field(3, std::uint64_t{block_tokens.value()})
        .field(4, identity.bytes())
        .field(5, domain.bytes());
    bytes_ = std::move(out).take();
  }

  /// The encoding; equal bytes mean the same scope. Valid while the key lives and is not assigned to.
  [[nodiscard]] auto bytes() const noexcept -> std::span<std::byte const> { return bytes_; }
  /// How blocks of this scope are digested.
  [[nodiscard]] auto scheme() const noexcept -> digest_scheme { return scheme_; }
  /// Tokens per block [tokens].
  [[nodiscard]] auto block_tokens() const noexcept -> token_count { return block_tokens_; }

  /// True if the encodings are equal, byte for byte; no digest takes part.
  friend auto operator==(scope_key const& a, scope_key const& b) noexcept -> bool { return a.bytes_ == b.bytes_; }

private:
  std::vector<std::byte> bytes_;
  digest_scheme scheme_;
  token_count block_tokens_;
};

} // namespace quire
