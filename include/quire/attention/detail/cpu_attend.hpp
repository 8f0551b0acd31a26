// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// One attention computation over one layer, tile by tile.
///
///     per row of the view, per up to 48 queries × heads that share a KV head ("lanes" m = query · group + head):
///         for each tile of keys that any of them sees:
///             s = q · K        scale folded into q            few lanes: over the bytes as stored
///             s = cap(s + …), −∞ where hidden                 many lanes: over rows converted once per tile
///             t = max(m, s)    keep = e^(m − t)    p = e^(s − t)
///             l = keep · l + Σ p    o = keep · o + p · V
///         o / l, lse = m + ln l
///
/// A weight of 0 does not make a value harmless, 0 · NaN is NaN: where some lanes see a key and others do not, values
/// are added lane by lane, each over its own keys. Keys that no lane sees are not touched at all.

#include <quire/attention/attention_params.hpp>
#include <quire/attention/cpu_layer.hpp>
#include <quire/attention/cpu_range.hpp>
#include <quire/attention/cpu_workspace.hpp>
#include <quire/attention/detail/cpu_codec.hpp>
#include <quire/attention/detail/cpu_kernels.hpp>
#include <quire/attention/detail/cpu_simd.hpp>
#include <quire/attention/detail/cpu_source.hpp>
#include <quire/attention/no_bias.hpp>
#include <quire/attention/output_rows.hpp>
#include <quire/attention/partial_attention.hpp>
#include <quire/attention/query_rows.hpp>
#include <quire/core/contract.hpp>
#include <quire/core/types.hpp>
#include <quire/model/attention_rule.hpp>
#include <quire/view/batch_view.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

/// \cond INTERNAL
namespace quire::detail {

/// Positions [begin, end) of keys, in 64 bits: no sum overflows.
struct cpu_interval {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  [[nodiscard]] auto within(cpu_interval other) const noexcept -> cpu_interval {
    return {std::max(begin, other.begin), std::max(std::max(begin, other.begin), std::min(end, other.end))};
  }
};

/// Keys that a query sees: retained sinks, and the rest.
struct cpu_visible {
  cpu_interval sinks = {};
  cpu_interval body = {};

  [[nodiscard]] static auto of(attention_rule const& rule, std::uint32_t query, std::int64_t length) noexcept
      -> cpu_visible {
    auto const at = std::int64_t{query};
    auto const extent = std::int64_t{rule.extent.value()};
    auto const sinks = std::int64_t{rule.sinks.value()};
    switch (rule.pattern) {
    case attention_pattern::cross:
    case attention_pattern::bidirectional: return {.body = {0, length}};
    case attention_pattern::causal: break;
    case attention_pattern::sliding_window:
      return {.sinks = {0, std::min(sinks, at + 1)}, .body = {std::max(sinks, at + 1 - extent), at + 1}};
    case attention_pattern::chunked: return {.body = {at - at % extent, at + 1}};
    }
    return {.body = {0, at + 1}};
  }
};

template <class Bias>
class cpu_attend {
public:
  cpu_attend(cpu_layer const& layer, batch_view const& view, query_rows<float> const& queries,
             output_rows<float> const& out, cpu_range const& range, cpu_workspace& workspace, Bias const& bias)
      : params_{layer.params}, view_{view}, queries_{queries}, out_{out}, range_{range}, workspace_{workspace},
        bias_{bias}, key_{layer.key, layer.params.key_width},
        value_{layer.value ? *layer.value : layer.key, layer.params.value_width}, pool_{layer.key.layout.blocks},
        group_{layer.params.query_heads / layer.params.kv_heads} {}

  void run() {
    auto const rows = std::min(range_.last_row, view_.rows);
    for (auto row = std::max(range_.first_row, 0); row < rows; ++row) { attend_row(row); }
  }

private:
  static constexpr bool biased = !std::same_as<Bias, no_bias>;
  static constexpr std::size_t most = 48; // [lanes] of a block
  static constexpr std::size_t few = 12;  // [lanes] up to which stored rows are read directly
  static_assert(most % cpu_chunk == 0);

