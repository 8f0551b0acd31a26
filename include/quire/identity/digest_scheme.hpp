// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The name of a digest policy as a value.

#include <quire/identity/concepts.hpp>

#include <string_view>

namespace quire {

/// Names the algorithm and version with which an entry was digested. It can only be taken from a policy, so that
/// a scope and the policy that digests it agree (case 4: two processes whose digests differ without saying so
/// never find each other's entries).
class digest_scheme {
public:
  /// The scheme of \p Policy.
  template <digest_policy Policy>
  [[nodiscard]] static constexpr auto of() noexcept -> digest_scheme {
    static_assert(!Policy::scheme().empty(), "a digest policy needs a scheme: the name and version of its algorithm");
    return digest_scheme{Policy::scheme()};
  }
  /// The scheme of the type of \p policy.
  template <digest_policy Policy>
  [[nodiscard]] static constexpr auto of(Policy const& /*policy*/) noexcept -> digest_scheme {
    return of<Policy>();
  }

  /// Algorithm and version.
  [[nodiscard]] constexpr auto name() const noexcept -> std::string_view { return name_; }
  /// Equal names mean equal digests for equal inputs.
  friend constexpr auto operator==(digest_scheme, digest_scheme) noexcept -> bool = default;

private:
  explicit constexpr digest_scheme(std::string_view name) noexcept : name_{name} {}

  std::string_view name_;
};

} // namespace quire
