// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The attention backend that is right: `oracle_attention` over paged host memory.
///
///     write    slot s of layer l  ──►  planes K, V of l, at block ⌊s / p_b⌋, offset s mod p_b
///     attend   batch_view::locate(row, position)  ──►  the same places, position by position
///     run      copy, move, scrub over all planes of a group: `host_executor`
///
/// It reads exactly the positions that a row's rule makes visible below its length, element by element in double, so
/// that NaN anywhere else shows nothing. Slow by intention.

#include <quire/attention/attention_extent.hpp>
#include <quire/attention/concepts.hpp>
#include <quire/attention/kv_rows.hpp>
#include <quire/attention/oracle_attention.hpp>
#include <quire/attention/oracle_layer.hpp>
#include <quire/attention/oracle_plane.hpp>
#include <quire/attention/output_rows.hpp>
#include <quire/attention/query_rows.hpp>
#include <quire/attention/strided_tensor.hpp>
#include <quire/attention/tensor_place.hpp>
#include <quire/core/config_error.hpp>
#include <quire/core/contract.hpp>
#include <quire/core/expected.hpp>
#include <quire/core/types.hpp>
#include <quire/model/attention_rule.hpp>
#include <quire/model/retention.hpp>
#include <quire/view/action.hpp>
#include <quire/view/batch_view.hpp>
#include <quire/view/host_executor.hpp>
#include <quire/view/host_plane.hpp>
#include <quire/view/validate.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace quire {

/// Reference model of `attention_backend` (S43). Owns no cache memory; it must outlive the backend.
class oracle_backend {
public:
  /// Keys and values to write.
  using kv_input = kv_rows<double>;
  /// Queries.
  using query_input = query_rows<double>;
  /// Results.
  using attention_result = output_rows<double>;

  /// Serves \p layers, indexed by `layer_id`, and scrubs with \p scrub.
  /// \throws config_error if a layer contradicts itself, memory is too small, the planes of a group differ in blocks or
  ///   block_tokens, or a rule is bidirectional: no append-only cache exists for it \source S5
  explicit oracle_backend(std::vector<oracle_layer> layers, std::byte scrub = std::byte{0})
      : layers_{std::move(layers)}, planes_{collect(layers_)}, groups_{gather(layers_, planes_)},
        executor_{std::span<host_group const>{groups_}, scrub} {}
  oracle_backend(oracle_backend const&) = delete; // the executor points into the vectors
  auto operator=(oracle_backend const&) -> oracle_backend& = delete;
  /// Takes over; the vectors keep their memory.
  oracle_backend(oracle_backend&&) noexcept = default;
  /// Takes over; the vectors keep their memory.
  auto operator=(oracle_backend&&) noexcept -> oracle_backend& = default;
  ~oracle_backend() = default;

  /// Layers served.
  [[nodiscard]] auto layers() const noexcept -> std::span<oracle_layer const> { return layers_; }

  /// Performs \p actions in order, as `host_executor`. \errors errc::not_supported if there is a store or a load
  [[nodiscard]] auto run(std::span<action const> actions) -> expected<void> { return executor_.run(actions); }

  /// Stores the new rows of \p view; a slot of −1 is skipped.
  /// \pre the layer exists, the view is valid, \p rows has one entry per slot
  /// \post every slot ≥ 0 holds its row, rounded to the plane's type, and no other byte has changed
  [[nodiscard]] auto write(layer_id layer, batch_view const& view, kv_input const& rows) -> expected<void> {
    auto const& at = layer_of(layer);
    auto const& p = at.params;
    expect_valid(at, view, true);
    QUIRE_EXPECTS(rows.key.size() == view.slot.size() * p.kv_heads * p.key_width);
    QUIRE_EXPECTS(rows.value.size() == (at.value ? view.slot.size() * p.kv_heads * p.value_width : 0));
    for (std::size_t i = 0; i < view.slot.size(); ++i) {
      if (view.slot[i] < 0) { continue; }
      store(at.key, view.slot[i], i, rows.key);
      if (at.value) { store(*at.value, view.slot[i], i, rows.value); }
    }
    return {};
  }