  /// One lane: a query of one head.
  struct lane {
    std::uint32_t query = 0;   // position
    std::uint32_t head = 0;    // query head
    std::size_t cell = 0;      // of the result: row of all rows, head
    cpu_interval visible = {}; // of the interval at hand
  };

  void attend_row(std::int32_t row) {
    auto const i = static_cast<std::size_t>(row);
    row_ = row;
    start_ = static_cast<std::size_t>(view_.query_start[i]);
    auto const length = std::int64_t{view_.row_length(row)};
    auto const count = std::int64_t{view_.row_queries(row)};
    auto const cross = params_.rule.pattern == attention_pattern::cross;
    QUIRE_EXPECTS(cross || length >= count);
    QUIRE_EXPECTS(view_.first_position[i] >= 0);
    QUIRE_EXPECTS(view_.first_position[i] % view_.block_tokens == 0);
    first_query_ = static_cast<std::uint32_t>(cross ? 0 : length - count);
    keys_ = cpu_interval{view_.first_position[i], length}.within({range_.keys.begin.value(), range_.keys.end.value()});
    auto const heads = std::min(range_.last_head, params_.kv_heads);
    auto const lanes = static_cast<std::size_t>(count) * group_;
    if (range_.first_head >= heads || lanes == 0) { return; }
    if (lanes <= few) {
      few_lanes(range_.first_head, heads, lanes);
      return;
    }
    for (auto head = range_.first_head; head < heads; ++head) {
      for (std::size_t m = 0; m < lanes; m += most) { many_lanes(head, m, std::min(lanes - m, most)); }
    }
  }

  /// Lane \p i of several heads with \p lanes each.
  [[nodiscard]] auto lane_of(std::uint32_t first_head, std::size_t i, std::size_t lanes) const noexcept -> lane {
    return lane_of(first_head + static_cast<std::uint32_t>(i / lanes), i % lanes);
  }
  [[nodiscard]] auto lane_of(std::uint32_t kv_head, std::size_t m) const noexcept -> lane {
    auto const query = m / group_;
    auto const head = static_cast<std::uint32_t>(std::size_t{kv_head} * group_ + m % group_);
    return {.query = first_query_ + static_cast<std::uint32_t>(query),
            .head = head,
            .cell = (start_ + query) * params_.query_heads + head};
  }

  /// Calls `use(tile)` for the keys that any lane sees, with `visible` of each lane set.
  template <class Use>
  void for_each_tile(std::span<lane> lanes, Use&& use) {
    auto const see = [&](lane const& l) { return cpu_visible::of(params_.rule, l.query, keys_.end); };
    // lanes go up with their queries: the first one reaches back furthest, the last one ends last
    auto const first = see(lanes.front());
    auto const last = see(lanes.back());
    auto const visit = [&](cpu_interval all, auto part) {
      all = all.within(keys_);
      if (all.begin >= all.end) { return; }
      for (auto& l : lanes) { l.visible = part(see(l)).within(keys_); }
      cpu_tile tile;
      for (auto at = all.begin; at < all.end; at += static_cast<std::int64_t>(tile.count)) {
        tile.locate(view_, row_, static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(all.end - at), pool_);
        key_.places(tile, key_at_);
        value_.places(tile, value_at_);
        use(tile);
      }
    };
    visit({first.sinks.begin, last.sinks.end}, [](cpu_visible const& v) { return v.sinks; });
    visit({first.body.begin, last.body.end}, [](cpu_visible const& v) { return v.body; });
  }

  /// Keys of \p tile that \p l sees, counted in the tile.
  struct part_of_tile {
    std::int32_t begin;
    std::int32_t end;
  };
  [[nodiscard]] static auto part(lane const& l, cpu_tile const& tile) noexcept -> part_of_tile {
    auto const first = std::int64_t{tile.first};
    auto const seen = l.visible.within({first, first + static_cast<std::int64_t>(tile.count)});
    return {static_cast<std::int32_t>(seen.begin - first), static_cast<std::int32_t>(seen.end - first)};
  }
  [[nodiscard]] static auto sees_all(lane const& l, cpu_tile const& tile) noexcept -> bool {
    return l.visible.begin <= std::int64_t{tile.first} &&
           l.visible.end >= std::int64_t{tile.first} + static_cast<std::int64_t>(tile.count);
  }

