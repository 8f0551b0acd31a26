// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A secret that splits a sharing domain further.

#include <quire/core/config_error.hpp>
#include <quire/identity/detail/canonical_encoder.hpp>

#include <cstddef> // std::byte
#include <span>
#include <string_view>
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

} // namespace quire
