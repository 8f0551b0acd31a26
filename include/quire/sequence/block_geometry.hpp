// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Positions to blocks and back (S14), with shifts where the block size allows.

#include <quire/core/config_error.hpp>
#include <quire/core/types.hpp>

#include <bit>
#include <cstdint>

namespace quire {

/// The arithmetic of one block size p_b.
class block_geometry {
public:
  /// Blocks of \p block_tokens tokens. \throws config_error if it is 0.
  explicit constexpr block_geometry(token_count block_tokens)
      : tokens_{block_tokens.value()},
        shift_{std::has_single_bit(tokens_) ? static_cast<std::uint32_t>(std::countr_zero(tokens_)) : none} {
    if (tokens_ == 0) { throw config_error{"block_tokens is 0: a block holds at least 1 token"}; }
  }
  /// [tokens] per block.
  [[nodiscard]] constexpr auto block_tokens() const noexcept -> std::uint32_t { return tokens_; }
  /// Index of the logical block that holds position \p t: ⌊t / p_b⌋. \source S14
  [[nodiscard]] constexpr auto index(std::uint32_t t) const noexcept -> std::uint32_t {
    return shift_ != none ? t >> shift_ : t / tokens_;
  }
  /// Offset of position \p t in its block: t mod p_b. \source S14
  [[nodiscard]] constexpr auto offset(std::uint32_t t) const noexcept -> std::uint32_t {
    return t - index(t) * tokens_;
  }
  /// Blocks that \p n tokens occupy: ⌈n / p_b⌉. \source S16
  [[nodiscard]] constexpr auto blocks(std::uint32_t n) const noexcept -> std::uint32_t {
    return n == 0 ? 0 : index(n - 1) + 1;
  }

private:
  static constexpr std::uint32_t none = 32;
  std::uint32_t tokens_;
  std::uint32_t shift_;
};

} // namespace quire