  // --- few lanes -----------------------------------------------------------------------------------------------------

  /// Keys that pass one head before the next one: in most layouts the heads of a token lie side by side, and memory is
  /// fastest in the order in which it lies.
  static constexpr std::size_t group_keys = 8;

  /// All heads side by side, each with few lanes: rows are read as they are stored.
  void few_lanes(std::uint32_t first_head, std::uint32_t last_head, std::size_t lanes) {
    auto const heads = std::size_t{last_head - first_head};
    auto const all = heads * lanes;
    auto const dk = key_.padded();
    auto const dv = value_.padded();
    auto* memory = workspace_.floats(all * (dk + dv + cpu_tile_keys + 3) + cpu_tile_keys * (dk + dv));
    auto const take = [&memory](std::size_t count) {
      auto* const out = memory;
      memory += count;
      return out;
    };
    auto const query = cpu_rows{take(all * dk), dk};
    auto const output = cpu_rows{take(all * dv), dv};
    scores_ = {take(all * cpu_tile_keys), cpu_tile_keys};
    keys_as_floats_ = {take(cpu_tile_keys * dk), dk};
    values_as_floats_ = {take(cpu_tile_keys * dv), dv};
    auto* const top = take(all);
    auto* const sum = take(all);
    auto* const keep = take(all);

    with_key_order([&]<class Order>(Order) {
      for (std::size_t i = 0; i < all; ++i) { place_query<Order>(lane_of(first_head, i, lanes), query.row(i)); }
    });
    std::fill_n(output.data, all * dv, 0.0F);
    std::fill_n(top, all, -cpu_infinity);
    std::fill_n(sum, all, 0.0F);

    std::array<lane, few> group; // of the first head
    for (std::size_t m = 0; m < lanes; ++m) { group[m] = lane_of(first_head, m); }
    for_each_tile({group.data(), lanes}, [&](cpu_tile const& tile) {
      each_head(key_, tile, key_at_, {first_head, last_head}, keys_as_floats_,
                [&]<class Codec>(Codec, std::size_t head, std::size_t first, cpu_stored_rows keys) {
                  auto const scores = cpu_rows{scores_.data + first, scores_.stride};
                  cpu_in_blocks(lanes, [&](auto width, std::size_t m) {
                    cpu_dots<Codec, width>(query, head * lanes + m, keys, scores);
                  });
                });
      for (std::size_t h = 0; h < heads; ++h) {
        soften_head(tile, first_head + static_cast<std::uint32_t>(h), {group.data(), lanes}, h * lanes, top, sum, keep);
      }
      for (std::size_t i = 0; i < all; ++i) { // seldom: the highest score is soon found
        if (keep[i] != 1.0F) { scale_row(output.row(i), dv, keep[i]); }
      }
      auto const seen_by_all = [&](lane const& l) { return sees_all(l, tile); };
      if (!biased && std::all_of(group.data(), group.data() + lanes, seen_by_all)) {
        each_head(value_, tile, value_at_, {first_head, last_head}, values_as_floats_,
                  [&]<class Codec>(Codec, std::size_t head, std::size_t first, cpu_stored_rows values) {
                    cpu_in_blocks(lanes, [&](auto width, std::size_t m) {
                      auto const at = head * lanes + m;
                      cpu_accumulate<Codec, width>({scores_.row(at) + first, scores_.stride}, {output.row(at), dv},
                                                   values);
                    });
                  });
        return;
      }
      for (std::size_t h = 0; h < heads; ++h) {
        with_rows(value_, tile, value_at_, first_head + static_cast<std::uint32_t>(h), values_as_floats_,
                  [&]<class Codec>(Codec, cpu_stored_rows values) {
                    for (std::size_t m = 0; m < lanes; ++m) {
                      auto const at = h * lanes + m;
                      add_seen<Codec>(scores_.row(at), 1, part(group[m], tile), values, output.row(at));
                    }
                  });
      }
    });
    with_value_order([&]<class Order>(Order) {
      for (std::size_t i = 0; i < all; ++i) {
        finish<Order>(lane_of(first_head, i, lanes), output.row(i), top[i], sum[i]);
      }
    });
  }

