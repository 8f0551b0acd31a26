// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Content digests that say which artifact they stand for: one that must be there, and one that may be absent.

#include <quire/identity/content_digest.hpp>

#include <cstddef> // std::byte
#include <optional>
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

/// A digest in one role that may be absent. Absence has to be written out as `none()`.
/// \tparam Tag makes the role distinct.
template <class Tag>
class optional_identity_digest {
public:
  /// States that there is no such artifact.
  [[nodiscard]] static constexpr auto none() noexcept -> optional_identity_digest {
    return optional_identity_digest{std::nullopt};
  }
  /// The artifact with digest \p digest.
  [[nodiscard]] static constexpr auto of(content_digest const& digest) noexcept -> optional_identity_digest {
    return optional_identity_digest{digest};
  }

  /// Canonical bytes: those of the digest, or no byte for `none()`.
  [[nodiscard]] constexpr auto bytes() const noexcept -> std::span<std::byte const> {
    return digest_ ? std::span<std::byte const>{digest_->bytes()} : std::span<std::byte const>{};
  }
  /// Equal digests stand for equal content; `none()` equals itself only.
  friend constexpr auto operator==(optional_identity_digest const&, optional_identity_digest const&) noexcept
      -> bool = default;

private:
  explicit constexpr optional_identity_digest(std::optional<content_digest> const& digest) noexcept : digest_{digest} {}

  std::optional<content_digest> digest_;
};

/// \cond INTERNAL
namespace tag {
struct prompt_template;
struct conditions;
} // namespace tag
/// \endcond

/// The template that turns messages into a prompt (S34); `none()` where prompts are plain text.
using prompt_template_digest = optional_identity_digest<tag::prompt_template>;

/// Everything outside the tokens that the whole sequence was computed under: encoder state, images, audio or prompt
/// embeddings at their positions, and the revision of the processor that made them (S33, S5). The digest covers for
/// each item its content with type and shape, its position, and which positions take their input from it (cases 7,
/// 10, 12). `none()` for plain text.
using external_conditions = optional_identity_digest<tag::conditions>;

} // namespace quire
