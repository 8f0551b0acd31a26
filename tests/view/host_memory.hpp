// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Real bytes behind cache layouts, and an element-wise model of them: it reads and writes through
/// `plane_layout::offset` only, never through runs of bytes.

#include <quire/view/host_plane.hpp>
#include <quire/view/view_layout.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace quire_test {

/// Tensors of one group (one layout per layer), as host planes.
class host_memory {
public:
  host_memory(quire::block_count blocks, quire::token_count block_tokens, std::vector<quire::view_layout> layers)
      : layers_{std::move(layers)} {
    for (auto const& layer : layers_) {
      auto& tensors = tensors_.emplace_back();
      for (std::uint32_t t = 0; t < quire::view_layout::max_planes; ++t) {
        tensors.emplace_back(layer.tensor_bytes(t).value());
      }
      for (auto const& plane : layer.planes()) {
        planes_.push_back(quire::host_plane::of(plane, tensors[plane.tensor]));
      }
    }
    group_ = {.blocks = blocks, .block_tokens = block_tokens, .planes = planes_};
  }
  host_memory(host_memory const&) = delete;
  auto operator=(host_memory const&) -> host_memory& = delete;

  [[nodiscard]] auto group() const -> quire::host_group { return group_; }
  [[nodiscard]] auto layers() const -> std::vector<quire::view_layout> const& { return layers_; }
  /// All bytes, to compare states.
  [[nodiscard]] auto tensors() -> std::deque<std::vector<std::vector<std::byte>>>& { return tensors_; }

  /// Gives every byte a value that depends on its place.
  void number(std::uint32_t seed) {
    auto x = seed;
    for (auto& layer : tensors_) {
      for (auto& tensor : layer) {
        for (auto& b : tensor) {
          x = x * 1664525U + 1013904223U;
          b = static_cast<std::byte>(x >> 24);
        }
      }
    }
  }
  void fill(std::byte value) {
    for (auto& layer : tensors_) {
      for (auto& tensor : layer) { tensor.assign(tensor.size(), value); }
    }
  }
  /// Bits of one element, 4 to 32 bits wide.
  [[nodiscard]] static auto read(std::vector<std::byte> const& tensor, std::uint64_t element, std::uint32_t bits)
      -> std::uint32_t {
    auto out = 0U;
    for (auto i = 0U; i < bits; ++i) {
      auto const bit = element * bits + i;
      out |= (std::to_integer<unsigned>(tensor[bit / 8]) >> (bit % 8) & 1U) << i;
    }
    return out;
  }
  static void write(std::vector<std::byte>& tensor, std::uint64_t element, std::uint32_t bits, std::uint32_t value) {
    for (auto i = 0U; i < bits; ++i) {
      auto const bit = element * bits + i;
      auto const mask = std::byte{1} << (bit % 8);
      tensor[bit / 8] = (value >> i & 1U) != 0 ? tensor[bit / 8] | mask : tensor[bit / 8] & ~mask;
    }
  }
  /// Calls `visit(layer, plane, place)` for the elements of the first \p tokens tokens of \p block.
  template <class Visit>
  void for_each_element(quire::block_id block, std::uint32_t tokens, Visit&& visit) const {
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      for (auto const& plane : layers_[l].planes()) {
        for (auto t = 0U; t < (plane.block_tokens == 1 && tokens > 1 ? 1U : tokens); ++t) {
          for (auto h = 0U; h < plane.heads; ++h) {
            for (auto d = 0U; d < plane.dim; ++d) {
              visit(l, plane, quire::layout_place{.block = block, .token = quire::token_count{t}, .head = h, .dim = d});
            }
          }
        }
      }
    }
  }
  /// Copies tokens element by element.
  void model_copy(quire::block_id source, quire::block_id target, std::uint32_t tokens) {
    for_each_element(source, tokens, [&](std::size_t layer, quire::plane_layout const& plane, quire::layout_place at) {
      auto& tensor = tensors_[layer][plane.tensor];
      auto const value = read(tensor, plane.offset(at), plane.element_bits);
      at.block = target;
      write(tensor, plane.offset(at), plane.element_bits, value);
    });
  }
  /// Fills a block element by element.
  void model_fill(quire::block_id target, std::uint32_t value) {
    for_each_element(target, group_.block_tokens.value(),
                     [&](std::size_t layer, quire::plane_layout const& plane, quire::layout_place at) {
                       write(tensors_[layer][plane.tensor], plane.offset(at), plane.element_bits, value);
                     });
  }

private:
  std::vector<quire::view_layout> layers_;
  std::deque<std::vector<std::vector<std::byte>>> tensors_ = {};
  std::vector<quire::host_plane> planes_ = {};
  quire::host_group group_ = {};
};

} // namespace quire_test