  /// Scores of one head into weights. \param at number of its first lane among those of all heads
  void soften_head(cpu_tile const& tile, std::uint32_t head, std::span<lane const> lanes, std::size_t at, float* top,
                   float* sum, float* keep) {
    std::array<float, cpu_tile_keys> key_scale;
    std::array<float, cpu_tile_keys> value_scale;
    if (key_.has_row_scales()) { key_.row_scales(tile, head, key_scale.data()); }
    if (value_.has_row_scales()) { value_.row_scales(tile, head, value_scale.data()); }
    for (std::size_t m = 0; m < lanes.size(); ++m) {
      auto l = lanes[m];
      l.head = head * group_ + l.head % group_;
      keep[at + m] = soften(l, tile, scores_.row(at + m), key_.has_row_scales() ? key_scale.data() : nullptr,
                            value_.has_row_scales() ? value_scale.data() : nullptr, top[at + m], sum[at + m]);
    }
  }

  /// Calls `use(codec, head counted from the first, first key, rows)` until every row of every head has passed once.
  template <class Use>
  void each_head(cpu_source const& source, cpu_tile const& tile, cpu_places const& at, cpu_head_range heads,
                 cpu_rows converted, Use&& use) {
    if (!source.direct()) {
      for (auto h = heads.first; h < heads.last; ++h) {
        with_rows(source, tile, at, h, converted,
                  [&](auto codec, cpu_stored_rows rows) { use(codec, std::size_t{h - heads.first}, 0, rows); });
      }
      return;
    }
    with_cpu_codec(source.type(), [&](auto codec) {
      for (std::size_t k = 0; k < tile.count; k += group_keys) {
        auto const count = std::min(group_keys, tile.count - k);
        for (auto h = heads.first; h < heads.last; ++h) {
          source.ask_ahead(at, k, group_keys, h - heads.first, heads);
          use(codec, std::size_t{h - heads.first}, k, source.rows(at, tile.count, h).part(k, count));
        }
      }
    });
  }
  /// Calls `use(codec, rows)` with all rows of one head as stored, or converted to floats.
  template <class Use>
  void with_rows(cpu_source const& source, cpu_tile const& tile, cpu_places const& at, std::uint32_t head,
                 cpu_rows converted, Use&& use) {
    if (source.direct()) {
      with_cpu_codec(source.type(), [&](auto codec) { use(codec, source.rows(at, tile.count, head)); });
      return;
    }
    source.convert(tile, at, head, converted);
    use(cpu_f32_codec{}, as_stored(converted, tile.count, source.padded()));
  }
  /// Converted rows as rows of a plane of floats.
  [[nodiscard]] auto as_stored(cpu_rows rows, std::size_t count, std::size_t width) noexcept -> cpu_stored_rows {
    for (std::size_t k = 0; k < count; ++k) { converted_at_[k] = k * rows.stride * sizeof(float); }
    return {reinterpret_cast<std::byte const*>(rows.data), converted_at_.data(), count, width / cpu_chunk};
  }
  static void scale_row(float* row, std::size_t width, float factor) noexcept {
    for (std::size_t d = 0; d < width; d += cpu_lanes) { cpu_store(row + d, cpu_load(row + d) * factor); }
  }

