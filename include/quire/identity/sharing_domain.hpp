// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// For whom cached entries are visible.

#include <quire/core/config_error.hpp>
#include <quire/identity/detail/canonical_encoder.hpp>
#include <quire/identity/identity_bytes.hpp>

#include <cstddef> // std::byte
#include <span>
#include <string_view>
#include <utility> // std::move
#include <vector>

namespace quire {

/// Requests share only if their salts are equal too; whoever does not know the salt cannot ask for the entries.
/// Doing without one has to be written out as `none()`.
class domain_salt {
public:
  /// States that tenant and authorisation domain are all that separates.
  [[nodiscard]] static auto none() noexcept -> domain_salt { return domain_salt{std::span<std::byte const>{}}; }
  /// The salt \p value. \throws config_error if it is empty.
  [[nodiscard]] static auto of(std::span<std::byte const> value) -> domain_salt {
    if (value.empty()) {
      throw config_error{"domain_salt: an empty salt separates nobody: pass some bytes, or say domain_salt::none()"};
    }
    return domain_salt{value};
  }
  /// The characters of \p value as salt. \throws config_error if it is empty.
  [[nodiscard]] static auto of(std::string_view value) -> domain_salt { return of(detail::as_bytes_of(value)); }

  /// Canonical bytes: the salt, or no byte for `none()`. Valid while this lives and is not assigned to.
  [[nodiscard]] auto bytes() const noexcept -> std::span<std::byte const> { return value_; }
  /// Equal if every byte is.
  friend auto operator==(domain_salt const&, domain_salt const&) noexcept -> bool = default;

private:
  explicit domain_salt(std::span<std::byte const> value) : value_(value.begin(), value.end()) {}

  std::vector<std::byte> value_;
};

/// A set of requests that may use each other's entries. Look-ups happen inside one domain; there is no default and no
/// domain that contains another, so access is never widened by accident (S36).
class sharing_domain {
public:
  /// Version of the encoding; the first field of every domain.
  static constexpr std::string_view encoding = "quire/domain/1";

  /// Entries stay with one authorisation domain of one tenant.
  /// \param tenant the party. \param authorisation the domain inside it. \param salt a further secret, or `none()`.
  [[nodiscard]] static auto isolated(tenant_id const& tenant, authorisation_domain const& authorisation,
                                     domain_salt const& salt) -> sharing_domain {
    auto out = detail::canonical_encoder{};
    out.field(1, encoding).field(2, tenant.bytes()).field(3, authorisation.bytes()).field(4, salt.bytes());
    return sharing_domain{std::move(out).take()};
  }

  /// Entries are shared by everyone who presents the same grant. Anyone there can learn whether a prefix is cached:
  /// grant it for content that is public anyway, such as a system prompt.
  /// \param grant names the decision to share.
  [[nodiscard]] static auto public_grant(grant_id const& grant) -> sharing_domain {
    auto out = detail::canonical_encoder{};
    out.field(1, encoding).field(5, grant.bytes());
    return sharing_domain{std::move(out).take()};
  }

  /// The encoding; equal bytes mean the same domain. Valid while this lives and is not assigned to.
  [[nodiscard]] auto bytes() const noexcept -> std::span<std::byte const> { return bytes_; }
  /// True for the same domain.
  friend auto operator==(sharing_domain const&, sharing_domain const&) noexcept -> bool = default;

private:
  explicit sharing_domain(std::vector<std::byte> bytes) noexcept : bytes_{std::move(bytes)} {}

  std::vector<std::byte> bytes_;
};

} // namespace quire
