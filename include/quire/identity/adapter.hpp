// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// An adapter as part of an identity.

#include <quire/identity/adapter_scale.hpp>
#include <quire/identity/identity_digest.hpp>

namespace quire {

/// One adapter and how strongly it is applied. Both members must be given.
struct adapter {
  adapter_digest digest; ///< Content of the adapter.
  adapter_scale scale;   ///< Factor it is applied with.

  /// Equal if both members are.
  friend constexpr auto operator==(adapter const&, adapter const&) noexcept -> bool = default;
};

} // namespace quire