  /// Computes the queries of \p view over its readable positions. Keys of the step itself must have been written.
  /// \pre the layer exists, the view is valid, the spans have the sizes of their shapes, and every visible position has
  ///   a block
  /// \post every row of \p out is written: the attention of S2, or (0, −∞) where nothing is visible
  [[nodiscard]] auto attend(layer_id layer, batch_view const& view, query_input const& queries,
                            attention_result const& out) -> expected<void> {
    auto const& at = layer_of(layer);
    auto const& p = at.params;
    expect_valid(at, view, p.rule.pattern != attention_pattern::cross);
    auto const rows = static_cast<std::size_t>(view.query_start.back());
    QUIRE_EXPECTS(queries.query.size() == rows * p.query_heads * p.key_width);
    QUIRE_EXPECTS(out.output.size() == rows * p.query_heads * p.value_width);
    QUIRE_EXPECTS(out.lse.empty() || out.lse.size() == rows * p.query_heads);
    for (std::int32_t row = 0; row < view.rows; ++row) { attend_row(at, view, row, queries, out); }
    return {};
  }

private:
  [[nodiscard]] static auto collect(std::vector<oracle_layer> const& layers) -> std::vector<std::vector<host_plane>> {
    std::vector<std::vector<host_plane>> out;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      auto const& layer = layers[i];
      layer.params.validate();
      static_cast<void>(retention::of(layer.params.rule)); // refuses what has no append-only cache
      if (layer.group.value() > layers.size()) { fail(i, "group ids must count from 0"); }
      if (layer.group.value() >= out.size()) { out.resize(layer.group.value() + std::size_t{1}); }
      require_plane(i, layer.key, layer.params.kv_heads, layer.params.key_width);
      out[layer.group.value()].push_back(host_plane::of(layer.key.layout, layer.key.tensor));
      if (layer.value) {
        require_plane(i, *layer.value, layer.params.kv_heads, layer.params.value_width);
        out[layer.group.value()].push_back(host_plane::of(layer.value->layout, layer.value->tensor));
      } else if (layer.params.value_width > layer.params.key_width) {
        fail(i, "without a value plane the values are the first elements of the keys: d_v must not exceed d_k");
      }
    }
    return out;
  }
  [[nodiscard]] static auto gather(std::vector<oracle_layer> const& layers,
                                   std::vector<std::vector<host_plane>> const& planes) -> std::vector<host_group> {
    std::vector<host_group> out(planes.size());
    for (std::size_t i = 0; i < layers.size(); ++i) {
      auto& group = out[layers[i].group.value()];
      for (auto const* plane : {&layers[i].key, layers[i].value ? &*layers[i].value : &layers[i].key}) {
        auto const blocks = block_count{plane->layout.blocks};
        auto const tokens = token_count{plane->layout.block_tokens};
        if (group.blocks == block_count{}) {
          group = {.blocks = blocks, .block_tokens = tokens, .planes = planes[layers[i].group.value()]};
        }
        if (group.blocks != blocks || group.block_tokens != tokens) {
          fail(i, "planes of one group must have the same blocks and block_tokens");
        }
      }
    }
    for (auto const& group : out) {
      if (group.blocks == block_count{}) { throw config_error{"oracle backend: a group without layers: count from 0"}; }
    }
    return out;
  }
  static void require_plane(std::size_t layer, oracle_plane const& plane, std::uint32_t heads, std::uint32_t width) {
    plane.validate();
    if (plane.layout.heads != heads || plane.layout.dim != width) { fail(layer, "a plane has other heads or width"); }
  }
  [[noreturn]] static void fail(std::size_t layer, char const* what) {
    throw config_error{"oracle backend, layer " + std::to_string(layer) + ": " + what};
  }

  [[nodiscard]] auto layer_of(layer_id layer) const -> oracle_layer const& {
    QUIRE_EXPECTS(layer.value() < layers_.size());
    return layers_[layer.value()];
  }
  /// A view of a cross layer is checked when its source is written; when it is read, queries count in another sequence.
  static void expect_valid(oracle_layer const& layer, batch_view const& view, bool positions) {
    QUIRE_EXPECTS(view.block_tokens > 0);
    QUIRE_EXPECTS(static_cast<std::uint32_t>(view.block_tokens) == layer.key.layout.block_tokens);
    QUIRE_EXPECTS(!view.query_start.empty());
    if (positions) {
      auto const checked = validate(
          view, {.pool = block_count{layer.key.layout.blocks}, .holes = !retention::of(layer.params.rule).keeps_all()});
      QUIRE_EXPECTS(checked.has_value());
    }
  }
  static void store(oracle_plane const& plane, std::int64_t slot, std::size_t row, std::span<double const> from) {
    auto const unit = static_cast<std::int64_t>(plane.layout.block_tokens);
    auto const block = block_id{static_cast<std::uint32_t>(slot / unit)};
    auto const token = token_count{static_cast<std::uint32_t>(slot % unit)};
    auto const* source = from.data() + row * plane.layout.heads * plane.layout.dim;
    for (std::uint32_t head = 0; head < plane.layout.heads; ++head) {
      for (std::uint32_t dim = 0; dim < plane.layout.dim; ++dim) {
        plane.store({.block = block, .token = token, .head = head, .dim = dim}, *source++);
      }
    }
  }
  static void attend_row(oracle_layer const& layer, batch_view const& view, std::int32_t row,
                         query_input const& queries, attention_result const& out) {
    auto const& p = layer.params;
    auto const i = static_cast<std::size_t>(row);
    auto const start = static_cast<std::size_t>(view.query_start[i]);
    auto const count = static_cast<std::uint32_t>(view.row_queries(row));
    auto const length = static_cast<std::uint32_t>(view.row_length(row));
    auto const cross = p.rule.pattern == attention_pattern::cross;
    auto const extent = attention_extent{
        .first_query = token_pos{cross ? 0U : length - count},
        .queries = token_count{count},
        .keys = {.begin = token_pos{static_cast<std::uint32_t>(view.first_position[i])}, .end = token_pos{length}}};
    auto const element = [&view, row](oracle_plane const& plane, tensor_place const& at) {
      auto const place = view.locate(row, token_pos{at.token});
      QUIRE_EXPECTS(place.block != block_id::none()); // a visible position without a block
      return plane.load({.block = place.block, .token = place.offset, .head = at.head, .dim = at.dim});
    };
    auto const key = [&](tensor_place const& at) { return element(layer.key, at); };
    auto const value = [&](tensor_place const& at) { return element(layer.value ? *layer.value : layer.key, at); };
    auto const row_queries = queries.query.subspan(start * p.query_heads * p.key_width);
    auto const query = strided_tensor<double>::packed(row_queries, {.heads = p.query_heads, .width = p.key_width});
    auto const result = oracle_attention(p, extent, query, key, value);
    auto const cells = start * p.query_heads;
    for (std::size_t k = 0; k < result.output.size(); ++k) { out.output[cells * p.value_width + k] = result.output[k]; }
    for (std::size_t k = 0; !out.lse.empty() && k < result.lse.size(); ++k) { out.lse[cells + k] = result.lse[k]; }
  }

  std::vector<oracle_layer> layers_;
  std::vector<std::vector<host_plane>> planes_;
  std::vector<host_group> groups_;
  host_executor<> executor_;
};

static_assert(attention_backend<oracle_backend>);

} // namespace quire
