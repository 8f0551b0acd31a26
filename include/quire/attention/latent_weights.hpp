// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The up-projections of low-rank attention, and their algebra on single vectors.

#include <quire/attention/latent_shape.hpp>
#include <quire/core/config_error.hpp>
#include <quire/core/contract.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace quire {

/// U_K and U_V of one layer. \source S12, S13
struct latent_weights {
  /// Heads and widths.
  latent_shape shape = {};
  /// \shape [heads, d_C, r_c] U_K
  std::vector<double> up_key = {};
  /// \shape [heads, d_v, r_c] U_V
  std::vector<double> up_value = {};
  /// True if the factors were fitted to a model that was trained without them: an approximate mode (S6).
  bool fitted = false;

  /// Checks sizes. \throws config_error if an array does not have the size of its shape
  void validate() const {
    shape.validate();
    require("up_key", up_key.size(), std::size_t{shape.heads} * shape.content_width * shape.rank);
    require("up_value", up_value.size(), std::size_t{shape.heads} * shape.value_width * shape.rank);
  }
  /// The name under which caches of this layer are an approximate mode; nothing if they are exact. \source S6, S12
  [[nodiscard]] auto approximate_mode() const -> std::optional<std::string> {
    if (!fitted) { return std::nullopt; }
    return "low_rank_fitted/" + std::to_string(shape.rank);
  }

  /// Keys of all heads from one cached row, the rotary key behind each. \param cached \shape [r_c + d_R]
  /// \returns \shape [heads, d_C + d_R] \pre the size agrees
  [[nodiscard]] auto expand_key(std::span<double const> cached) const -> std::vector<double> {
    QUIRE_EXPECTS(cached.size() == shape.cached_width());
    std::vector<double> out;
    out.reserve(std::size_t{shape.heads} * shape.query_width());
    for (std::uint32_t head = 0; head < shape.heads; ++head) {
      append_product(out, up_key, head, shape.content_width, cached.first(shape.rank));
      out.insert(out.end(), cached.begin() + shape.rank, cached.end());
    }
    return out;
  }
  /// Values of all heads from one cached row. \param cached \shape [r_c + d_R] \returns \shape [heads, d_v]
  /// \pre the size agrees
  [[nodiscard]] auto expand_value(std::span<double const> cached) const -> std::vector<double> {
    QUIRE_EXPECTS(cached.size() == shape.cached_width());
    std::vector<double> out;
    out.reserve(std::size_t{shape.heads} * shape.value_width);
    for (std::uint32_t head = 0; head < shape.heads; ++head) {
      append_product(out, up_value, head, shape.value_width, cached.first(shape.rank));
    }
    return out;
  }
  /// Queries that act on latents: U_K^T q, the rotary part behind it. \param query \shape [heads, d_C + d_R] one row
  /// \returns \shape [heads, r_c + d_R] \pre the size agrees
  [[nodiscard]] auto absorb_query(std::span<double const> query) const -> std::vector<double> {
    QUIRE_EXPECTS(query.size() == std::size_t{shape.heads} * shape.query_width());
    std::vector<double> out;
    out.reserve(std::size_t{shape.heads} * shape.cached_width());
    for (std::uint32_t head = 0; head < shape.heads; ++head) {
      auto const q = query.subspan(std::size_t{head} * shape.query_width(), shape.query_width());
      for (std::uint32_t r = 0; r < shape.rank; ++r) {
        auto sum = 0.0;
        for (std::uint32_t d = 0; d < shape.content_width; ++d) {
          sum += up_key[(std::size_t{head} * shape.content_width + d) * shape.rank + r] * q[d];
        }
        out.push_back(sum);
      }
      for (auto d = shape.content_width; d < shape.query_width(); ++d) { out.push_back(q[d]); }
    }
    return out;
  }
  /// Outputs from weighted sums of latents: U_V z. \param mixed \shape [heads, r_c] one row
  /// \returns \shape [heads, d_v] \pre the size agrees
  [[nodiscard]] auto expand_output(std::span<double const> mixed) const -> std::vector<double> {
    QUIRE_EXPECTS(mixed.size() == std::size_t{shape.heads} * shape.rank);
    std::vector<double> out;
    out.reserve(std::size_t{shape.heads} * shape.value_width);
    for (std::uint32_t head = 0; head < shape.heads; ++head) {
      append_product(out, up_value, head, shape.value_width, mixed.subspan(std::size_t{head} * shape.rank, shape.rank));
    }
    return out;
  }
  /// O_i U_{V,i} of all heads side by side: it takes weighted sums of latents to the layer's output in one product.
  /// \param output \shape [hidden, heads · d_v] O \param hidden [elements] rows of O
  /// \returns \shape [hidden, heads · r_c] \pre the size agrees
  [[nodiscard]] auto merge_output(std::span<double const> output, std::uint32_t hidden) const -> std::vector<double> {
    QUIRE_EXPECTS(output.size() == std::size_t{hidden} * shape.heads * shape.value_width);
    std::vector<double> out(std::size_t{hidden} * shape.heads * shape.rank, 0.0);
    for (std::uint32_t row = 0; row < hidden; ++row) {
      for (std::uint32_t head = 0; head < shape.heads; ++head) {
        for (std::uint32_t d = 0; d < shape.value_width; ++d) {
          auto const factor = output[(std::size_t{row} * shape.heads + head) * shape.value_width + d];
          auto const* up = up_value.data() + (std::size_t{head} * shape.value_width + d) * shape.rank;
          auto* target = out.data() + (std::size_t{row} * shape.heads + head) * shape.rank;
          for (std::uint32_t r = 0; r < shape.rank; ++r) { target[r] += factor * up[r]; }
        }
      }
    }
    return out;
  }

private:
  static void require(char const* name, std::size_t given, std::size_t wanted) {
    if (given != wanted) {
      throw config_error{std::string{"latent_weights: "} + name + " has " + std::to_string(given) +
                         " elements, its shape says " + std::to_string(wanted)};
    }
  }
  /// Appends matrix · x for the matrix [rows, r_c] of one head.
  void append_product(std::vector<double>& out, std::vector<double> const& matrix, std::uint32_t head,
                      std::uint32_t rows, std::span<double const> x) const {
    for (std::uint32_t d = 0; d < rows; ++d) {
      auto sum = 0.0;
      for (std::uint32_t r = 0; r < shape.rank; ++r) {
        sum += matrix[(std::size_t{head} * rows + d) * shape.rank + r] * x[r];
      }
      out.push_back(sum);
    }
  }
};

} // namespace quire
