// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A digest policy whose digests have 8 bits, so that collisions can be found by counting (case 1).

#include <quire/identity/concepts.hpp>
#include <quire/identity/xxh3_128_digest.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace quire_test {

/// The last byte of the digests of `quire::xxh3_128_digest`.
struct truncated_digest {
  using digest_type = std::uint8_t;

  [[nodiscard]] static constexpr auto scheme() noexcept -> std::string_view { return "test/truncated-8/1"; }
  [[nodiscard]] auto root(std::span<std::byte const> scope) const noexcept -> digest_type {
    return last(quire::xxh3_128_digest{}.root(scope));
  }
  [[nodiscard]] auto chain(digest_type parent, std::span<quire::token_id const> block) const noexcept -> digest_type {
    auto wide = quire::digest_128{};
    wide.bytes.back() = std::byte{parent};
    return last(quire::xxh3_128_digest{}.chain(wide, block));
  }
  [[nodiscard]] auto locate(std::uint64_t seed, std::span<quire::token_id const> block) const noexcept
      -> std::uint32_t {
    return quire::xxh3_128_digest{}.locate(seed, block) & 0xFFU;
  }

private:
  static auto last(quire::digest_128 const& digest) noexcept -> digest_type {
    return std::to_integer<std::uint8_t>(digest.bytes.back());
  }
};

static_assert(quire::digest_policy<truncated_digest>);

} // namespace quire_test
