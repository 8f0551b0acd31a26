// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What a model is asked to compute in one step.
///
///     view      two rows: row 0 adds positions 5 … 7 (a chunk of its prompt), row 1 adds position 31 (a decode)
///     tokens    [ t5 t6 t7 | t31 ]         one per slot and position of the view
///     wanted    [             3  ]         only the decode has an output to choose
///     logits    [ V floats       ]         one row of V per wanted position, in the order of `wanted`

#include <quire/core/types.hpp>
#include <quire/generate/types.hpp>
#include <quire/view/batch_view.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace quire {

/// Arguments of one forward pass. Owns nothing.
struct forward_batch {
  /// Slots to write, tables and lengths to read.
  batch_view const& view;
  /// \shape [G] the same for each layer group, by number; empty if there is one only. Ask `view_of`.
  std::span<batch_view const> groups = {};
  /// \shape [Σq] token of each new position.
  std::span<token_id const> tokens = {};
  /// \shape [W] indices into `tokens`, ascending: the positions whose logits are wanted. May be empty.
  std::span<std::uint32_t const> wanted = {};
  /// \shape [W, V] where they go.
  std::span<float> logits = {};
  /// \shape [B] whose row it is, for models with inputs of their own: a cross-attention source, an adapter. A row itself
  /// is never an identity (S19). May be empty where nobody needs it.
  std::span<generation_id const> of = {};

  /// What the layers of \p group read and write.
  [[nodiscard]] auto view_of(group_id group) const noexcept -> batch_view const& {
    return groups.empty() ? view : groups[group.value()];
  }
  /// Logits of wanted position number \p i. \pre `i < wanted.size()`
  [[nodiscard]] auto logits_of(std::size_t i) const noexcept -> std::span<float> {
    auto const width = logits.size() / wanted.size();
    return logits.subspan(i * width, width);
  }
};

} // namespace quire
