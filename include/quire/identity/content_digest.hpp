// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The digest by which an artifact (weights, a tokenizer, an image) is known to the library.

#include <quire/core/config_error.hpp>

#include <algorithm> // std::all_of, std::copy
#include <array>
#include <cstddef> // std::byte
#include <optional>
#include <span>
#include <string_view>

namespace quire {

/// 32 opaque bytes that stand for the exact content of one artifact, computed by whoever owns the artifact with a
/// collision-resistant function (SHA-256, BLAKE3; a digest of 128 bits or more may be padded with zeros).
///
/// The library never makes one, least of all from a name: a label, branch or path can point at other content
/// tomorrow (S35, case 6). What the digest must cover is the caller's promise: the exact bytes *and* what gives
/// them meaning: version, type, shape and mode (cases 7, 10). It takes part in keys with all of its bytes, in a
/// field of its own and never folded into token ids (cases 8, 9).
class content_digest {
public:
  /// Number of bytes.
  static constexpr std::size_t size = 32;

  /// Takes over the digest \p value.
  /// \throws config_error if every byte is 0: a digest that was never filled in.
  explicit constexpr content_digest(std::array<std::byte, size> const& value) : value_{value} {
    if (std::all_of(value.begin(), value.end(), [](std::byte b) { return b == std::byte{0}; })) {
      throw config_error{"content_digest: all bytes are 0, which is a digest that was never computed: "
                         "hash the content (for instance with SHA-256) and pass the result"};
    }
  }

  /// Reads the digest from its printed form.
  /// \param text exactly 64 hexadecimal digits, as `sha256sum` prints them.
  /// \returns the digest; empty if \p text is anything else, such as a name, a branch or a shorter digest, or all 0.
  [[nodiscard]] static constexpr auto from_hex(std::string_view text) -> std::optional<content_digest> {
    if (text.size() != 2 * size) { return std::nullopt; }
    auto value = std::array<std::byte, size>{};
    auto any = 0U;
    for (std::size_t i = 0; i < text.size(); ++i) {
      auto const digit = nibble(text[i]);
      if (digit > 15U) { return std::nullopt; }
      any |= digit;
      value[i / 2] = static_cast<std::byte>((std::to_integer<unsigned>(value[i / 2]) << 4U) | digit);
    }
    if (any == 0) { return std::nullopt; }
    return content_digest{value};
  }

  /// The bytes, as given.
  [[nodiscard]] constexpr auto bytes() const noexcept -> std::span<std::byte const, size> { return value_; }
  /// Equal digests stand for equal content.
  friend constexpr auto operator==(content_digest const&, content_digest const&) noexcept -> bool = default;

private:
  [[nodiscard]] static constexpr auto nibble(char c) noexcept -> unsigned {
    if (c >= '0' && c <= '9') { return static_cast<unsigned>(c - '0'); }
    if (c >= 'a' && c <= 'f') { return static_cast<unsigned>(c - 'a') + 10U; }
    if (c >= 'A' && c <= 'F') { return static_cast<unsigned>(c - 'A') + 10U; }
    return 16U;
  }

  std::array<std::byte, size> value_;
};

} // namespace quire
