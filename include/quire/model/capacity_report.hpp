// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// From a model and a memory budget to blocks, tokens and requests, with every overhead on its own line (B13).

#include <quire/core/checked.hpp>
#include <quire/core/config_error.hpp>
#include <quire/core/types.hpp>
#include <quire/model/cache_layout.hpp>
#include <quire/model/capacity.hpp>
#include <quire/model/index_width.hpp>
#include <quire/model/layer_group.hpp>
#include <quire/model/model_spec.hpp>
#include <quire/model/parallel_split.hpp>
#include <quire/model/retention.hpp>

#include <algorithm> // std::min, std::max
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quire {

/// What is planned, for one rank.
struct capacity_request {
  byte_count memory{};                                    ///< [bytes] of the device.
  byte_count weights{};                                   ///< [bytes] of weights on this rank.
  byte_count workspace{};                                 ///< [bytes] of activations, graphs and buffers on this rank.
  token_count context{};                                  ///< [tokens] of one request, prompt and output.
  token_count source{};                                   ///< [tokens] of one request's source; cross layers only.
  paging pages{};                                         ///< Block size and the longest append.
  byte_count alignment = cache_layout::default_alignment; ///< [bytes] of each plane.
  parallel_split split{};                                 ///< Over how many ranks the model is split.
  std::uint32_t stage = 0;                                ///< The pipeline stage of the rank that is planned.
  index_width index = index_width::int64;                 ///< In which device code computes offsets.
};

/// One group's part of a report.
struct group_capacity {
  group_id id{};              ///< The group, in the rank's own model.
  byte_count block_bytes{};   ///< [bytes] per block.
  block_count per_sequence{}; ///< Blocks one request of the planned context holds at its peak.
  block_count blocks{};       ///< Blocks of the pool.
};

/// One line of a report.
struct capacity_line {
  std::string_view name{}; ///< What the bytes are for.
  byte_count bytes{};      ///< [bytes]
};

/// What fits on one rank. All figures are computed, none is measured (S42).
struct capacity_report {
  byte_count memory{};         ///< [bytes] given; the sum of the next eight.
  byte_count weights{};        ///< [bytes] given.
  byte_count workspace{};      ///< [bytes] given.
  byte_count tables{};         ///< [bytes] of page-table rows, one int32 per block of each request.
  byte_count state{};          ///< [bytes] of state that the engine keeps per request.
  byte_count data{};           ///< [bytes] of elements in the pools' blocks.
  byte_count scales{};         ///< [bytes] of scale planes in the pools' blocks.
  byte_count padding{};        ///< [bytes] of alignment in the pools' blocks.
  byte_count unused{};         ///< [bytes] left over.
  byte_count fragmentation{};  ///< [bytes] of `data` and `scales` that partial last blocks waste at most.
  std::uint32_t sequences = 0; ///< Requests of the planned context that run at once.
  std::uint64_t tokens = 0;    ///< Positions of all requests together that the pools hold, over all context ranks.
  std::vector<group_capacity> groups{}; ///< Per layer group.

  /// The lines whose bytes add up to `memory`.
  [[nodiscard]] constexpr auto lines() const noexcept -> std::array<capacity_line, 8> {
    return {{{"weights", weights},
             {"workspace", workspace},
             {"page tables", tables},
             {"unmanaged state", state},
             {"cache data", data},
             {"cache scales", scales},
             {"alignment padding", padding},
             {"unused", unused}}};
  }
};

/// \cond INTERNAL
namespace detail {
class capacity_planner {
public:
  capacity_planner(model_spec const& model, capacity_request const& request)
      : request_{request}, rank_{request.split.per_rank(model, checked_stage(request))} {
    for (auto const& group : rank_.groups()) {
      layouts_.emplace_back(group, request.pages.block_tokens, request.alignment);
    }
  }

  [[nodiscard]] auto plan() const -> capacity_report {
    check();
    auto const fixed = checked_add(request_.weights.value(), request_.workspace.value(), "weights and workspace");
    if (fixed >= request_.memory.value()) {
      throw config_error{"plan_capacity: weights and workspace take " + std::to_string(fixed) + " of " +
                         std::to_string(request_.memory.value()) +
                         " bytes, which leaves nothing for a cache: use more memory or more ranks"};
    }
    auto const budget = request_.memory.value() - fixed;
    auto const each = sequence_need(request_.context);
    if (each > budget) { refuse_context(budget, each); }
    return fill(budget, each);
  }

private:
  [[nodiscard]] static auto checked_stage(capacity_request const& request) -> std::uint32_t {
    request.split.validate();
    if (request.stage >= request.split.pipeline) {
      throw config_error{"plan_capacity: stage " + std::to_string(request.stage) + " of " +
                         std::to_string(request.split.pipeline) + " pipeline stages: stages count from 0"};
    }
    return request.stage;
  }

  void check() const {
    if (request_.context == token_count{}) {
      throw config_error{"plan_capacity: a context of 0 tokens: use the length of one request, at least 1"};
    }
    if (request_.context > rank_.max_positions()) {
      throw config_error{"plan_capacity: a context of " + std::to_string(request_.context.value()) +
                         " tokens exceeds the model's " + std::to_string(rank_.max_positions().value()) +
                         ": use a shorter one, or describe the model with more positions"};
    }
    for (auto const& group : rank_.groups()) {
      if (request_.split.context > 1 && group.keeps.kind == retention_kind::ring) {
        throw config_error{"plan_capacity: rings cannot be split over context ranks: use paged windows, or one "
                           "context rank"};
      }
    }
  }

  // Blocks are dealt to the context ranks in turn: of n neighbours one rank gets at most ⌈n / ranks⌉. The two
  // parts of a sink + window group begin at different ranks, hence one more.
  [[nodiscard]] auto per_sequence(layer_group const& group, token_count context) const -> block_count {
    auto const length = group.kind == group_kind::cross ? request_.source : context;
    auto const all = peak_blocks(retention::full(), length, request_.pages).value();
    auto const peak = peak_blocks(group.keeps, length, request_.pages).value();
    auto const ranks = request_.split.context;
    auto const parts = ranks > 1 && group.keeps.kind == retention_kind::sink_window ? 1U : 0U;
    if (group.keeps.kind == retention_kind::ring) { return block_count{peak}; }
    return block_count{std::min(ceil_div(peak, ranks) + parts, ceil_div(all, ranks))};
  }

  [[nodiscard]] auto sequence_need(token_count context) const -> std::uint64_t {
    auto out = rank_.unmanaged_state().value();
    for (std::size_t i = 0; i < layouts_.size(); ++i) {
      auto const blocks = per_sequence(rank_.groups()[i], context);
      out = checked_add(out, layouts_[i].total_bytes(blocks).value(), "bytes of a request");
      out = checked_add(out, table_bytes(blocks.value()), "bytes of a request");
    }
    return out;
  }

  [[noreturn]] void refuse_context(std::uint64_t budget, std::uint64_t need) const {
    std::uint32_t fits = 0;
    auto too_long = request_.context.value();
    while (too_long - fits > 1) {
      auto const middle = fits + (too_long - fits) / 2;
      (sequence_need(token_count{middle}) <= budget ? fits : too_long) = middle;
    }
    throw config_error{"plan_capacity: one request of " + std::to_string(request_.context.value()) + " tokens needs " +
                       std::to_string(need) + " bytes on this rank, but " + std::to_string(budget) + " are left: " +
                       (fits > 0 ? "use at most " + std::to_string(fits) + " tokens, or more memory or ranks"
                                 : std::string{"use more memory or more ranks"})};
  }

  [[nodiscard]] auto fill(std::uint64_t budget, std::uint64_t each) const -> capacity_report {
    auto const& groups = rank_.groups();
    // A pool of which every request needs at least one block cannot serve more requests than it has block ids.
    auto sequences = std::min<std::uint64_t>(budget / std::max<std::uint64_t>(each, 1), UINT32_MAX);
    for (auto const& group : groups) {
      auto const blocks = per_sequence(group, request_.context).value();
      sequences = std::min<std::uint64_t>(sequences, blocks == 0 ? sequences : UINT32_MAX / blocks);
    }
    auto left = budget - sequences * each;

    // What is left over goes to the groups that keep everything, in whole tokens of all of them: more prefixes stay.
    auto const grows = [&groups](std::size_t i) {
      return groups[i].kind == group_kind::self && groups[i].keeps.keeps_all();
    };
    std::uint64_t unit = 0;
    auto extra = std::uint64_t{UINT32_MAX};
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (grows(i)) {
        unit = checked_add(unit, layouts_[i].block_bytes().value(), "bytes per block");
        extra = std::min(extra, UINT32_MAX - sequences * per_sequence(groups[i], request_.context).value());
      }
    }
    extra = unit == 0 ? 0 : std::min(extra, left / unit);
    left -= extra * unit;

    capacity_report out{.memory = request_.memory, .weights = request_.weights, .workspace = request_.workspace};
    out.sequences = static_cast<std::uint32_t>(sequences);
    out.state = byte_count{sequences * rank_.unmanaged_state().value()};
    out.unused = byte_count{left};
    auto tokens = std::uint64_t{UINT64_MAX};
    for (std::size_t i = 0; i < groups.size(); ++i) {
      auto const own = per_sequence(groups[i], request_.context);
      auto const blocks = block_count{static_cast<std::uint32_t>(sequences * own.value() + (grows(i) ? extra : 0))};
      layouts_[i].require_addressable(blocks, request_.index);
      out.groups.push_back(
          {.id = groups[i].id, .block_bytes = layouts_[i].block_bytes(), .per_sequence = own, .blocks = blocks});
      out.data += byte_count{layouts_[i].data_bytes().value() * blocks.value()};
      out.scales += byte_count{layouts_[i].scale_bytes().value() * blocks.value()};
      out.padding += byte_count{layouts_[i].padding_bytes().value() * blocks.value()};
      out.tables += byte_count{sequences * table_bytes(own.value())};
      auto const slots = request_.pages.block_tokens.value() - 1;
      out.fragmentation += byte_count{sequences * slots * bytes_per_token(groups[i]).value()};
      if (grows(i)) {
        auto const held = std::uint64_t{blocks.value()} * request_.pages.block_tokens.value();
        tokens = std::min(tokens, held * request_.split.context);
      }
    }
    out.tokens = unit == 0 ? sequences * request_.context.value() : tokens;
    return out;
  }

  [[nodiscard]] static constexpr auto table_bytes(std::uint64_t blocks) noexcept -> std::uint64_t {
    return blocks * sizeof(std::int32_t);
  }

  capacity_request request_;
  model_spec rank_;
  std::vector<cache_layout> layouts_;
};
} // namespace detail
/// \endcond

/// Plans one rank: as many requests of the planned context as fit at their peak, the rest as further blocks
/// of the groups that keep everything.
/// \post (1) the lines add up to `memory`; (2) `sequences` ≥ 1, and one more request does not fit; (3) every
/// group has blocks for all of them; (4) every block is addressable.
/// \throws config_error with the reason, and what would work, if heads, layers or contexts cannot be split, the
/// context exceeds the model or the memory, nothing is left for a cache, or the index type is too narrow.
/// \complexity O(layers + groups · log context) \source B13, S10, S11, S16, S42; cases 97, 98, 100, 115, 116, 120
[[nodiscard]] inline auto plan_capacity(model_spec const& model, capacity_request const& request) -> capacity_report {
  return detail::capacity_planner{model, request}.plan();
}

} // namespace quire
