// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// How keys and values are kept: exactly, or in a named approximate mode.

#include <quire/core/config_error.hpp>
#include <quire/identity/detail/canonical_encoder.hpp>

#include <cstddef> // std::byte
#include <cstdint>
#include <span>
#include <string_view>
#include <utility> // std::move
#include <vector>

namespace quire {

/// The format of the cached bytes. Entries of different formats never mix (S6).
class cache_format {
public:
  /// What was computed is stored without loss.
  /// \param elements representation of the elements, such as `"bf16"`. \throws config_error if empty.
  [[nodiscard]] static auto exact(std::string_view elements) -> cache_format { return cache_format{1, elements}; }
  /// Something is lost: quantisation, dropped or merged positions, fitted low rank.
  /// \param mode name of the mode with its parameters, such as `"fp8-e4m3/per-token"`. \throws config_error if empty.
  [[nodiscard]] static auto approximate(std::string_view mode) -> cache_format { return cache_format{2, mode}; }

  /// True if nothing was lost.
  [[nodiscard]] auto is_exact() const noexcept -> bool { return value_.front() == std::byte{1}; }
  /// Canonical bytes: the kind, then the name. Valid while this lives and is not assigned to.
  [[nodiscard]] auto bytes() const noexcept -> std::span<std::byte const> { return value_; }
  /// Equal if kind and name are.
  friend auto operator==(cache_format const&, cache_format const&) noexcept -> bool = default;

private:
  cache_format(std::uint8_t kind, std::string_view name) {
    if (name.empty()) {
      throw config_error{"cache_format: a format needs a name, such as \"bf16\" or \"fp8-e4m3/per-token\""};
    }
    auto out = detail::canonical_encoder{};
    auto const kind_byte = std::byte{kind};
    out.raw({&kind_byte, 1}).raw(detail::as_bytes_of(name));
    value_ = std::move(out).take();
  }

  std::vector<std::byte> value_;
};

} // namespace quire
