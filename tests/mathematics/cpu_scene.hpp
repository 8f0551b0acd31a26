// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A layer in memory full of NaN, filled through the CPU backend, and the oracle's answer for the same bytes with a bound
/// on what accumulation in f32 may change.
///
/// The bound, per row and head, with u = 2^-24, n visible keys, and s the scores:
///     E    = u · max_j ((d_k + 8) · scale · Σ|q_d k_jd| + 8 |ALiBi term| + 8 |s_j| + 16 cap)      of a score
///     rho  = E + u · (n + 2 · (max s − min s) + 64)                                 of a weight, relative
///     |o − o'| ≤ 4 · rho · max|v|       |lse − lse'| ≤ 2 · rho + 4u · |lse|

#include <quire/attention/attention_extent.hpp>
#include <quire/attention/cpu_backend.hpp>
#include <quire/attention/element_codec.hpp>
#include <quire/attention/no_bias.hpp>
#include <quire/attention/oracle_attention.hpp>
#include <quire/attention/strided_tensor.hpp>
#include <quire/model/element_format.hpp>
#include <quire/view/host_executor.hpp>
#include <quire/view/plane_layout.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace quire_test {

/// The orders in which a plane may lie.
enum class cpu_order : std::uint8_t { nhd, hnd, split, transposed };

/// One row of a step.
struct cpu_row {
  std::uint32_t cached = 0;   ///< [tokens] L
  std::uint32_t appended = 1; ///< [tokens] q
};

/// What a scene is made of.
struct cpu_shape {
  quire::attention_params params = {};
  quire::element_format key_format = {};
  quire::element_format value_format = {};
  std::uint32_t block_tokens = 16;
  std::vector<cpu_row> rows = {};
  cpu_order order = cpu_order::nhd;
  bool latent = false;         ///< No value plane.
  bool drop_invisible = false; ///< Blocks before the window have left the table.
  std::uint32_t spare_blocks = 3;
  std::uint64_t seed = 1;
};

/// Random floats in (−1, 1).
[[nodiscard]] inline auto random_floats(std::mt19937_64& random, std::size_t count) -> std::vector<float> {
  std::vector<float> out(count);
  for (auto& value : out) {
    value = static_cast<float>(static_cast<std::int64_t>(random() >> 40U) - (1 << 23)) * 0x1p-23F;
  }
  return out;
}

/// One layer, its memory and one step.
class cpu_scene {
public:
  explicit cpu_scene(cpu_shape shape) : shape_{std::move(shape)}, random_{shape_.seed} {
    auto blocks = shape_.spare_blocks;
    for (auto const& row : shape_.rows) { blocks += blocks_of(row); }
    auto const& p = shape_.params;
    key_ = plane(quire::layout_role::key, p.kv_heads, p.key_width, shape_.key_format, blocks);
    if (!shape_.latent) {
      value_ = plane(quire::layout_role::value, p.kv_heads, p.value_width, shape_.value_format, blocks);
    }
    make_tables(blocks);
    backend_.emplace_back(layers());
    fill();
  }
  cpu_scene(cpu_scene const&) = delete;
  auto operator=(cpu_scene const&) -> cpu_scene& = delete;

  [[nodiscard]] auto shape() const -> cpu_shape const& { return shape_; }
  [[nodiscard]] auto backend() -> quire::cpu_backend& { return backend_.front(); }
  [[nodiscard]] auto key() const -> quire::cpu_plane const& { return key_; }
  [[nodiscard]] auto value() const -> quire::cpu_plane const& { return shape_.latent ? key_ : *value_; }
  [[nodiscard]] auto query() const -> std::vector<float> const& { return query_; }
  /// New keys and values of the step at hand, as they were given to the backend.
  [[nodiscard]] auto new_key(std::size_t row) const -> std::vector<float> const& { return new_key_[row]; }
  [[nodiscard]] auto cells() const -> std::size_t {
    return static_cast<std::size_t>(start_.back()) * shape_.params.query_heads;
  }

