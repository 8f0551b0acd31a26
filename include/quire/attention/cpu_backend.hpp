// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The attention backend that is fast: paged host memory, vectors of floats, tiles of keys, no threads of its own.
///
///     write    rounds f32 rows to the stored format, at the slots of a view
///     attend   decode: every stored row is read once and converted in registers, for all query heads that share it
///              prefill and append: tiles of keys are converted once per 48 queries and multiplied as matrices
///     run      copy, move, scrub over all planes of a group, scales included: `host_executor`
///
/// Accumulation is in f32, so results differ from the oracle's on the same bytes by rounding: the bound that the tests
/// derive is about (d_k + keys) · 2^-24 times the sizes that enter. int8 and fp8 change what is stored and are named
/// modes of execution (S6). A view may be paged, one block per sequence (contiguous or padded tensors: p_b = the padded
/// length), or blocks of one token (ragged tensors): results are the same bit for bit (S20).

#include <quire/attention/concepts.hpp>
#include <quire/attention/cpu_layer.hpp>
#include <quire/attention/cpu_plane.hpp>
#include <quire/attention/cpu_range.hpp>
#include <quire/attention/cpu_workspace.hpp>
#include <quire/attention/detail/cpu_attend.hpp>
#include <quire/attention/kv_rows.hpp>
#include <quire/attention/no_bias.hpp>
#include <quire/attention/output_rows.hpp>
#include <quire/attention/query_rows.hpp>
#include <quire/core/config_error.hpp>
#include <quire/core/contract.hpp>
#include <quire/core/expected.hpp>
#include <quire/core/types.hpp>
#include <quire/model/element_format.hpp>
#include <quire/model/retention.hpp>
#include <quire/view/action.hpp>
#include <quire/view/batch_view.hpp>
#include <quire/view/host_executor.hpp>
#include <quire/view/host_plane.hpp>

