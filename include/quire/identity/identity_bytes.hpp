// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A byte string that says what it describes.

#include <quire/core/config_error.hpp>
#include <quire/identity/detail/canonical_encoder.hpp>

#include <cstddef> // std::byte
#include <span>
#include <string_view>
#include <vector>

namespace quire {

/// A non-empty byte string in one role, opaque to the library and compared byte for byte. Strings of different roles
/// are different types, so that two of them cannot change places; there is no default, so that none can be left out.
/// \tparam Tag makes the role distinct.
template <class Tag>
class identity_bytes {
public:
  /// Takes over a copy of \p value. \throws config_error if it is empty.
  explicit identity_bytes(std::span<std::byte const> value) : value_(value.begin(), value.end()) {
    if (value_.empty()) {
      throw config_error{"identity: an empty value says nothing: name what applies, even if it is \"none\""};
    }
  }
  /// Takes over the characters of \p value. \throws config_error if it is empty.
  explicit identity_bytes(std::string_view value) : identity_bytes{detail::as_bytes_of(value)} {}

  /// The bytes, as given. Valid while this lives and is not assigned to.
  [[nodiscard]] auto bytes() const noexcept -> std::span<std::byte const> { return value_; }
  /// Equal if every byte is.
  friend auto operator==(identity_bytes const&, identity_bytes const&) noexcept -> bool = default;

private:
  std::vector<std::byte> value_;
};

/// \cond INTERNAL
namespace tag {
struct precision;
struct position_rule;
struct visibility_rule;
struct tenant;
struct authorisation;
struct grant;
} // namespace tag
/// \endcond

/// The arithmetic that keys and values were computed with, such as `"bf16"`; two spellings of one arithmetic are two
/// precisions, which costs hits and nothing else.
using compute_precision = identity_bytes<tag::precision>;
/// The *resolved* parameters of the position rule: base, scaling and the factors in force, not the name of a rule that
/// picks them by length, so that requests with short and long factors never share (S32).
using position_config = identity_bytes<tag::position_rule>;
/// Which keys a query may see and how scores are changed: causal, window, chunk, sinks, soft-cap, bias slopes; for
/// every layer, in an encoding of the engine's choice.
using visibility_rule = identity_bytes<tag::visibility_rule>;

/// The party that entries belong to.
using tenant_id = identity_bytes<tag::tenant>;
/// The authorisation domain inside a tenant: a project, a user group, a clearance.
using authorisation_domain = identity_bytes<tag::authorisation>;
/// Names an explicit decision to share entries beyond one tenant.
using grant_id = identity_bytes<tag::grant>;

} // namespace quire
