// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The only place that includes xxHash: inlined, so that no library has to be linked and a program that links
/// another version of it keeps its own.

#include <quire/core/types.hpp>
#include <quire/identity/digest_128.hpp>

// The macro renames xxHash's functions, which keeps them apart from those of a linked libxxhash. The header
// may be included before or after this one, with the macro or without.
#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
// Which vectors xxHash uses for inputs of more than 240 bytes; digests do not depend on it. With AVX2 xxHash makes g++
// compile its functions under other options, so that none of them is inlined here: the digest of a block of 16 tokens
// would take 16 ns instead of 12. With AVX-512 g++ 12 warns of '__Y' in a header of its own, where no pragma reaches once
// the program is optimised as a whole, and a program built with -Werror would not build. A unit that wants longer
// vectors for inputs of its own defines XXH_VECTOR first.
#if defined(__GNUC__) && !defined(__clang__) && !defined(XXH_VECTOR) && defined(__AVX2__) && \
    (!defined(__AVX512F__) || __GNUC__ < 13)
#define XXH_VECTOR XXH_SSE2
#endif
#include <xxhash.h>

#include <bit> // std::endian
#include <cstddef>
#include <cstdint>
#include <cstring> // std::memcpy
#include <span>

/// \cond INTERNAL
namespace quire::detail {

static_assert(std::endian::native == std::endian::little,
              "xxh3_128_digest reads tokens as they lie in memory, and its digests are defined over little-endian "
              "tokens: on a big-endian machine give the cache a digest policy that swaps them");
static_assert(sizeof(token_id) == 4, "digests are defined over 4-byte tokens");

/// Longest block, in tokens, that is hashed from one buffer on the stack; longer ones are streamed.
inline constexpr std::size_t xxh3_one_buffer_tokens = 64;

[[nodiscard]] inline auto to_digest(XXH128_hash_t hash) noexcept -> digest_128 {
  // As XXH128_canonicalFromHash, but without the way through memory that a byte shuffle of both halves at once takes: the
  // next block of the chain waits for it. The empty assembly keeps compilers from finding that shuffle again.
  auto high = XXH_swap64(hash.high64);
  auto low = XXH_swap64(hash.low64);
  asm("" : "+r"(high), "+r"(low)); // NOLINT(hicpp-no-assembler)
  auto out = digest_128{};
  std::memcpy(out.bytes.data(), &high, sizeof(high));
  std::memcpy(out.bytes.data() + sizeof(high), &low, sizeof(low));
  return out;
}

/// XXH3 128 of \p bytes under \p seed.
[[nodiscard]] inline auto xxh3_128(std::span<std::byte const> bytes, std::uint64_t seed) noexcept -> digest_128 {
  return to_digest(XXH3_128bits_withSeed(bytes.data(), bytes.size(), seed));
}

/// XXH3 128 of the bytes of \p parent followed by those of \p block. Nothing is allocated.
[[nodiscard]] inline auto xxh3_128_chain(digest_128 const& parent, std::span<token_id const> block) noexcept
    -> digest_128 {
  constexpr auto head = sizeof(parent.bytes);
  if (block.size() == 16) [[likely]] { // the usual block: both copies have a constant size
    std::byte buffer[head + 16 * sizeof(token_id)];
    std::memcpy(buffer, parent.bytes.data(), head);
    std::memcpy(buffer + head, block.data(), 16 * sizeof(token_id));
    return to_digest(XXH3_128bits(buffer, sizeof(buffer)));
  }
  if (block.empty()) { return to_digest(XXH3_128bits(parent.bytes.data(), head)); }
  if (block.size() <= xxh3_one_buffer_tokens) {
    std::byte buffer[head + xxh3_one_buffer_tokens * sizeof(token_id)];
    std::memcpy(buffer, parent.bytes.data(), head);
    std::memcpy(buffer + head, block.data(), block.size_bytes());
    return to_digest(XXH3_128bits(buffer, head + block.size_bytes()));
  }
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  XXH3_128bits_update(&state, parent.bytes.data(), head);
  XXH3_128bits_update(&state, block.data(), block.size_bytes());
  return to_digest(XXH3_128bits_digest(&state));
}

/// XXH3 64 of \p bytes, for places in a table of this process.
[[nodiscard]] inline auto xxh3_64(std::span<std::byte const> bytes) noexcept -> std::uint64_t {
  return XXH3_64bits(bytes.data(), bytes.size());
}

/// XXH3 64 of the bytes of \p block under \p seed, folded to 32 bits.
[[nodiscard]] inline auto xxh3_fold32(std::uint64_t seed, std::span<token_id const> block) noexcept -> std::uint32_t {
  auto const hash = XXH3_64bits_withSeed(block.data(), block.size_bytes(), seed);
  return static_cast<std::uint32_t>(hash ^ (hash >> 32U));
}

} // namespace quire::detail
/// \endcond
