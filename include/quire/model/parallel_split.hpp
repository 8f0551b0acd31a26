// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What one rank stores when a model is split over devices (S11).
///
/// ```
///   tensor    h_kv ≥ t   8 heads on 4 ranks:  01 23 45 67
///             h_kv < t   2 heads on 4 ranks:  0  0  1  1     (replicated)
///             latent     every rank stores the whole latent
///   pipeline  10 layers on 4 stages:          0-2 3-5 6-7 8-9
///   context   see context_split.hpp
/// ```

#include <quire/core/config_error.hpp>
#include <quire/core/contract.hpp>
#include <quire/core/types.hpp>
#include <quire/model/layer_spec.hpp>
#include <quire/model/model_spec.hpp>

#include <cstdint>
#include <string>
#include <utility> // std::move

namespace quire {

/// The KV heads that one tensor rank stores.
struct stored_heads {
  std::uint32_t first = 0;    ///< First head of the unsplit model.
  std::uint32_t count = 0;    ///< Heads on this rank; never 0.
  std::uint32_t replicas = 1; ///< Ranks that store the same heads.

  /// Same heads.
  friend constexpr auto operator==(stored_heads const&, stored_heads const&) noexcept -> bool = default;
};

/// The layers that one pipeline stage runs: [first, first + count).
struct stage_layers {
  std::uint32_t first = 0; ///< First layer of the unsplit model.
  std::uint32_t count = 0; ///< Layers on this stage; never 0.

  /// Same layers.
  friend constexpr auto operator==(stage_layers const&, stage_layers const&) noexcept -> bool = default;
};

/// Over how many ranks a model is split.
struct parallel_split {
  std::uint32_t tensor = 1;   ///< Ranks that share the heads of each layer.
  std::uint32_t pipeline = 1; ///< Stages that share the layers.
  std::uint32_t context = 1;  ///< Ranks that share the positions of each sequence.

  /// Refuses a split over nothing. \throws config_error
  constexpr void validate() const {
    if (tensor == 0 || pipeline == 0 || context == 0) {
      throw config_error{"parallel_split: a split over 0 ranks: use 1 for a direction that is not split"};
    }
  }

  /// The KV heads of a layer that tensor rank \p rank stores. \pre `rank < tensor`.
  /// \throws config_error if the heads can neither be divided nor replicated evenly. \complexity O(1) \source S11; case 97
  [[nodiscard]] auto heads_of(layer_spec const& layer, std::uint32_t rank) const -> stored_heads {
    validate();
    QUIRE_EXPECTS(rank < tensor);
    if (layer.query_heads % tensor != 0) {
      throw config_error{"parallel_split: " + std::to_string(layer.query_heads) + " query heads over " +
                         std::to_string(tensor) + " tensor ranks: use a number of ranks that divides the query heads"};
    }
    if (layer.kind == layer_kind::latent) { return {.first = 0, .count = 1, .replicas = tensor}; }
    auto const heads = layer.kv_heads;
    if (heads % tensor == 0) { return {.first = rank * (heads / tensor), .count = heads / tensor, .replicas = 1}; }
    if (tensor % heads == 0) {
      auto const replicas = tensor / heads;
      return {.first = rank / replicas, .count = 1, .replicas = replicas};
    }
    throw config_error{"parallel_split: " + std::to_string(heads) + " KV heads over " + std::to_string(tensor) +
                       " tensor ranks: use a number of ranks that divides the heads, or a multiple of them "
                       "(heads are then replicated)"};
  }

  /// The layers of stage \p stage of a model with \p layers layers: as even as possible, earlier stages take
  /// the remainder. \pre `stage < pipeline`. \throws config_error if there are fewer layers than stages.
  /// \complexity O(1) \source S11
  [[nodiscard]] auto layers_of(std::uint32_t stage, model_spec const& model) const -> stage_layers {
    validate();
    QUIRE_EXPECTS(stage < pipeline);
    auto const layers = model.layers();
    if (layers < pipeline) {
      throw config_error{"parallel_split: " + std::to_string(layers) + " layers over " + std::to_string(pipeline) +
                         " pipeline stages: use at most " + std::to_string(layers) + " stages"};
    }
    auto const each = layers / pipeline;
    auto const more = layers % pipeline; // stages that have one layer more
    return {.first = stage * each + (stage < more ? stage : more), .count = each + (stage < more ? 1U : 0U)};
  }

  /// What the ranks of one pipeline stage store, as a model of its own: every size asked of it is per rank.
  /// All tensor ranks of a stage store equally much. Side planes are replicated like latents, the unmanaged
  /// state is taken over whole (an upper bound), and positions are not split here: see `context_split`.
  /// \pre `stage < pipeline`. \throws config_error if the split is impossible, among other reasons because a
  /// layer would borrow from another stage. \complexity O(layers) \source S11; cases 97, 98
  [[nodiscard]] auto per_rank(model_spec const& model, std::uint32_t stage) const -> model_spec {
    auto const range = layers_of(stage, model);
    auto description = model.description();
    description.layers.clear();
    for (auto i = range.first; i < range.first + range.count; ++i) {
      auto layer = model.layer(layer_id{i});
      auto const heads = heads_of(layer, 0);
      layer.query_heads /= tensor;
      if (layer.kind != layer_kind::latent) { layer.kv_heads = heads.count; }
      if (layer.borrows) {
        if (layer.borrows->value() < range.first) {
          throw config_error{"parallel_split: layer " + std::to_string(i) + " borrows from layer " +
                             std::to_string(layer.borrows->value()) +
                             " of an earlier pipeline stage: use fewer stages, so that both lie on one"};
        }
        layer.borrows = layer_id{layer.borrows->value() - range.first};
      }
      description.layers.push_back(std::move(layer));
    }
    return model_spec{std::move(description)};
  }
};

} // namespace quire
