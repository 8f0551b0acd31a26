// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The memory out of which the pools of a cache take their blocks.

#include <quire/cache/cache_options.hpp>
#include <quire/core/config_error.hpp>
#include <quire/core/types.hpp>
#include <quire/memory/group_allocation.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace quire::detail {

/// \cond INTERNAL
/// Each pool has blocks of its own: nothing is shared. \tparam Allocation of the cache's policies
template <class Allocation>
class shared_memory {
public:
  static constexpr bool shared = false;
  template <class Layout>
  shared_memory(cache_options const& /*options*/, Layout const& /*layout*/) noexcept {}
  /// The pool of block group \p part.
  template <class Pool>
  [[nodiscard]] auto pool(std::size_t /*part*/, block_count blocks) const -> Pool {
    return Pool{blocks};
  }
};

/// All pools take from one budget of bytes. \tparam Memory models `group_memory`
template <class Memory>
class shared_memory<group_allocation<Memory>> {
public:
  static constexpr bool shared = true;
  /// \throws config_error if a group has no size, none keeps everything, or the bytes do not suffice
  template <class Layout>
  shared_memory(cache_options const& options, Layout const& layout) {
    for (std::size_t g = 0; g < options.groups.size(); ++g) {
      if (options.groups[g].block_bytes == byte_count{}) {
        throw config_error{"kv_cache: group " + std::to_string(g) +
                           " shares memory and has no size: set cache_group::block_bytes, or give a model"};
      }
    }
    auto full = false;
    for (auto const& part : layout.parts) {
      full = full || (part.spec.keeps.keeps_all() && part.spec.block_bytes != byte_count{});
      sizes_.push_back(part.spec.block_bytes);
    }
    if (!full) {
      throw config_error{
          "kv_cache: groups share memory and none keeps everything: use an allocation policy with pools of "
          "their own"};
    }
    memory_ = std::make_unique<Memory>(std::span<byte_count const>{sizes_}, options.bytes);
    needs_.resize(sizes_.size());
  }
  template <class Pool>
  [[nodiscard]] auto pool(std::size_t part, block_count /*blocks*/) const -> Pool {
    auto const view = group_allocation<Memory>{*memory_, group_id{static_cast<std::uint32_t>(part)}};
    return Pool{view.capacity(), view};
  }
  [[nodiscard]] auto parts() const noexcept -> std::size_t { return needs_.size(); }
  [[nodiscard]] auto block_bytes(std::size_t part) const noexcept -> std::uint64_t { return sizes_[part].value(); }
  /// Free blocks that each part needs, for the two questions below.
  [[nodiscard]] auto need(std::size_t part) noexcept -> block_count& { return needs_[part]; }
  /// True if all needs can be met together, in any order.
  [[nodiscard]] auto fits() const -> bool { return memory_->fits(needs_); }
  /// [blocks] that \p part could have beside the needs of the others. \complexity O(parts · log blocks)
  [[nodiscard]] auto beside(std::size_t part) -> block_count {
    auto const before = needs_[part];
    std::uint32_t low = 0;
    auto high = memory_->available(group_id{static_cast<std::uint32_t>(part)}).value();
    while (low < high) {
      auto const middle = high - (high - low) / 2;
      needs_[part] = block_count{middle};
      if (fits()) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    needs_[part] = before;
    return block_count{low};
  }

private:
  std::unique_ptr<Memory> memory_;
  std::vector<block_count> needs_;
  std::vector<byte_count> sizes_;
};
/// \endcond

} // namespace quire::detail