  [[nodiscard]] auto view() const -> quire::batch_view {
    return {.rows = static_cast<std::int32_t>(shape_.rows.size()),
            .max_blocks = columns_,
            .block_tokens = static_cast<std::int32_t>(shape_.block_tokens),
            .block_table = table_,
            .first_position = first_,
            .length = length_,
            .query_start = start_,
            .slot = slot_,
            .position = position_};
  }
  [[nodiscard]] auto layers() const -> std::vector<quire::cpu_layer> {
    return {{.params = shape_.params, .group = quire::group_id{0}, .key = key_, .value = value_}};
  }

  /// The fast result.
  struct result {
    std::vector<float> output;
    std::vector<float> lse;
    friend auto operator==(result const&, result const&) -> bool = default;
  };
  [[nodiscard]] auto empty_result() const -> result {
    auto const nan = std::numeric_limits<float>::quiet_NaN();
    return {std::vector<float>(cells() * shape_.params.value_width, nan), std::vector<float>(cells(), nan)};
  }
  template <class Bias = quire::no_bias>
  [[nodiscard]] auto attend(quire::cpu_range const& range = {}, Bias const& bias = {}) -> result {
    auto out = empty_result();
    attend_into(out, range, bias);
    return out;
  }
  template <class Bias = quire::no_bias>
  void attend_into(result& out, quire::cpu_range const& range, Bias const& bias = {}) {
    quire::cpu_workspace workspace;
    static_cast<void>(backend().attend(quire::layer_id{0}, view(), {.query = query_},
                                       {.output = out.output, .lse = out.lse}, range, workspace, bias));
  }

  /// Oracle and bound of one cell of the result.
  struct expected_cell {
    std::vector<double> output;
    double lse = 0;
    double output_bound = 0;
    double lse_bound = 0;
  };
  /// The oracle over the stored bytes. \param keys of which positions \param sinks whether learned sinks join
  template <class Bias = quire::no_bias>
  [[nodiscard]] auto expect(Bias const& bias = {}, quire::cpu_range const& range = {}) const
      -> std::vector<expected_cell> {
    auto const& p = shape_.params;
    std::vector<expected_cell> out;
    for (std::size_t r = 0; r < shape_.rows.size(); ++r) {
      auto const& row = shape_.rows[r];
      auto const length = row.cached + row.appended;
      auto const cross = p.rule.pattern == quire::attention_pattern::cross;
      auto const begin = std::max(static_cast<std::uint32_t>(first_[r]), range.keys.begin.value());
      auto const end = std::max(begin, std::min(length, range.keys.end.value()));
      auto const extent =
          quire::attention_extent{.first_query = quire::token_pos{cross ? 0U : row.cached},
                                  .queries = quire::token_count{row.appended},
                                  .keys = {.begin = quire::token_pos{begin}, .end = quire::token_pos{end}}};
      auto const key = [&](quire::tensor_place const& at) { return stored(key_, static_cast<std::int32_t>(r), at); };
      auto const value = [&](quire::tensor_place const& at) {
        return stored(this->value(), static_cast<std::int32_t>(r), at);
      };
      auto const start = static_cast<std::size_t>(start_[r]) * p.query_heads * p.key_width;
      auto const query = quire::strided_tensor<float>::packed(std::span{query_}.subspan(start),
                                                              {.heads = p.query_heads, .width = p.key_width});
      auto answer = quire::oracle_partial(p, extent, query, key, value, bias);
      if (!range.partial()) { quire::apply_sinks(answer, p); }
      for (std::uint32_t q = 0; q < row.appended; ++q) {
        for (std::uint32_t h = 0; h < p.query_heads; ++h) {
          auto const at = quire::tensor_place{.token = q, .head = h};
          auto cell = expected_cell{.output = answer.part(at).output, .lse = answer.lse_at(at)};
          bound(cell, extent, at, query, key, value, bias);
          out.push_back(std::move(cell));
        }
      }
    }
    return out;
  }
  /// First cell in which \p got is not within its bound; empty if there is none.
  [[nodiscard]] auto compare(result const& got, std::vector<expected_cell> const& want) const -> std::string {
    auto const width = shape_.params.value_width;
    for (std::size_t c = 0; c < want.size(); ++c) {
      auto const& cell = want[c];
      auto const lse = static_cast<double>(got.lse[c]);
      auto const infinite = std::isinf(cell.lse);
      if (infinite ? lse != cell.lse : !(std::fabs(lse - cell.lse) <= cell.lse_bound)) {
        return "cell " + std::to_string(c) + ": lse " + std::to_string(lse) + " instead of " +
               std::to_string(cell.lse) + " ± " + std::to_string(cell.lse_bound);
      }
      for (std::size_t d = 0; d < width; ++d) {
        auto const value = static_cast<double>(got.output[c * width + d]);
        if (!(std::fabs(value - cell.output[d]) <= cell.output_bound)) {
          return "cell " + std::to_string(c) + ", dim " + std::to_string(d) + ": " + std::to_string(value) +
                 " instead of " + std::to_string(cell.output[d]) + " ± " + std::to_string(cell.output_bound);
        }
      }
    }
    return {};
  }
  /// Both in one.
  [[nodiscard]] auto difference() -> std::string { return compare(attend(), expect()); }

