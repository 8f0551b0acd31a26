// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Attention in single precision over paged host memory: what a kernel does, in forty lines.

#include "generate/dot.hpp"
#include "generate/network_shape.hpp"
#include "generate/paged_memory.hpp"

#include <quire/attention/concepts.hpp>
#include <quire/attention/kv_rows.hpp>
#include <quire/attention/output_rows.hpp>
#include <quire/attention/query_rows.hpp>
#include <quire/core/expected.hpp>
#include <quire/core/types.hpp>
#include <quire/view/action.hpp>
#include <quire/view/batch_view.hpp>
#include <quire/view/host_executor.hpp>

#include <algorithm> // std::copy_n, std::fill_n, std::max
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace llama2 {

/// A model of `attention_backend`: causal, grouped heads. Sums run over logical positions, so that results do not depend
/// on where blocks lie or how large they are.
class float_attention {
public:
  /// Keys and values to write.
  using kv_input = quire::kv_rows<float>;
  /// Queries.
  using query_input = quire::query_rows<float>;
  /// Results.
  using attention_result = quire::output_rows<float>;

  /// Works on \p memory, which outlives it.
  float_attention(network_shape const& shape, paged_memory& memory)
      : shape_{shape}, memory_{&memory}, executor_{memory.groups(), quire::nan_poison} {}

  /// Performs the actions of a plan.
  [[nodiscard]] auto run(std::span<quire::action const> actions) -> quire::expected<void> {
    return executor_.run(actions);
  }

  /// Stores new keys and values at the slots of \p view; −1 is skipped.
  [[nodiscard]] auto write(quire::layer_id layer, quire::batch_view const& view, kv_input const& rows)
      -> quire::expected<void> {
    auto const width = memory_->width();
    auto const keys = memory_->keys(layer.value());
    auto const values = memory_->values(layer.value());
    for (std::size_t i = 0; i < view.slot.size(); ++i) {
      if (view.slot[i] < 0) { continue; }
      auto const at = static_cast<std::size_t>(view.slot[i]) * width;
      std::copy_n(rows.key.data() + i * width, width, keys.data() + at);
      std::copy_n(rows.value.data() + i * width, width, values.data() + at);
    }
    return {};
  }

  /// Computes the queries of \p view over everything their rows may read.
  [[nodiscard]] auto attend(quire::layer_id layer, quire::batch_view const& view, query_input const& queries,
                            attention_result const& out) -> quire::expected<void> {
    for (std::int32_t row = 0; row < view.rows; ++row) {
      auto const length = static_cast<std::size_t>(view.row_length(row));
      places_.resize(length); // where each logical position lies, once per row
      auto const blocks = view.blocks_of_row(row);
      auto const unit = static_cast<std::size_t>(view.block_tokens);
      for (std::size_t p = 0; p < length; ++p) {
        places_[p] = (static_cast<std::size_t>(blocks[p / unit]) * unit + p % unit) * memory_->width();
      }
      auto const first = static_cast<std::size_t>(view.query_start[static_cast<std::size_t>(row)]);
      auto const count = static_cast<std::size_t>(view.row_queries(row));
      for (std::size_t i = 0; i < count; ++i) { attend_one(layer, first + i, length - count + i + 1, queries, out); }
    }
    return {};
  }

private:
  /// Query number \p at over the first \p visible positions of its row: dot, softmax, weighted sum.
  auto attend_one(quire::layer_id layer, std::size_t at, std::size_t visible, query_input const& queries,
                  attention_result const& out) -> void {
    auto const size = std::size_t{shape_.head_size()};
    auto const scale = 1.0F / std::sqrt(static_cast<float>(size));
    auto const* const keys = memory_->keys(layer.value()).data();
    auto const* const values = memory_->values(layer.value()).data();
    scores_.resize(visible);
    for (std::uint32_t head = 0; head < shape_.heads; ++head) {
      auto const kv = std::size_t{head * shape_.kv_heads / shape_.heads} * size;
      auto const cell = (at * shape_.heads + head) * size;
      auto top = -std::numeric_limits<float>::infinity();
      for (std::size_t p = 0; p < visible; ++p) {
        scores_[p] = dot(queries.query.data() + cell, keys + places_[p] + kv, size) * scale;
        top = std::max(top, scores_[p]);
      }
      auto sum = 0.0F;
      auto* const to = out.output.data() + cell;
      std::fill_n(to, size, 0.0F);
      for (std::size_t p = 0; p < visible; ++p) {
        auto const weight = std::exp(scores_[p] - top);
        sum += weight;
        for (std::size_t d = 0; d < size; ++d) { to[d] += weight * values[places_[p] + kv + d]; }
      }
      for (std::size_t d = 0; d < size; ++d) { to[d] /= sum; }
      if (!out.lse.empty()) { out.lse[at * shape_.heads + head] = top + std::log(sum); }
    }
  }

  network_shape shape_;
  paged_memory* memory_;
  quire::host_executor<> executor_;
  std::vector<std::size_t> places_;
  std::vector<float> scores_;
};

static_assert(quire::attention_backend<float_attention>);

} // namespace llama2
