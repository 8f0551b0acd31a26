// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Keys and values of every layer in host memory, cut into blocks.
///
///     layer 0   K [block][token][kv_head][dim]   V [block][token][kv_head][dim]
///     layer 1   K …                              V …

#include "generate/network_shape.hpp"

#include <quire/core/types.hpp>
#include <quire/view/host_executor.hpp>
#include <quire/view/host_plane.hpp>

#include <algorithm> // std::fill
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace llama2 {

/// The bytes of a cache. A block is the same number in all planes. Everything that was never written is NaN, so that a
/// read of a place that holds nothing shows.
class paged_memory {
public:
  /// Memory for \p blocks blocks of \p block_tokens tokens.
  paged_memory(network_shape const& shape, quire::block_count blocks, quire::token_count block_tokens)
      : width_{shape.kv_dim()}, block_tokens_{block_tokens.value()} {
    auto const block_bytes = std::uint64_t{width_} * block_tokens.value() * sizeof(float);
    for (std::uint32_t i = 0; i < 2 * shape.layers; ++i) {
      planes_.emplace_back(static_cast<std::size_t>(block_bytes / sizeof(float)) * blocks.value());
      std::fill(bytes_of(planes_[i]).begin(), bytes_of(planes_[i]).end(), quire::nan_poison);
      host_planes_.push_back({.bytes = bytes_of(planes_[i]),
                              .block_stride = quire::byte_count{block_bytes},
                              .token_stride = quire::byte_count{std::uint64_t{width_} * sizeof(float)}});
    }
    group_ = {.blocks = blocks, .block_tokens = block_tokens, .planes = host_planes_};
  }
  paged_memory(paged_memory const&) = delete;
  auto operator=(paged_memory const&) -> paged_memory& = delete;

  /// Keys of \p layer, token after token.
  [[nodiscard]] auto keys(std::uint32_t layer) noexcept -> std::span<float> { return planes_[2 * layer]; }
  /// Values of \p layer, token after token.
  [[nodiscard]] auto values(std::uint32_t layer) noexcept -> std::span<float> { return planes_[2 * layer + 1]; }
  /// [elements] of one token.
  [[nodiscard]] auto width() const noexcept -> std::size_t { return width_; }
  /// [tokens] per block.
  [[nodiscard]] auto block_tokens() const noexcept -> std::uint32_t { return block_tokens_; }
  /// All planes, for an executor.
  [[nodiscard]] auto groups() const noexcept -> std::span<quire::host_group const> { return {&group_, 1}; }

private:
  [[nodiscard]] static auto bytes_of(std::vector<float>& plane) noexcept -> std::span<std::byte> {
    return std::as_writable_bytes(std::span{plane});
  }

  std::size_t width_;
  std::uint32_t block_tokens_;
  std::vector<std::vector<float>> planes_;
  std::vector<quire::host_plane> host_planes_;
  quire::host_group group_;
};

} // namespace llama2
