// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Bytes that caches take, computed and never measured (S42): per token, per sequence, per block, per step.
///
/// Two kinds of figures stand here. *Bare* ones count positions and know no blocks (S10, S13). *Paged* ones
/// count whole blocks of a layout. All are sums over the layer groups in checked 64-bit arithmetic, owners
/// only: a borrower stores nothing (case 144).

#include <quire/core/checked.hpp>
#include <quire/core/config_error.hpp>
#include <quire/core/types.hpp>
#include <quire/model/cache_layout.hpp>
#include <quire/model/layer_group.hpp>
#include <quire/model/model_spec.hpp>
#include <quire/model/retention.hpp>

#include <algorithm> // std::min
#include <cstdint>
#include <numeric> // std::gcd

namespace quire {

/// How a sequence is cut into blocks and steps. Named, so that the two cannot be swapped.
struct paging {
  token_count block_tokens{16}; ///< [tokens] per block.
  token_count step{1};          ///< [tokens] the longest append of one step, q; 1 in decode.
};

/// [bytes] that one token adds to one layer of a group. \source S10, S13
[[nodiscard]] inline auto layer_bytes_per_token(layer_group const& group) -> byte_count {
  std::uint64_t out = 0;
  for (auto const& plane : group.planes) { out = checked_add(out, plane.bytes_per_token().value(), "bytes per token"); }
  return byte_count{out};
}

/// [bytes] that one token adds to all owner layers of a group. \source S10, S13; case 144
[[nodiscard]] inline auto bytes_per_token(layer_group const& group) -> byte_count {
  return byte_count{checked_mul(layer_bytes_per_token(group).value(), group.layers(), "bytes per token")};
}

/// \cond INTERNAL
namespace detail {
template <class Bytes>
[[nodiscard]] auto sum_over_groups(model_spec const& model, group_kind kind, Bytes const& bytes) -> byte_count {
  std::uint64_t out = 0;
  for (auto const& group : model.groups()) {
    if (group.kind == kind) { out = checked_add(out, bytes(group).value(), "bytes of a model"); }
  }
  return byte_count{out};
}
} // namespace detail
/// \endcond

/// [bytes] per token if every layer kept everything: what one flat pool for all layers pays. \source S10
[[nodiscard]] inline auto bytes_per_token(model_spec const& model) -> byte_count {
  return detail::sum_over_groups(model, group_kind::self,
                                 [](layer_group const& group) { return bytes_per_token(group); });
}

/// [bytes] per token once every window and chunk is full: the groups that keep everything. \source S10, S29
[[nodiscard]] inline auto growth_per_token(model_spec const& model) -> byte_count {
  return detail::sum_over_groups(model, group_kind::self, [](layer_group const& group) {
    return group.keeps.keeps_all() ? bytes_per_token(group) : byte_count{};
  });
}

/// The most positions that a sequence of \p length positions needs at once while it decodes, the query's own
/// position included: min(length, w) for windows, plus sinks; min(length, c) for chunks; all slots of a ring.
/// \returns [tokens] \complexity O(1) \source S27, S29, S30
[[nodiscard]] constexpr auto peak_positions(retention const& keeps, token_count length) noexcept -> token_count {
  switch (keeps.kind) {
  case retention_kind::full: break;
  case retention_kind::sliding_window:
  case retention_kind::sink_window:
  case retention_kind::chunked: {
    auto const most = static_cast<std::uint64_t>(keeps.extent.value()) + keeps.sinks.value();
    return token_count{static_cast<std::uint32_t>(std::min<std::uint64_t>(most, length.value()))};
  }
  case retention_kind::ring: return keeps.capacity;
  }
  return length;
}

/// The most blocks of a group that a sequence of \p length positions holds at once, appending at most `step`
/// positions at a time and giving dead blocks back after each step. Decode with a window: ⌈(w−1)/p_b⌉ + 1.
/// \returns [blocks]; reached for some length, whenever \p length is large enough
/// \throws config_error for blocks or steps of 0 tokens. \complexity O(1) \source S16, S27, S30
[[nodiscard]] constexpr auto peak_blocks(retention const& keeps, token_count length, paging pages) -> block_count {
  if (pages.block_tokens == token_count{} || pages.step == token_count{}) {
    throw config_error{"peak_blocks: blocks or steps of 0 tokens: use at least 1"};
  }
  auto const block = std::uint64_t{pages.block_tokens.value()};
  auto const all = ceil_div<std::uint64_t>(length.value(), block);
  auto const extent = std::uint64_t{keeps.extent.value()};
  auto const step = std::uint64_t{pages.step.value()};
  auto most = all;
  switch (keeps.kind) {
  case retention_kind::full: break;
  case retention_kind::sliding_window:
  case retention_kind::sink_window: // w − 1 + q positions that begin anywhere in a block
    most = ceil_div<std::uint64_t>(keeps.sinks.value(), block) + ceil_div(extent - 1 + step - 1, block) + 1;
    break;
  case retention_kind::chunked: { // c − 1 + q positions that begin at a multiple of the chunk
    auto const deepest_start = block - std::gcd(extent, block);
    most = ceil_div(deepest_start + extent - 1 + step, block);
    break;
  }
  case retention_kind::ring: // never grows and never shrinks
    return block_count{static_cast<std::uint32_t>(ceil_div<std::uint64_t>(keeps.capacity.value(), block))};
  }
  return block_count{static_cast<std::uint32_t>(std::min(most, all))};
}

/// [bytes] bare capacity of one sequence of \p length positions, windows and chunks counted at their peak.
/// \source S10, S13, S29
[[nodiscard]] inline auto sequence_bytes(model_spec const& model, token_count length) -> byte_count {
  return detail::sum_over_groups(model, group_kind::self, [length](layer_group const& group) {
    auto const positions = peak_positions(group.keeps, length).value();
    return byte_count{checked_mul(bytes_per_token(group).value(), positions, "bytes of a sequence")};
  });
}

/// [bytes] bare capacity of one sequence of \p length positions if every layer kept everything. \source S10
[[nodiscard]] inline auto naive_sequence_bytes(model_spec const& model, token_count length) -> byte_count {
  return byte_count{checked_mul(bytes_per_token(model).value(), length.value(), "bytes of a sequence")};
}

/// [bytes] of one sequence that no longer grow once its windows and chunks are full. \source S29
[[nodiscard]] inline auto fixed_sequence_bytes(model_spec const& model) -> byte_count {
  return detail::sum_over_groups(model, group_kind::self, [](layer_group const& group) {
    if (group.keeps.keeps_all()) { return byte_count{}; }
    auto const positions = peak_positions(group.keeps, token_count{UINT32_MAX}).value();
    return byte_count{checked_mul(bytes_per_token(group).value(), positions, "bytes of a sequence")};
  });
}

/// [bytes] of the cross-attention caches of one source of \p length positions. \source S5, S10
[[nodiscard]] inline auto source_bytes(model_spec const& model, token_count length) -> byte_count {
  return detail::sum_over_groups(model, group_kind::cross, [length](layer_group const& group) {
    return byte_count{checked_mul(bytes_per_token(group).value(), length.value(), "bytes of a source")};
  });
}

/// [bytes] of one block of every self group, padding included. \source S10, S16
[[nodiscard]] inline auto block_bytes(model_spec const& model, token_count block_tokens,
                                      byte_count alignment = cache_layout::default_alignment) -> byte_count {
  return detail::sum_over_groups(model, group_kind::self, [block_tokens, alignment](layer_group const& group) {
    return block_bytes(group, block_tokens, alignment);
  });
}

/// [bytes] of the whole blocks that one sequence of \p length positions holds at its peak. \source S16, S29
[[nodiscard]] inline auto paged_sequence_bytes(model_spec const& model, token_count length, paging pages,
                                               byte_count alignment = cache_layout::default_alignment) -> byte_count {
  return detail::sum_over_groups(model, group_kind::self, [=](layer_group const& group) {
    return cache_layout{group, pages.block_tokens, alignment}.total_bytes(peak_blocks(group.keeps, length, pages));
  });
}

/// [bytes] of keys and values that a decode step with its query at \p query must read at least: the visible
/// positions, the query's own included, of every layer. Borrowers read too. Cross layers read their source
/// besides: see `source_bytes`. \source S9; the floor of S43
[[nodiscard]] inline auto step_read_bytes(model_spec const& model, token_pos query) -> byte_count {
  std::uint64_t out = 0;
  for (std::uint32_t i = 0; i < model.layers(); ++i) {
    auto const& group = model.group(model.group_of(layer_id{i}));
    auto const visible = model.layer(layer_id{i}).rule.visible_count(query).value();
    out = checked_add(out, checked_mul(layer_bytes_per_token(group).value(), visible, "bytes of a step"),
                      "bytes of a step");
  }
  return byte_count{out};
}

} // namespace quire