  /// Turns the scores of one lane into weights. \returns what to keep of the output so far
  [[nodiscard]] auto soften(lane const& l, cpu_tile const& tile, float* scores, float const* key_scale,
                            float const* value_scale, float& top, float& sum) const -> float {
    auto const seen = part(l, tile);
    if (seen.begin >= seen.end) {
      std::fill_n(scores, tile.count, 0.0F);
      return 1.0F;
    }
    if constexpr (biased) { add_bias(l, tile, scores, 1, seen, key_scale); }
    auto const slope = params_.rule.alibi ? static_cast<float>(params_.alibi_slopes[l.head]) : 0.0F;
    auto const from_query = static_cast<std::int32_t>(std::int64_t{tile.first} - l.query);
    auto best = cpu_splat(top);
    if (!biased && key_scale == nullptr && unshaped() && sees_all(l, tile) && tile.count % cpu_lanes == 0) {
      for (std::size_t k = 0; k < tile.count; k += cpu_lanes) { best = cpu_max(best, cpu_load(scores + k)); }
    } else {
      for (std::size_t k = 0; k < tile.count; k += cpu_lanes) { // the last vector may end behind the tile: hidden
        auto const index = cpu_iota() + static_cast<std::int32_t>(k);
        auto s = cpu_load(scores + k);
        if (!biased && key_scale != nullptr) { s *= cpu_load(key_scale + k); }
        s = shape(s, slope, __builtin_convertvector(index + from_query, cpu_f32));
        s = ((index >= seen.begin) & (index < seen.end)) ? s : cpu_splat(-cpu_infinity);
        best = cpu_max(best, s);
        cpu_store(scores + k, s);
      }
    }
    auto const highest = cpu_top(best);
    auto const base = highest == -cpu_infinity ? 0.0F : highest; // biases may hide everything
    auto const keep = top == highest ? 1.0F : cpu_exp(cpu_splat(top - base))[0];
    auto total = cpu_f32{};
    for (std::size_t k = 0; k < tile.count; k += cpu_lanes) {
      auto const p = cpu_exp(cpu_load(scores + k) - base);
      total += p;
      cpu_store(scores + k, value_scale == nullptr ? p : p * cpu_load(value_scale + k));
    }
    sum = sum * keep + cpu_sum(total);
    top = highest;
    return keep;
  }

  // --- many lanes ----------------------------------------------------------------------------------------------------

  /// Up to 48 lanes of one head: rows are converted once per tile, products are products of matrices.
  void many_lanes(std::uint32_t kv_head, std::size_t first, std::size_t count) {
    auto const dk = key_.padded();
    auto const dv = value_.padded();
    auto const width = cpu_padded(count);
    auto* memory = workspace_.floats(dk * width + count * dv + cpu_tile_keys * (width + dk + dv));
    auto const take = [&memory](std::size_t floats) {
      auto* const out = memory;
      memory += floats;
      return out;
    };
    auto const query = cpu_rows{take(dk * width), width}; // transposed
    auto const output = cpu_rows{take(count * dv), dv};
    scores_ = {take(cpu_tile_keys * width), width}; // transposed
    keys_as_floats_ = {take(cpu_tile_keys * dk), dk};
    values_as_floats_ = {take(cpu_tile_keys * dv), dv};
    std::fill_n(output.data, count * dv, 0.0F);

    std::array<lane, most> lanes;
    lane_state state;
    for (std::size_t m = 0; m < width; ++m) {
      if (m < count) { lanes[m] = lane_of(kv_head, first + m); }
      state.top[m] = -cpu_infinity;
      state.sum[m] = 0.0F;
      state.slope[m] = m < count && params_.rule.alibi ? static_cast<float>(params_.alibi_slopes[lanes[m].head]) : 0.0F;
      for (std::size_t d = 0; d < params_.key_width; ++d) { query.row(d)[m] = m < count ? scaled(lanes[m], d) : 0.0F; }
    }

    for_each_tile({lanes.data(), count}, [&](cpu_tile const& tile) {
      key_.convert(tile, key_at_, kv_head, keys_as_floats_);
      cpu_multiply({keys_as_floats_.data, dk, 1}, query, scores_, tile.count, params_.key_width, width, nullptr);
      auto const whole = std::all_of(lanes.begin(), lanes.begin() + static_cast<std::ptrdiff_t>(count),
                                     [&](lane const& l) { return sees_all(l, tile); });
      soften_all({lanes.data(), count}, tile, state, width, whole);
      value_.convert(tile, value_at_, kv_head, values_as_floats_);
      if ((whole && !biased) || finite(values_as_floats_, tile.count, dv)) {
        cpu_multiply({scores_.data, 1, width}, values_as_floats_, output, count, tile.count, dv, state.keep.data());
        return;
      }
      auto const values = as_stored(values_as_floats_, tile.count, dv);
      for (std::size_t m = 0; m < count; ++m) {
        scale_row(output.row(m), dv, state.keep[m]);
        add_seen<cpu_f32_codec>(scores_.data + m, width, part(lanes[m], tile), values, output.row(m));
      }
    });
    for (std::size_t m = 0; m < count; ++m) {
      finish<cpu_plain_order>(lanes[m], output.row(m), state.top[m], state.sum[m]);
    }
  }