#include <algorithm> // std::find
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace quire {

/// Fast model of `attention_backend` on the CPU (S43). Owns no cache memory; it must outlive the backend.
class cpu_backend {
public:
  /// Keys and values to write.
  using kv_input = kv_rows<float>;
  /// Queries.
  using query_input = query_rows<float>;
  /// Results.
  using attention_result = output_rows<float>;

  /// Serves \p layers, indexed by `layer_id`, and scrubs with \p scrub.
  /// \throws config_error if a layer contradicts itself, memory is too small, a format has no fast path, the planes of a
  ///   group differ in blocks or block_tokens, or a rule is bidirectional: no append-only cache exists for it \source S5
  explicit cpu_backend(std::vector<cpu_layer> layers, std::byte scrub = std::byte{0})
      : layers_{std::move(layers)}, planes_{collect(layers_)}, groups_{gather(layers_, planes_)},
        executor_{std::span<host_group const>{groups_}, scrub} {}
  cpu_backend(cpu_backend const&) = delete; // the executor points into the vectors
  auto operator=(cpu_backend const&) -> cpu_backend& = delete;
  /// Takes over; the vectors keep their memory.
  cpu_backend(cpu_backend&&) noexcept = default;
  /// Takes over; the vectors keep their memory.
  auto operator=(cpu_backend&&) noexcept -> cpu_backend& = default;
  ~cpu_backend() = default;

  /// Layers served.
  [[nodiscard]] auto layers() const noexcept -> std::span<cpu_layer const> { return layers_; }
  /// The name of the execution mode that the stored formats make: `exact`, or every lossy one, as
  /// `model_spec::execution_mode` names them: `key=int8/token_head:f32+value=int8/token_head:f32`. \source S6
  [[nodiscard]] auto execution_mode() const -> std::string {
    std::string out;
    std::vector<std::string> known;
    auto const add = [&](std::string const& role, element_format const& format) {
      auto const mode = role + "=" + format.name();
      if (!format.approximate() || std::find(known.begin(), known.end(), mode) != known.end()) { return; }
      known.push_back(mode);
      out += (out.empty() ? "" : "+") + mode;
    };
    for (auto const& layer : layers_) {
      add(layer.value ? "key" : "latent", layer.key.format);
      if (layer.value) { add("value", layer.value->format); }
    }
    return out.empty() ? "exact" : out;
  }

  /// Performs \p actions in order, as `host_executor`. \errors errc::not_supported if there is a store or a load
  [[nodiscard]] auto run(std::span<action const> actions) -> expected<void> { return executor_.run(actions); }

  /// Stores the new rows of \p view, rounded to nearest; a slot of −1 is skipped.
  /// \pre the layer exists, the view is valid, \p rows has one entry per slot
  /// \post (1) every slot of \p view that is not −1 holds its row, and its scales; (2) no other byte has changed
  [[nodiscard]] auto write(layer_id layer, batch_view const& view, kv_input const& rows) -> expected<void> {
    auto const& at = layer_of(layer);
    auto const& p = at.params;
    QUIRE_EXPECTS(view.block_tokens > 0);
    QUIRE_EXPECTS(static_cast<std::uint32_t>(view.block_tokens) == at.key.layout.block_tokens);
    QUIRE_EXPECTS(rows.key.size() == view.slot.size() * p.kv_heads * p.key_width);
    QUIRE_EXPECTS(rows.value.size() == (at.value ? view.slot.size() * p.kv_heads * p.value_width : 0));
    for (std::size_t i = 0; i < view.slot.size(); ++i) {
      if (view.slot[i] < 0) { continue; }
      store(at.key, view.slot[i], rows.key.subspan(i * p.kv_heads * p.key_width));
      if (at.value) { store(*at.value, view.slot[i], rows.value.subspan(i * p.kv_heads * p.value_width)); }
    }
    return {};
  }

  /// Attention of all queries of \p view over what it makes readable.
  /// \pre the layer exists, the view is valid, the spans have the sizes their shapes say
  /// \post every row of \p out is written: the attention of S2, or (0, −∞) where nothing is visible
  [[nodiscard]] auto attend(layer_id layer, batch_view const& view, query_input const& queries,
                            attention_result const& out) -> expected<void> {
    return attend(layer, view, queries, out, {}, workspace_);
  }
  /// Attention of a part. Calls whose ranges do not overlap may run at the same time, each with its own \p workspace.
  /// \param range what to compute \param workspace memory of the calling thread
  /// \param bias added to each scaled score; −∞ hides a key
  /// \pre as above \post as above, for the rows and heads of \p range; nothing else of \p out is written
  template <attention_bias Bias = no_bias>
  [[nodiscard]] auto attend(layer_id layer, batch_view const& view, query_input const& queries,
                            attention_result const& out, cpu_range const& range, cpu_workspace& workspace,
                            Bias const& bias = {}) const -> expected<void> {
    auto const& at = layer_of(layer);
    auto const& p = at.params;
    QUIRE_EXPECTS(view.block_tokens > 0);
    QUIRE_EXPECTS(static_cast<std::uint32_t>(view.block_tokens) == at.key.layout.block_tokens);
    QUIRE_EXPECTS(view.rows >= 0);
    QUIRE_EXPECTS(view.query_start.size() == static_cast<std::size_t>(view.rows) + 1);
    QUIRE_EXPECTS(view.length.size() == static_cast<std::size_t>(view.rows));
    QUIRE_EXPECTS(view.first_position.size() == static_cast<std::size_t>(view.rows));
    auto const rows = static_cast<std::size_t>(view.query_start.back());
    QUIRE_EXPECTS(queries.query.size() == rows * p.query_heads * p.key_width);
    QUIRE_EXPECTS(out.output.size() == rows * p.query_heads * p.value_width);
    QUIRE_EXPECTS(out.lse.empty() || out.lse.size() == rows * p.query_heads);
    detail::cpu_attend<Bias>{at, view, queries, out, range, workspace, bias}.run();
    return {};
  }

private:
  [[nodiscard]] static auto collect(std::vector<cpu_layer> const& layers) -> std::vector<std::vector<host_plane>> {
    std::vector<std::vector<host_plane>> out;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      auto const& layer = layers[i];
      layer.params.validate();
      static_cast<void>(retention::of(layer.params.rule)); // refuses what has no append-only cache
      if (layer.group.value() > layers.size()) { fail(i, "group ids must count from 0"); }
      if (layer.group.value() >= out.size()) { out.resize(layer.group.value() + std::size_t{1}); }
      auto& planes = out[layer.group.value()];
      add(i, layer.key, layer.params.kv_heads, layer.params.key_width, planes);
      if (layer.value) {
        add(i, *layer.value, layer.params.kv_heads, layer.params.value_width, planes);
      } else if (layer.params.value_width > layer.params.key_width) {
        fail(i, "without a value plane the values are the first elements of the keys: d_v must not exceed d_k");
      }
    }
    return out;
  }
  static void add(std::size_t layer, cpu_plane const& plane, std::uint32_t heads, std::uint32_t width,
                  std::vector<host_plane>& to) {
    plane.validate();
    if (plane.layout.heads != heads || plane.layout.dim != width) { fail(layer, "a plane has other heads or width"); }
    to.push_back(host_plane::of(plane.layout, plane.tensor));
    if (plane.scales_per_row() > 0) { to.push_back(host_plane::of(plane.scale_layout, plane.scale_tensor)); }
  }
  [[nodiscard]] static auto gather(std::vector<cpu_layer> const& layers,
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
      if (group.blocks == block_count{}) { throw config_error{"cpu backend: a group without layers: count from 0"}; }
    }
    return out;
  }
  [[noreturn]] static void fail(std::size_t layer, char const* what) {
    throw config_error{"cpu backend, layer " + std::to_string(layer) + ": " + what};
  }

  [[nodiscard]] auto layer_of(layer_id layer) const -> cpu_layer const& {
    QUIRE_EXPECTS(layer.value() < layers_.size());
    return layers_[layer.value()];
  }
  static void store(cpu_plane const& plane, std::int64_t slot, std::span<float const> from) {
    auto const unit = static_cast<std::int64_t>(plane.layout.block_tokens);
    QUIRE_EXPECTS(slot / unit < plane.layout.blocks);
    auto const block = block_id{static_cast<std::uint32_t>(slot / unit)};
    auto const token = token_count{static_cast<std::uint32_t>(slot % unit)};
    for (std::uint32_t head = 0; head < plane.layout.heads; ++head) {
      plane.store({.block = block, .token = token, .head = head},
                  from.subspan(std::size_t{head} * plane.layout.dim, plane.layout.dim));
    }
  }

  std::vector<cpu_layer> layers_;
  std::vector<std::vector<host_plane>> planes_;
  std::vector<host_group> groups_;
  host_executor<> executor_;
  cpu_workspace workspace_ = {};
};

static_assert(attention_backend<cpu_backend>);

} // namespace quire
