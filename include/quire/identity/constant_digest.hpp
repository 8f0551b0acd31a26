// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The null model of `digest_policy`: every digest is equal and every block has one place. A cache that is exact
/// with it is exact with any digest.

#include <quire/core/types.hpp>
#include <quire/identity/concepts.hpp>
#include <quire/identity/digest_128.hpp>

#include <cstddef> // std::byte
#include <cstdint>
#include <span>
#include <string_view>

namespace quire {

/// Digests that carry no information: for tests, and for measuring what digests are worth.
struct constant_digest {
  /// What `root` and `chain` return.
  using digest_type = digest_128;

  /// Algorithm and version.
  [[nodiscard]] static constexpr auto scheme() noexcept -> std::string_view { return "quire/constant/1"; }
  /// The one digest.
  [[nodiscard]] constexpr auto root(std::span<std::byte const>) const noexcept -> digest_type { return digest_type{}; }
  /// The one digest.
  [[nodiscard]] constexpr auto chain(digest_type, std::span<token_id const>) const noexcept -> digest_type {
    return digest_type{};
  }
  /// The one place.
  [[nodiscard]] constexpr auto locate(std::uint64_t, std::span<token_id const>) const noexcept -> std::uint32_t {
    return 0;
  }
};

static_assert(digest_policy<constant_digest>);

} // namespace quire