  /// The stored element, read by the reference codec.
  [[nodiscard]] auto stored(quire::cpu_plane const& plane, std::int32_t row, quire::tensor_place const& at) const
      -> double {
    auto const place = view().locate(row, quire::token_pos{at.token});
    auto const where = quire::layout_place{.block = place.block, .token = place.offset, .head = at.head, .dim = at.dim};
    return quire::load_element(plane.format.type, plane.tensor, plane.layout.offset(where)) * scale(plane, where);
  }
  /// Spoils or sets the element of one logical position.
  void set(quire::cpu_plane const& plane, std::int32_t row, quire::tensor_place const& at, double value) {
    auto const place = view().locate(row, quire::token_pos{at.token});
    auto const where = quire::layout_place{.block = place.block, .token = place.offset, .head = at.head, .dim = at.dim};
    quire::store_element(plane.format.type, plane.tensor, plane.layout.offset(where), value);
  }
  [[nodiscard]] auto tensors() -> std::deque<std::vector<std::byte>>& { return memory_; }
  [[nodiscard]] auto table() -> std::vector<std::int32_t>& { return table_; }

private:
  [[nodiscard]] auto blocks_of(cpu_row const& row) const -> std::uint32_t {
    return (row.cached + row.appended + shape_.block_tokens - 1) / shape_.block_tokens;
  }
  [[nodiscard]] auto plane(quire::layout_role role, std::uint32_t heads, std::uint32_t width,
                           quire::element_format const& format, std::uint32_t blocks) -> quire::cpu_plane {
    auto const of = quire::layout_shape{.role = role,
                                        .blocks = quire::block_count{blocks},
                                        .block_tokens = quire::token_count{shape_.block_tokens},
                                        .heads = heads,
                                        .dim = width,
                                        .element_bits = quire::bits_of(format.type)};
    auto out = quire::cpu_plane{.format = format};
    switch (shape_.order) {
    case cpu_order::nhd: out.layout = quire::plane_layout::nhd(of); break;
    case cpu_order::hnd: out.layout = quire::plane_layout::hnd(of); break;
    case cpu_order::split: out.layout = quire::plane_layout::split(of, width % 4 == 0 ? 4 : 1); break;
    case cpu_order::transposed: out.layout = quire::plane_layout::transposed(of); break;
    }
    if (format.scales.granularity == quire::scale_granularity::tensor) { out.scale = 0.0123F; }
    out.tensor = memory((out.layout.last_offset() + 1) * quire::bits_of(format.type) / 8);
    if (out.scales_per_row() > 0) {
      out.scale_layout = quire::cpu_plane::scales_for(out.layout, format);
      out.scale_tensor = memory((out.scale_layout.last_offset() + 1) * 4);
    }
    return out;
  }
  [[nodiscard]] auto memory(std::size_t bytes) -> std::span<std::byte> {
    memory_.emplace_back(bytes, quire::nan_poison);
    return memory_.back();
  }
  void make_tables(std::uint32_t blocks) {
    std::vector<std::int32_t> free(blocks);
    for (std::size_t b = 0; b < free.size(); ++b) { free[b] = static_cast<std::int32_t>(b); }
    std::shuffle(free.begin(), free.end(), random_);
    for (auto const& row : shape_.rows) {
      columns_ = std::max(columns_, static_cast<std::int32_t>(blocks_of(row)) + 1);
    }
    for (auto const& row : shape_.rows) {
      auto const length = row.cached + row.appended;
      for (std::int32_t column = 0; column < columns_; ++column) {
        auto const used = column < static_cast<std::int32_t>(blocks_of(row));
        table_.push_back(used ? free.back() : -1);
        if (used) { free.pop_back(); }
      }
      first_.push_back(0);
      length_.push_back(static_cast<std::int32_t>(length));
      start_.push_back(start_.back() + static_cast<std::int32_t>(row.appended));
    }
    slots(false);
  }
  /// Slots of the step, or of all positions.
  void slots(bool all) {
    slot_.clear();
    position_.clear();
    for (std::size_t r = 0; r < shape_.rows.size(); ++r) {
      auto const& row = shape_.rows[r];
      for (auto t = all ? 0U : row.cached; t < row.cached + row.appended; ++t) {
        auto const block = table_[r * static_cast<std::size_t>(columns_) + t / shape_.block_tokens];
        slot_.push_back(std::int64_t{block} * shape_.block_tokens + t % shape_.block_tokens);
        position_.push_back(static_cast<std::int32_t>(t));
      }
    }
  }
  /// Writes every position through the backend, as one long append.
  void fill() {
    auto const& p = shape_.params;
    slots(true);
    auto step = view();
    std::vector<float> keys;
    std::vector<float> values;
    for (auto const& row : shape_.rows) {
      auto const tokens = row.cached + row.appended;
      new_key_.push_back(random_floats(random_, std::size_t{tokens} * p.kv_heads * p.key_width));
      keys.insert(keys.end(), new_key_.back().begin(), new_key_.back().end());
      auto const more = random_floats(random_, shape_.latent ? 0 : std::size_t{tokens} * p.kv_heads * p.value_width);
      values.insert(values.end(), more.begin(), more.end());
    }
    static_cast<void>(backend().write(quire::layer_id{0}, step, {.key = keys, .value = values}));
    slots(false);
    query_ = random_floats(random_, cells() * p.key_width);
    for (auto& q : query_) { q *= 3.0F; }
    if (shape_.drop_invisible) { drop(); }
  }
  /// Takes blocks that no query of the step sees out of the table, and poisons them.
  void drop() {
    auto const unit = shape_.block_tokens;
    for (std::size_t r = 0; r < shape_.rows.size(); ++r) {
      auto const& row = shape_.rows[r];
      for (std::uint32_t b = 0; b < blocks_of(row); ++b) {
        auto seen = false;
        for (auto t = b * unit; t < std::min((b + 1) * unit, row.cached + row.appended); ++t) {
          for (auto q = row.cached; q < row.cached + row.appended; ++q) {
            seen = seen || shape_.params.rule.visible(quire::token_pos{q}, quire::token_pos{t});
          }
        }
        if (seen) { continue; }
        auto& cell = table_[r * static_cast<std::size_t>(columns_) + b];
        auto const scrub = quire::action{.kind = quire::action_kind::scrub,
                                         .group = quire::group_id{0},
                                         .target = quire::block_id{static_cast<std::uint32_t>(cell)}};
        auto poisoner = quire::cpu_backend{layers(), quire::nan_poison};
        static_cast<void>(poisoner.run({&scrub, 1}));
        cell = -1;
      }
    }
  }
  [[nodiscard]] static auto scale(quire::cpu_plane const& plane, quire::layout_place at) -> double {
    auto const count = plane.scales_per_row();
    if (count == 0) { return static_cast<double>(plane.scale); }
    at.dim = at.dim / (plane.layout.dim / count);
    return quire::load_element(quire::dtype::f32, plane.scale_tensor, plane.scale_layout.offset(at));
  }
  template <class Query, class Key, class Value, class Bias>
  void bound(expected_cell& cell, quire::attention_extent const& extent, quire::tensor_place const& at,
             Query const& query, Key const& key, Value const& value, Bias const& bias) const {
    auto const& p = shape_.params;
    constexpr auto u = 0x1p-24;
    auto const asking = extent.query_position(quire::token_count{at.token});
    auto const g = p.kv_head_of(at.head);
    auto score_error = 0.0;
    auto most = 0.0;
    auto n = 0.0;
    auto low = std::numeric_limits<double>::infinity();
    auto high = -low;
    for (auto j = extent.keys.begin.value(); j < extent.keys.end.value(); ++j) {
      if (!p.rule.visible(asking, quire::token_pos{j})) { continue; }
      auto sum = 0.0;
      auto sizes = 0.0;
      for (std::uint32_t d = 0; d < p.key_width; ++d) {
        auto const q = static_cast<double>(query({.token = at.token, .head = at.head, .dim = d}));
        auto const k = key({.token = j, .head = g, .dim = d});
        sum += q * k;
        sizes += std::fabs(q * k);
      }
      auto const alibi =
          p.rule.alibi ? std::fabs(p.alibi_slopes[at.head] * (static_cast<double>(j) - asking.value())) : 0.0;
      auto const extra = bias({.query = asking, .key = quire::token_pos{j}, .head = at.head});
      if (std::isinf(extra)) { continue; }
      auto const cap = static_cast<double>(p.rule.soft_cap);
      auto const score =
          cap > 0.0 ? cap * std::tanh((sum * p.scale - alibi + extra) / cap) : sum * p.scale - alibi + extra;
      score_error =
          std::max(score_error, u * ((p.key_width + 8.0) * p.scale * sizes + 8.0 * (alibi + std::fabs(extra)) +
                                     8.0 * std::fabs(sum * p.scale) + 16.0 * cap));
      low = std::min(low, score);
      high = std::max(high, score);
      n += 1.0;
      for (std::uint32_t d = 0; d < p.value_width; ++d) {
        most = std::max(most, std::fabs(value({.token = j, .head = g, .dim = d})));
      }
    }
    auto const rho = n == 0.0 ? 0.0 : score_error + u * (n + 2.0 * (high - low) + 64.0);
    cell.output_bound = 4.0 * rho * most;
    cell.lse_bound = 2.0 * rho + 4.0 * u * (std::isinf(cell.lse) ? 0.0 : std::fabs(cell.lse));
  }

