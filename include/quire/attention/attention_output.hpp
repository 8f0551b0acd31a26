// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Outputs and log-sum-exps of attention, for every row and head.

#include <quire/attention/partial_attention.hpp>
#include <quire/attention/tensor_place.hpp>
#include <quire/core/contract.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace quire {

/// Result of one attention computation, in double precision.
struct attention_output {
  /// h_q.
  std::uint32_t heads = 0;
  /// [elements] d_v.
  std::uint32_t width = 0;
  /// \shape [rows, h_q, d_v]
  std::vector<double> output = {};
  /// \shape [rows, h_q] natural logarithm, without learned sinks; −∞ where no key was visible.
  std::vector<double> lse = {};

  /// Extents of a result, named so that they cannot be swapped.
  struct shape {
    /// Query rows.
    std::uint32_t rows = 0;
    /// h_q.
    std::uint32_t heads = 0;
    /// [elements] d_v.
    std::uint32_t width = 0;
  };

  /// The result of no key: zeros and −∞.
  [[nodiscard]] static auto empty(shape of) -> attention_output {
    auto const cells = std::size_t{of.rows} * of.heads;
    return {.heads = of.heads,
            .width = of.width,
            .output = std::vector<double>(cells * of.width, 0.0),
            .lse = std::vector<double>(cells, -std::numeric_limits<double>::infinity())};
  }
  /// Query rows.
  [[nodiscard]] auto rows() const noexcept -> std::size_t { return heads == 0 ? 0 : lse.size() / heads; }
  /// Output of the row and head of \p at; its `dim` is not looked at. \pre they exist
  [[nodiscard]] auto at(tensor_place const& at) const -> std::span<double const> {
    return std::span{output}.subspan(cell(at) * width, width);
  }
  /// Output of the row and head of \p at, to be written. \pre they exist
  [[nodiscard]] auto at(tensor_place const& at) -> std::span<double> {
    return std::span{output}.subspan(cell(at) * width, width);
  }
  /// Log-sum-exp of the row and head of \p at. \pre they exist
  [[nodiscard]] auto lse_at(tensor_place const& at) const -> double { return lse[cell(at)]; }
  /// Log-sum-exp of the row and head of \p at, to be written. \pre they exist
  [[nodiscard]] auto lse_at(tensor_place const& at) -> double& { return lse[cell(at)]; }
  /// Row and head of \p at as a value of their own. \pre they exist
  [[nodiscard]] auto part(tensor_place const& place) const -> partial_attention {
    auto const values = at(place);
    return {.output = {values.begin(), values.end()}, .lse = lse_at(place)};
  }
  /// Same shape and numbers.
  friend auto operator==(attention_output const&, attention_output const&) noexcept -> bool = default;

private:
  [[nodiscard]] auto cell(tensor_place const& at) const -> std::size_t {
    QUIRE_EXPECTS(at.head < heads);
    QUIRE_EXPECTS(at.token < rows());
    return std::size_t{at.token} * heads + at.head;
  }
};

/// Attention over the keys of both parts, row by row. \pre the shapes agree \post as `merge_into`
[[nodiscard]] inline auto merge(attention_output const& a, attention_output const& b) -> attention_output {
  QUIRE_EXPECTS(a.heads == b.heads && a.width == b.width && a.lse.size() == b.lse.size());
  auto out = a;
  for (std::size_t i = 0; i < out.lse.size(); ++i) {
    merge_into(std::span{out.output}.subspan(i * out.width, out.width), out.lse[i],
               std::span{b.output}.subspan(i * b.width, b.width), b.lse[i]);
  }
  return out;
}

} // namespace quire
