// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The default digest policy: XXH3 with 128 bits. Fast and well spread, *not* resistant to an adversary (pairs
/// that collide under most seeds are published), which is harmless here: digests only find entries, and whoever
/// finds one compares scope, parent and tokens (S21).
///
///     root  = XXH3_128(scope bytes, seed = "quire")
///     chain = XXH3_128(parent, 16 bytes || tokens, 4 bytes each, little endian)
///     root --block 0--> d0 --block 1--> d1 --block 2--> d2 ...       equal d2 <=> (probably) equal prefix

#include <quire/core/types.hpp>
#include <quire/identity/concepts.hpp>
#include <quire/identity/detail/xxhash.hpp>
#include <quire/identity/digest_128.hpp>

#include <cstddef> // std::byte
#include <cstdint>
#include <span>
#include <string_view>

namespace quire {

/// XXH3 128 chained over blocks.
class xxh3_128_digest {
public:
  /// What `root` and `chain` return.
  using digest_type = digest_128;

  /// Without a secret: `locate` gives the same places in every process.
  constexpr xxh3_128_digest() noexcept = default;
  /// \p placement_secret a random number per process, mixed into `locate` only: digests stay comparable between
  /// processes, while a client cannot aim blocks at one place of the index without knowing it.
  explicit constexpr xxh3_128_digest(std::uint64_t placement_secret) noexcept : placement_secret_{placement_secret} {}

  /// Algorithm and version; changes whenever one digest changes.
  [[nodiscard]] static constexpr auto scheme() noexcept -> std::string_view { return "quire/xxh3-128/1"; }

  /// Start of the chains of one scope.
  /// \param scope canonical bytes of a `scope_key`.
  /// \complexity O(scope); allocates nothing.
  [[nodiscard]] auto root(std::span<std::byte const> scope) const noexcept -> digest_type {
    return detail::xxh3_128(scope, root_seed);
  }

  /// Digest of \p block behind \p parent.
  /// \param parent digest of the block before, or `root` of the scope. \param block tokens of one full block.
  /// \complexity O(block); allocates nothing. 16 tokens have a path of their own.
  /// \source S21; tests/golden/xxh3_128_chain.txt fixes the values
  [[nodiscard]] auto chain(digest_type parent, std::span<token_id const> block) const noexcept -> digest_type {
    return detail::xxh3_128_chain(parent, block);
  }

  /// Place of \p block in a hash index. Never leaves the process.
  /// \param seed what the place depends on besides the tokens, such as the parent's number.
  [[nodiscard]] auto locate(std::uint64_t seed, std::span<token_id const> block) const noexcept -> std::uint32_t {
    return detail::xxh3_fold32(seed ^ placement_secret_, block);
  }

private:
  // "quire" in ASCII: a root is no chain link, even where a scope's bytes look like a parent and its tokens.
  static constexpr std::uint64_t root_seed = 0x7175697265U;

  std::uint64_t placement_secret_ = 0;
};

static_assert(digest_policy<xxh3_128_digest>);

} // namespace quire
