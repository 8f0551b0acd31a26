// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// From a model and bytes to the groups of a cache and their blocks.

#include <quire/cache/cache_group.hpp>
#include <quire/cache/cache_options.hpp>
#include <quire/core/checked.hpp>
#include <quire/core/config_error.hpp>
#include <quire/core/types.hpp>
#include <quire/model/cache_layout.hpp>
#include <quire/model/capacity.hpp>
#include <quire/model/layer_group.hpp>
#include <quire/model/model_spec.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
/// Splits `options.bytes` between the groups of a model: as many sequences of the longest context that fits as fit at
/// their peak, the rest as further blocks of the groups that keep everything.
class group_fit {
public:
  /// \param shared the groups take their blocks out of one memory: nothing is split
  group_fit(model_spec const& model, cache_options options, bool shared = false)
      : options_{std::move(options)}, shared_{shared} {
    for (auto const& group : model.groups()) {
      // What a source fills is held whole, like a group that keeps everything.
      auto const keeps = group.kind == group_kind::self ? group.keeps : retention::full();
      groups_.push_back({.keeps = keeps, .blocks = {}, .block_tokens = options_.block_tokens});
      bytes_.push_back(cache_layout{group, options_.block_tokens}.block_bytes().value());
    }
    if (options_.rebuild == token_count{}) {
      std::uint64_t back = 0;
      for (auto const& group : model.groups()) {
        if (group.kind != group_kind::self || group.keeps.keeps_all()) { continue; }
        back += std::uint64_t{group.keeps.extent.value() - 1} * group.layers();
      }
      options_.rebuild = token_count{static_cast<std::uint32_t>(std::min<std::uint64_t>(back, UINT32_MAX))};
    }
    longest_ = options_.max_context == token_count{} ? model.max_positions() : options_.max_context;
  }

  [[nodiscard]] auto options() -> cache_options {
    auto const mixed = std::any_of(groups_.begin(), groups_.end(), [](auto const& g) { return !g.keeps.keeps_all(); });
    if (shared_) {
      for (std::size_t g = 0; g < groups_.size(); ++g) { groups_[g].block_bytes = byte_count{bytes_[g]}; }
      if (options_.groups.empty()) { options_.groups = groups_; }
      return options_;
    }
    if (options_.groups.empty() && (mixed || groups_.size() > 1)) {
      if (options_.blocks == block_count{}) { split(); }
      options_.groups = groups_;
    }
    if (options_.blocks == block_count{}) { options_.blocks = fill(options_.bytes.value(), lead_bytes()); }
    return options_;
  }

private:
  [[nodiscard]] auto lead_bytes() const -> std::uint64_t {
    std::uint64_t bytes = 0;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (groups_[g].keeps.keeps_all()) { bytes = checked_add(bytes, bytes_[g], "bytes of a block"); }
    }
    return bytes;
  }
  /// [blocks] of group \p g that a sequence of \p context positions holds at its peak, one to copy into included.
  [[nodiscard]] auto peak(std::size_t g, token_count context) const -> std::uint64_t {
    auto const step = options_.max_append == token_count{} ? context : options_.max_append;
    auto const pages = paging{.block_tokens = options_.block_tokens, .step = step};
    return peak_blocks(groups_[g].keeps, context, pages).value() + std::uint64_t{1};
  }
  [[nodiscard]] auto bytes_of_sequence(token_count context) const -> std::uint64_t {
    std::uint64_t bytes = 0;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      bytes =
          checked_add(bytes, checked_mul(peak(g, context), bytes_[g], "bytes of a sequence"), "bytes of a sequence");
    }
    return bytes;
  }
  auto split() -> void {
    auto context = longest_;
    while (context > options_.block_tokens && bytes_of_sequence(context) > options_.bytes.value()) {
      context = token_count{context.value() / 2};
    }
    auto const each = bytes_of_sequence(context);
    auto const sequences = options_.bytes.value() / each;
    if (sequences == 0) {
      throw config_error{"kv_cache: " + std::to_string(options_.bytes.value()) + " bytes hold no sequence of " +
                         std::to_string(context.value()) + " tokens, which takes " + std::to_string(each) +
                         " over all layer groups: give it at least that many"};
    }
    // Without a group that keeps everything, the windows share the rest as they share a sequence.
    auto const rest = lead_bytes() > 0 ? 0 : options_.bytes.value() % each;
    auto left = options_.bytes.value();
    std::uint64_t windows = 0;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (groups_[g].keeps.keeps_all()) { continue; }
      auto const most = peak(g, context);
      groups_[g].blocks = fill(most * sequences + checked_mul(most, rest, "bytes of a sequence") / each, 1);
      windows += groups_[g].blocks.value();
      left -= groups_[g].blocks.value() * bytes_[g];
    }
    // The index of such a cache has blocks of its own, which cost no cache memory.
    options_.blocks = lead_bytes() > 0 ? fill(left, lead_bytes()) : fill(4 * windows, 1);
  }
  [[nodiscard]] static auto fill(std::uint64_t bytes, std::uint64_t each) -> block_count {
    auto const fit = bytes / each;
    if (fit == 0) {
      throw config_error{"kv_cache: " + std::to_string(bytes) + " bytes hold no block of " + std::to_string(each) +
                         " bytes: give it at least that many"};
    }
    return block_count{static_cast<std::uint32_t>(std::min<std::uint64_t>(fit, 0x7fff'fffdU))};
  }

  cache_options options_;
  bool shared_;
  std::vector<cache_group> groups_;
  std::vector<std::uint64_t> bytes_; // by group, of a block
  token_count longest_;
};
/// \endcond

} // namespace quire::detail
