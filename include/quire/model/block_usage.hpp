// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What a block size costs for a distribution of lengths, so that the choice can be made (S16).

#include <quire/core/checked.hpp>
#include <quire/core/config_error.hpp>
#include <quire/core/types.hpp>
#include <quire/model/cache_layout.hpp>
#include <quire/model/capacity.hpp>
#include <quire/model/layer_group.hpp>
#include <quire/model/model_spec.hpp>
#include <quire/model/resident_range.hpp>
#include <quire/model/retention.hpp>

#include <cstdint>
#include <span>

namespace quire {

/// Blocks, waste and table size of unshared sequences at one block size, summed over the self groups.
struct block_usage {
  token_count block_tokens{}; ///< [tokens] per block.
  std::uint64_t blocks = 0;   ///< Blocks held.
  std::uint64_t slots = 0;    ///< Token slots in them.
  std::uint64_t used = 0;     ///< Slots whose position must stay.
  byte_count held_bytes{};    ///< [bytes] of the blocks held.
  byte_count used_bytes{};    ///< [bytes] of the positions that must stay.
  byte_count table_bytes{};   ///< [bytes] of page-table entries, one int32 per block held.

  /// Slots that hold nothing needed. Full groups waste fewer than `block_tokens` each per sequence.
  [[nodiscard]] constexpr auto wasted() const noexcept -> std::uint64_t { return slots - used; }
  /// [bytes] held for nothing: partial blocks, and padding inside blocks.
  [[nodiscard]] constexpr auto wasted_bytes() const noexcept -> byte_count { return held_bytes - used_bytes; }
  /// Share of the held bytes that is used, in [0, 1]; 1 if nothing is held.
  [[nodiscard]] constexpr auto utilisation() const noexcept -> double {
    return held_bytes == byte_count{}
               ? 1.0
               : static_cast<double>(used_bytes.value()) / static_cast<double>(held_bytes.value());
  }
};

/// The usage of one block size for sequences of these lengths, each at its last decode step.
/// \param lengths [tokens] one per unshared sequence; 0 holds nothing
/// \throws config_error for a block of 0 tokens or on overflow. \complexity O(lengths · groups) \source S16
[[nodiscard]] inline auto usage_of(model_spec const& model, std::span<token_count const> lengths,
                                   token_count block_tokens) -> block_usage {
  block_usage out{.block_tokens = block_tokens};
  for (auto const& group : model.groups()) {
    if (group.kind != group_kind::self) { continue; }
    auto const layout = cache_layout{group, block_tokens};
    std::uint64_t blocks = 0;
    std::uint64_t used = 0;
    for (auto const length : lengths) {
      if (length == token_count{}) { continue; }
      auto const stays = resident_range(token_pos{length.value() - 1}, group.keeps, block_tokens);
      auto const ring = group.keeps.kind == retention_kind::ring;
      blocks = checked_add(blocks,
                           ring ? peak_blocks(group.keeps, length, {.block_tokens = block_tokens}).value()
                                : stays.kept_blocks(length).value(),
                           "blocks");
      used = checked_add(used, stays.kept(length).value(), "tokens");
    }
    out.blocks = checked_add(out.blocks, blocks, "blocks");
    out.used = checked_add(out.used, used, "tokens");
    auto const held = checked_mul(layout.block_bytes().value(), blocks, "bytes of blocks");
    auto const needed = checked_mul(bytes_per_token(group).value(), used, "bytes of tokens");
    out.held_bytes = byte_count{checked_add(out.held_bytes.value(), held, "bytes of blocks")};
    out.used_bytes = byte_count{checked_add(out.used_bytes.value(), needed, "bytes of tokens")};
  }
  out.slots = checked_mul(out.blocks, block_tokens.value(), "slots");
  out.table_bytes = byte_count{checked_mul(out.blocks, sizeof(std::int32_t), "bytes of page tables")};
  return out;
}

/// The share of slots that partial last blocks waste if the remainders of the lengths are uniform:
/// ((p_b − 1)/2) / (mean + (p_b − 1)/2). \param mean_length [tokens] \returns a share in [0, 1) \source S16
[[nodiscard]] constexpr auto expected_waste(double mean_length, token_count block_tokens) -> double {
  if (!(mean_length > 0.0) || block_tokens == token_count{}) {
    throw config_error{"expected_waste: a mean length or block of 0 tokens: use more than 0"};
  }
  auto const half = (static_cast<double>(block_tokens.value()) - 1.0) / 2.0;
  return half / (mean_length + half);
}

} // namespace quire
