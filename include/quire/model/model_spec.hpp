// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A model as its caches see it: validated layers, and the groups they form.
///
/// ```
///   layers   0 full   1 window   2 full   3 window   4 borrows 2
///   groups   g0 { owners 0 2, borrowers 4 }   g1 { owners 1 3 }      in the order of their first layer
/// ```

#include <quire/core/config_error.hpp>
#include <quire/core/contract.hpp>
#include <quire/core/types.hpp>
#include <quire/model/attention_rule.hpp>
#include <quire/model/dtype.hpp>
#include <quire/model/layer_group.hpp>
#include <quire/model/layer_spec.hpp>
#include <quire/model/plane_spec.hpp>
#include <quire/model/retention.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility> // std::move
#include <vector>

namespace quire {

/// Describes a model as far as its caches go. Nothing is checked here; `model_spec` checks it.
struct model_description {
  std::string name{};                       ///< For people; never an identity (S35).
  std::vector<layer_spec> layers{};         ///< In forward order.
  token_count max_positions{};              ///< [tokens] longest sequence; windows that reach it are full attention.
  std::vector<std::byte> position_config{}; ///< Canonical bytes of the position rule's parameters; opaque here (S32).
  byte_count unmanaged_state{};             ///< [bytes] per sequence that the engine keeps besides (recurrent layers).
  std::string approximation{};              ///< Name of the lossy mode if a layer keeps less than it sees (S6).
};

/// A validated model. Its invariants: every layer is possible on its own; every borrower reads a layer that
/// stores, comes earlier, has its shape and keeps what it needs; windows that no sequence can exceed are
/// full attention; each owner is in exactly one group, and all layers of a group have equal planes and retention.
class model_spec {
public:
  /// Validates and groups a description. \throws config_error naming the layer, what was wrong and what
  /// would work. \complexity O(layers · groups) \source S5, S10, S13, S27, S29; cases 119, 120, 143, 144
  explicit model_spec(model_description description) : description_{std::move(description)} {
    if (description_.layers.empty()) {
      throw config_error{"model_spec: a model without layers caches nothing: describe at least one"};
    }
    if (description_.max_positions == token_count{}) {
      throw config_error{"model_spec: max_positions is 0: use the longest sequence the model is run with"};
    }
    for (std::uint32_t i = 0; i < layers(); ++i) { description_.layers[i].validate(name_of_layer(i)); }
    for (auto& layer : description_.layers) { clamp(layer); }
    for (std::uint32_t i = 0; i < layers(); ++i) {
      check_retention(i);
      check_borrower(i);
    }
    form_groups();
  }

  /// What people call it.
  [[nodiscard]] auto name() const noexcept -> std::string const& { return description_.name; }
  /// The description, with windows clamped.
  [[nodiscard]] auto description() const noexcept -> model_description const& { return description_; }
  /// Number of layers, borrowers included. \returns [layers]
  [[nodiscard]] auto layers() const noexcept -> std::uint32_t {
    return static_cast<std::uint32_t>(description_.layers.size());
  }
  /// One layer. \pre it is one of this model's.
  [[nodiscard]] auto layer(layer_id id) const -> layer_spec const& {
    QUIRE_EXPECTS(id.value() < layers());
    return description_.layers[id.value()];
  }
  /// The groups, in the order of their first owner; a group's id is its index.
  [[nodiscard]] auto groups() const noexcept -> std::vector<layer_group> const& { return groups_; }
  /// One group. \pre it is one of this model's.
  [[nodiscard]] auto group(group_id id) const -> layer_group const& {
    QUIRE_EXPECTS(id.value() < groups_.size());
    return groups_[id.value()];
  }
  /// The group whose cache a layer reads: its own, or its owner's. \pre the layer is one of this model's.
  [[nodiscard]] auto group_of(layer_id id) const -> group_id {
    QUIRE_EXPECTS(id.value() < layers());
    return group_of_layer_[id.value()];
  }
  /// The layer that stores what \p id reads: itself unless it borrows. Writes through a borrower are errors;
  /// this is how a backend finds the one place. \pre the layer is one of this model's. \source case 143
  [[nodiscard]] auto owner_of(layer_id id) const -> layer_id { return layer(id).borrows.value_or(id); }
  /// [tokens] longest sequence.
  [[nodiscard]] auto max_positions() const noexcept -> token_count { return description_.max_positions; }
  /// [bytes] per sequence that the engine keeps besides the cache.
  [[nodiscard]] auto unmanaged_state() const noexcept -> byte_count { return description_.unmanaged_state; }

  /// The name of the execution mode: `exact`, or every lossy format and the approximation, sorted by their
  /// first layer and joined by `+`. Part of the compute identity, so that they never mix. \source S6, S33
  [[nodiscard]] auto execution_mode() const -> std::string {
    std::vector<std::string> modes;
    auto const add = [&modes](std::string const& mode) {
      for (auto const& known : modes) {
        if (known == mode) { return; }
      }
      modes.push_back(mode);
    };
    for (auto const& one : groups_) {
      for (auto const& plane : one.planes) {
        if (plane.format.approximate()) { add(std::string{name_of(plane.kind)} + "=" + plane.format.name()); }
        if (plane.tail_width > 0 && is_quantised(plane.tail_type)) {
          add(std::string{name_of(plane.kind)} + "_tail=" + std::string{name_of(plane.tail_type)});
        }
      }
    }
    if (!description_.approximation.empty()) { add(description_.approximation); }
    if (modes.empty()) { return "exact"; }
    std::string out;
    for (auto const& mode : modes) { out += (out.empty() ? "" : "+") + mode; }
    return out;
  }