  cpu_shape shape_;
  std::mt19937_64 random_;
  std::deque<std::vector<std::byte>> memory_ = {};
  quire::cpu_plane key_ = {};
  std::optional<quire::cpu_plane> value_ = {};
  std::int32_t columns_ = 0;
  std::vector<std::int32_t> table_ = {};
  std::vector<std::int32_t> first_ = {};
  std::vector<std::int32_t> length_ = {};
  std::vector<std::int32_t> start_ = {0};
  std::vector<std::int64_t> slot_ = {};
  std::vector<std::int32_t> position_ = {};
  std::vector<std::vector<float>> new_key_ = {};
  std::vector<float> query_ = {};
  std::deque<quire::cpu_backend> backend_ = {};
};

/// Stored forms that the backend takes; those behind the first three are approximate.
[[nodiscard]] inline auto cpu_formats() -> std::vector<quire::element_format> {
  using quire::dtype;
  using quire::scale_spec;
  return {{.type = dtype::f32},
          {.type = dtype::f16},
          {.type = dtype::bf16},
          {.type = dtype::fp8_e4m3},
          {.type = dtype::fp8_e4m3, .scales = scale_spec::per_tensor()},
          {.type = dtype::fp8_e4m3, .scales = scale_spec::per_token_head()},
          {.type = dtype::int8, .scales = scale_spec::per_tensor()},
          {.type = dtype::int8, .scales = scale_spec::per_token_head()},
          {.type = dtype::int8, .scales = scale_spec::per_group(4)}};
}

/// Heads and widths.
struct cpu_heads {
  std::uint32_t query = 4;
  std::uint32_t kv = 2;
  std::uint32_t key_width = 32;
  std::uint32_t value_width = 32;
};
[[nodiscard]] inline auto cpu_params(cpu_heads heads, quire::attention_rule rule = {}) -> quire::attention_params {
  auto out = quire::attention_params{.query_heads = heads.query,
                                     .kv_heads = heads.kv,
                                     .key_width = heads.key_width,
                                     .value_width = heads.value_width,
                                     .scale = quire::attention_params::usual_scale(heads.key_width),
                                     .rule = rule};
  for (std::uint32_t h = 0; h < heads.query; ++h) {
    if (rule.alibi) { out.alibi_slopes.push_back(1.0 / (1U << (h % 8 + 1))); }
    if (rule.learned_sink) { out.sink_logits.push_back(0.5 - h); }
  }
  return out;
}

} // namespace quire_test
