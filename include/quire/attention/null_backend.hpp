// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The attention backend without bytes.

#include <quire/attention/concepts.hpp>
#include <quire/attention/fwd.hpp>
#include <quire/attention/kv_rows.hpp>
#include <quire/attention/output_rows.hpp>
#include <quire/attention/query_rows.hpp>
#include <quire/core/expected.hpp>
#include <quire/core/types.hpp>
#include <quire/view/action.hpp>
#include <quire/view/batch_view.hpp>

#include <algorithm> // std::fill
#include <concepts>
#include <limits>
#include <span>

namespace quire {

/// Accepts everything, stores nothing, and answers as if no key were visible: (0, −∞). For dry runs and trace replays.
/// Null model of `attention_backend`. \tparam Float type of the rows
template <std::floating_point Float>
struct null_backend {
  /// Keys and values, ignored.
  using kv_input = kv_rows<Float>;
  /// Queries, ignored.
  using query_input = query_rows<Float>;
  /// Results.
  using attention_result = output_rows<Float>;

  /// Accepts \p actions. \returns success, always
  [[nodiscard]] auto run(std::span<action const> actions) const noexcept -> expected<void> {
    static_cast<void>(actions);
    return {};
  }
  /// Accepts rows. \returns success, always
  [[nodiscard]] auto write(layer_id /*layer*/, batch_view const& /*view*/, kv_input const& /*rows*/) const noexcept
      -> expected<void> {
    return {};
  }
  /// Writes the identity of merging to \p out. \returns success, always
  [[nodiscard]] auto attend(layer_id /*layer*/, batch_view const& /*view*/, query_input const& /*queries*/,
                            attention_result const& out) const noexcept -> expected<void> {
    std::fill(out.output.begin(), out.output.end(), Float{0});
    std::fill(out.lse.begin(), out.lse.end(), -std::numeric_limits<Float>::infinity());
    return {};
  }
};

static_assert(attention_backend<null_backend<>> && attention_backend<null_backend<float> const>);

} // namespace quire