  struct lane_state {
    std::array<float, most> top;
    std::array<float, most> sum;
    std::array<float, most> keep;
    std::array<float, most> slope;
    std::array<std::int32_t, most> begin;
    std::array<std::int32_t, most> end;
    std::array<std::int32_t, most> from_query;
  };

  /// Turns scores, keys down and lanes across, into weights.
  void soften_all(std::span<lane> lanes, cpu_tile const& tile, lane_state& state, std::size_t width, bool whole) {
    for (std::size_t m = 0; m < width; ++m) {
      auto const seen = m < lanes.size() ? part(lanes[m], tile) : part_of_tile{0, 0};
      state.begin[m] = seen.begin;
      state.end[m] = seen.end;
      state.from_query[m] = m < lanes.size() ? static_cast<std::int32_t>(std::int64_t{tile.first} - lanes[m].query) : 0;
      if constexpr (biased) {
        if (m < lanes.size()) { add_bias(lanes[m], tile, scores_.data + m, width, seen, nullptr); }
      }
    }
    for (std::size_t m = 0; m < width; m += cpu_lanes) {
      auto const begin = cpu_load<cpu_i32>(&state.begin[m]);
      auto const end = cpu_load<cpu_i32>(&state.end[m]);
      auto const from_query = cpu_load<cpu_i32>(&state.from_query[m]);
      auto const slope = cpu_load(&state.slope[m]);
      auto const old = cpu_load(&state.top[m]);
      auto top = old;
      if (whole && unshaped()) {
        for (std::size_t k = 0; k < tile.count; ++k) { top = cpu_max(top, cpu_load(scores_.row(k) + m)); }
      } else {
        for (std::size_t k = 0; k < tile.count; ++k) {
          auto* const at = scores_.row(k) + m;
          auto const index = cpu_splat(static_cast<std::int32_t>(k));
          auto s = shape(cpu_load(at), slope, __builtin_convertvector(from_query + index, cpu_f32));
          if (!whole) { s = ((begin <= index) & (end > index)) ? s : cpu_splat(-cpu_infinity); }
          top = cpu_max(top, s);
          cpu_store(at, s);
        }
      }
      auto const base = top == -cpu_infinity ? cpu_f32{} : top;
      auto const keep = top == old ? cpu_splat(1.0F) : cpu_exp(old - base);
      auto total = cpu_f32{};
      for (std::size_t k = 0; k < tile.count; ++k) {
        auto* const at = scores_.row(k) + m;
        auto const p = cpu_exp(cpu_load(at) - base);
        total += p;
        cpu_store(at, p);
      }
      cpu_store(&state.keep[m], keep);
      cpu_store(&state.sum[m], cpu_load(&state.sum[m]) * keep + total);
      cpu_store(&state.top[m], top);
    }
  }

  [[nodiscard]] static auto finite(cpu_rows values, std::size_t count, std::size_t width) noexcept -> bool {
    auto zero = cpu_f32{}; // NaN as soon as one value is no number
    for (std::size_t k = 0; k < count; ++k) {
      for (std::size_t d = 0; d < width; d += cpu_lanes) { zero += cpu_load(values.row(k) + d) * 0.0F; }
    }
    return cpu_sum(zero) == 0.0F;
  }

  // --- both ----------------------------------------------------------------------------------------------------------

