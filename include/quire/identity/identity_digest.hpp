// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A content digest that says which artifact it stands for.

#include <quire/identity/content_digest.hpp>

#include <cstddef> // std::byte
#include <span>

namespace quire {

/// A digest in one role. Digests of different roles are different types, so that two of them cannot change
/// places; there is no default, so that none can be left out.
/// \tparam Tag makes the role distinct.
template <class Tag>
class identity_digest {
public:
  /// Gives \p digest its role.
  explicit constexpr identity_digest(content_digest const& digest) noexcept : digest_{digest} {}

  /// Canonical bytes.
  [[nodiscard]] constexpr auto bytes() const noexcept -> std::span<std::byte const> { return digest_.bytes(); }
  /// Equal digests stand for equal content.
  friend constexpr auto operator==(identity_digest const&, identity_digest const&) noexcept -> bool = default;

private:
  content_digest digest_;
};

/// \cond INTERNAL
namespace tag {
struct weights;
struct structure;
struct tokenizer;
struct adapter;
} // namespace tag
/// \endcond

/// The weights, after everything that changes them: merges, quantisation, hot updates (case 17).
using weights_digest = identity_digest<tag::weights>;
/// The structure that the weights are put into: layers, heads, norms, head sharing (S10).
using structure_digest = identity_digest<tag::structure>;
/// The tokenizer: its vocabulary, merges and special tokens (S34).
using tokenizer_digest = identity_digest<tag::tokenizer>;
/// The weights of one adapter; never its name or slot number (cases 5, 6).
using adapter_digest = identity_digest<tag::adapter>;

} // namespace quire
