// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Writes the canonical encoding of keys: for each field, in a fixed order,
///
///     | tag, 1 byte | length of the value, 8 bytes, little endian | value |
///
/// A reader knows where each value ends before it looks at it, so no two field lists share an encoding and no
/// byte can move from one field to its neighbour (cases 7, 11).

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility> // std::move
#include <vector>

/// \cond INTERNAL
namespace quire::detail {

/// \p text as bytes.
[[nodiscard]] inline auto as_bytes_of(std::string_view text) noexcept -> std::span<std::byte const> {
  return std::as_bytes(std::span{text.data(), text.size()});
}

/// Appends fields to a byte string.
class canonical_encoder {
public:
  /// Appends one field.
  auto field(std::uint8_t tag, std::span<std::byte const> value) -> canonical_encoder& {
    out_.push_back(std::byte{tag});
    number(value.size());
    raw(value);
    return *this;
  }
  /// Appends one field holding text.
  auto field(std::uint8_t tag, std::string_view value) -> canonical_encoder& { return field(tag, as_bytes_of(value)); }
  /// Appends one field holding a number.
  auto field(std::uint8_t tag, std::uint64_t value) -> canonical_encoder& {
    out_.push_back(std::byte{tag});
    number(8);
    number(value);
    return *this;
  }
  /// Appends 8 bytes without a header: for values made of parts of fixed size.
  auto number(std::uint64_t value) -> canonical_encoder& {
    for (auto shift = 0U; shift < 64U; shift += 8U) {
      out_.push_back(static_cast<std::byte>((value >> shift) & 0xFFU));
    }
    return *this;
  }
  /// Appends 4 bytes without a header: for values made of parts of fixed size.
  auto number32(std::uint32_t value) -> canonical_encoder& {
    for (auto shift = 0U; shift < 32U; shift += 8U) {
      out_.push_back(static_cast<std::byte>((value >> shift) & 0xFFU));
    }
    return *this;
  }
  /// Appends bytes without a header: for values made of parts of fixed size.
  auto raw(std::span<std::byte const> bytes) -> canonical_encoder& {
    out_.insert(out_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  /// What has been written so far.
  [[nodiscard]] auto bytes() const noexcept -> std::span<std::byte const> { return out_; }
  /// Hands over what has been written.
  [[nodiscard]] auto take() && -> std::vector<std::byte> { return std::move(out_); }

private:
  std::vector<std::byte> out_;
};

} // namespace quire::detail
/// \endcond