  /// The same model run with sequences of at most \p max_positions. Shorter ones may turn windows into full
  /// attention; longer ones never bring a window back, so derive from the original description.
  /// \throws config_error if it is 0. \source case 119
  [[nodiscard]] auto with_max_positions(token_count max_positions) const -> model_spec {
    auto changed = description_;
    changed.max_positions = max_positions;
    return model_spec{std::move(changed)};
  }
  /// The same model with keys, values and latents stored as \p format; rotary keys and side planes stay.
  /// \throws config_error if the format is impossible. \source S6
  [[nodiscard]] auto with_format(element_format format) const -> model_spec {
    auto changed = description_;
    for (auto& one : changed.layers) {
      one.key_format = format;
      one.value_format = format;
    }
    return model_spec{std::move(changed)};
  }

  /// Same layers, limits and configuration; names are not compared.
  friend auto operator==(model_spec const& a, model_spec const& b) -> bool {
    return a.description_.layers == b.description_.layers &&
           a.description_.max_positions == b.description_.max_positions &&
           a.description_.position_config == b.description_.position_config &&
           a.description_.unmanaged_state == b.description_.unmanaged_state &&
           a.description_.approximation == b.description_.approximation;
  }

private:
  [[nodiscard]] auto name_of_layer(std::uint32_t index) const -> std::string {
    return (description_.name.empty() ? std::string{"model"} : description_.name) + ", layer " + std::to_string(index);
  }

  void clamp(layer_spec& layer) const {
    layer.rule = layer.rule.clamped(description_.max_positions);
    if (!layer.keeps) { return; }
    auto const reach = static_cast<std::uint64_t>(layer.keeps->extent.value()) + layer.keeps->sinks.value();
    if (layer.keeps->keeps_all() || reach >= description_.max_positions.value()) { layer.keeps = retention::full(); }
    if (*layer.keeps == retention::of(layer.rule)) {
      layer.keeps.reset(); // one way to say it, so that equal models compare equal
    }
  }

  void check_retention(std::uint32_t index) const {
    auto const& layer = description_.layers[index];
    auto const needed = retention::of(layer.rule);
    if (!layer.retains().covers(needed) && description_.approximation.empty()) {
      throw config_error{name_of_layer(index) + ": retention " + std::string{quire::name_of(layer.retains().kind)} +
                         " keeps less than the rule " + std::string{quire::name_of(layer.rule.pattern)} +
                         " sees: keep at least as much, or name the approximate mode in `approximation`"};
    }
  }

  void check_borrower(std::uint32_t index) const {
    auto const& layer = description_.layers[index];
    if (!layer.borrows) { return; }
    auto const name = name_of_layer(index);
    auto const owner_index = layer.borrows->value();
    auto const owner_name = "layer " + std::to_string(owner_index);
    if (owner_index >= index) {
      throw config_error{name + ": it cannot borrow from " + owner_name +
                         ", which does not come before it: borrow from an earlier layer that stores"};
    }
    auto const& owner = description_.layers[owner_index];
    if (owner.borrows) {
      throw config_error{name + ": it borrows from " + owner_name + ", which borrows itself: borrow from layer " +
                         std::to_string(owner.borrows->value()) + ", which stores"};
    }
    if (owner.kind != layer.kind || owner.planes() != layer.planes()) {
      throw config_error{name + ": it borrows from " + owner_name +
                         " but has another kind, other KV heads, widths or formats: describe it with those of its "
                         "owner"};
    }
    if (layer.keeps) {
      throw config_error{name + ": it borrows, so it retains nothing of its own: set the retention of " + owner_name};
    }
    if (!owner.retains().covers(retention::of(layer.rule)) && description_.approximation.empty()) {
      throw config_error{name + ": it sees more than " + owner_name +
                         " keeps: give the owner a retention that covers both"};
    }
  }

  void form_groups() {
    group_of_layer_.resize(description_.layers.size());
    for (std::uint32_t i = 0; i < layers(); ++i) {
      auto const& layer = description_.layers[i];
      if (layer.borrows) {
        auto const id = group_of_layer_[layer.borrows->value()];
        groups_[id.value()].borrowers.push_back(layer_id{i});
        group_of_layer_[i] = id;
        continue;
      }
      auto const kind = layer.kind == layer_kind::cross ? group_kind::cross : group_kind::self;
      auto planes = layer.planes();
      auto const keeps = layer.retains();
      std::uint32_t found = 0;
      while (found < groups_.size() &&
             (groups_[found].kind != kind || groups_[found].keeps != keeps || groups_[found].planes != planes)) {
        ++found;
      }
      if (found == groups_.size()) {
        groups_.push_back({.id = group_id{found}, .kind = kind, .planes = std::move(planes), .keeps = keeps});
      }
      groups_[found].owners.push_back(layer_id{i});
      group_of_layer_[i] = group_id{found};
    }
  }

  model_description description_;
  std::vector<layer_group> groups_;
  std::vector<group_id> group_of_layer_;
};

} // namespace quire