  /// True if scores stay as they are.
  [[nodiscard]] auto unshaped() const noexcept -> bool {
    return !params_.rule.alibi && !(params_.rule.soft_cap > 0.0F);
  }
  /// ALiBi and soft-cap. \param distance key − query
  [[nodiscard]] auto shape(cpu_f32 s, auto slope, cpu_f32 distance) const noexcept -> cpu_f32 {
    if (params_.rule.alibi) { s += slope * distance; }
    auto const cap = params_.rule.soft_cap;
    return cap > 0.0F ? cpu_tanh(s * (1.0F / cap)) * cap : s;
  }
  /// Adds the caller's bias to the scores that a lane sees, scales of the keys first.
  void add_bias(lane const& l, cpu_tile const& tile, float* scores, std::size_t stride, part_of_tile seen,
                float const* key_scale) const {
    for (auto k = static_cast<std::size_t>(seen.begin); k < static_cast<std::size_t>(seen.end); ++k) {
      if (key_scale != nullptr) { scores[k * stride] *= key_scale[k]; }
      auto const at = token_pos{tile.first + static_cast<std::uint32_t>(k)};
      scores[k * stride] += static_cast<float>(bias_({.query = token_pos{l.query}, .key = at, .head = l.head}));
    }
  }
  /// Adds the values that one lane sees, and no others. \param weight \p stride floats apart
  template <class Codec>
  static void add_seen(float const* weight, std::size_t stride, part_of_tile seen, cpu_stored_rows values,
                       float* output) noexcept {
    std::array<float, cpu_tile_keys> weights;
    std::array<std::uint64_t, cpu_tile_keys> at;
    std::size_t count = 0;
    for (auto k = static_cast<std::size_t>(seen.begin); k < static_cast<std::size_t>(seen.end); ++k) {
      if (weight[k * stride] == 0.0F) { continue; } // a bias of −∞ hides too
      weights[count] = weight[k * stride];
      at[count++] = values.at[k];
    }
    cpu_accumulate<Codec, 1>({weights.data(), 0}, {output, 0}, {values.base, at.data(), count, values.chunks});
  }

  [[nodiscard]] auto scaled(lane const& l, std::size_t d) const noexcept -> float {
    auto const scale = static_cast<float>(params_.scale * static_cast<double>(key_.fixed_scale()));
    return queries_.query[l.cell * params_.key_width + d] * scale;
  }
  template <class Order>
  // NOLINTNEXTLINE(readability-non-const-parameter): written through an index that depends on Order
  void place_query(lane const& l, float* to) const noexcept {
    for (std::size_t d = 0; d < key_.padded(); ++d) {
      to[Order::place(d)] = d < params_.key_width ? scaled(l, d) : 0.0F;
    }
  }
  template <class Use>
  void with_key_order(Use&& use) const {
    key_.direct() ? with_cpu_codec(key_.type(), use) : use(cpu_f32_codec{});
  }
  template <class Use>
  void with_value_order(Use&& use) const {
    value_.direct() ? with_cpu_codec(value_.type(), use) : use(cpu_f32_codec{});
  }
  template <class Order>
  void finish(lane const& l, float const* output, float top, float sum) const {
    auto const width = std::size_t{params_.value_width};
    auto const target = out_.output.subspan(l.cell * width, width);
    auto const nothing = sum == 0.0F; // a score of NaN makes it NaN
    auto const factor = nothing ? 0.0F : value_.fixed_scale() / sum;
    for (std::size_t d = 0; d < width; ++d) { target[d] = nothing ? 0.0F : output[Order::place(d)] * factor; }
    auto const lse = nothing ? -cpu_infinity : top + std::log(sum);
    if (params_.rule.learned_sink && !range_.partial()) {
      apply_sink(target, lse, static_cast<float>(params_.sink_logits[l.head]));
    }
    if (!out_.lse.empty()) { out_.lse[l.cell] = lse; }
  }

  attention_params const& params_;
  batch_view const& view_;
  query_rows<float> const& queries_;
  output_rows<float> const& out_;
  cpu_range const& range_;
  cpu_workspace& workspace_;
  Bias const& bias_;
  cpu_source key_;
  cpu_source value_;
  std::uint32_t pool_;
  std::uint32_t group_;
  std::int32_t row_ = 0;
  std::size_t start_ = 0;
  std::uint32_t first_query_ = 0;
  cpu_interval keys_ = {};
  cpu_places key_at_;
  cpu_places value_at_;
  cpu_places converted_at_;
  cpu_rows scores_ = {};
  cpu_rows keys_as_floats_ = {};
  cpu_rows values_as_floats_ = {};
};

} // namespace quire::detail
/// \endcond
