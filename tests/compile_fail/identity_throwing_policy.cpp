// SPDX-License-Identifier: Apache-2.0
// S44: look-ups are noexcept, so digests must be; the diagnostic names the concept.
// expect: computes_digests
#include <quire/identity/block_key.hpp>

struct policy {
  using digest_type = unsigned;
  static constexpr auto scheme() noexcept -> std::string_view { return "engine/1"; }
  auto root(std::span<std::byte const>) const noexcept -> unsigned { return 0; }
#ifdef FIXED
  auto chain(unsigned, std::span<quire::token_id const>) const noexcept -> unsigned { return 0; }
#else
  auto chain(unsigned, std::span<quire::token_id const>) const -> unsigned { return 0; }
#endif
  auto locate(std::uint64_t, std::span<quire::token_id const>) const noexcept -> std::uint32_t { return 0; }
};

using key = quire::block_key<policy>;
