// SPDX-License-Identifier: Apache-2.0
// Case 4: a digest policy says what it computes.
// expect: a digest policy needs a scheme
#include <quire/identity/digest_scheme.hpp>

struct policy {
  using digest_type = unsigned;
#ifdef FIXED
  static constexpr auto scheme() noexcept -> std::string_view { return "engine/1"; }
#else
  static constexpr auto scheme() noexcept -> std::string_view { return ""; }
#endif
  auto root(std::span<std::byte const>) const noexcept -> unsigned { return 0; }
  auto chain(unsigned, std::span<quire::token_id const>) const noexcept -> unsigned { return 0; }
  auto locate(std::uint64_t, std::span<quire::token_id const>) const noexcept -> std::uint32_t { return 0; }
};

auto scheme() -> quire::digest_scheme { return quire::digest_scheme::of<policy>(); }
