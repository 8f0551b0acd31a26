// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The oracle backend over memory of its own, for tests.

#include <quire/attention/oracle_backend.hpp>
#include <quire/view/view_layout.hpp>

#include "mathematics/attention_conformance.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

namespace quire_test {

/// Which axis order the planes have.
enum class plane_order : std::uint8_t { nhd, hnd, split };

/// Tensors and backend of one group.
template <quire::dtype Storage = quire::dtype::f64, plane_order Order = plane_order::nhd>
class oracle_subject {
public:
  using real = double;
  static constexpr auto storage = Storage;
  static constexpr auto tolerance = 1e-12;

  explicit oracle_subject(backend_plan const& plan) : backend_{layers(plan)} {}

  [[nodiscard]] auto backend() -> quire::oracle_backend& { return backend_; }
  void fill(std::byte value) {
    for (auto& tensor : tensors_) { tensor.assign(tensor.size(), value); }
  }
  [[nodiscard]] auto tensors() const -> std::deque<std::vector<std::byte>> const& { return tensors_; }

private:
  auto plane(backend_plan const& plan, quire::layout_role role, std::uint32_t heads, std::uint32_t width)
      -> quire::oracle_plane {
    auto const shape = quire::layout_shape{.role = role,
                                           .blocks = quire::block_count{plan.blocks},
                                           .block_tokens = quire::token_count{plan.block_tokens},
                                           .heads = heads,
                                           .dim = width,
                                           .element_bits = quire::bits_of(Storage)};
    auto const layout = Order == plane_order::nhd   ? quire::plane_layout::nhd(shape)
                        : Order == plane_order::hnd ? quire::plane_layout::hnd(shape)
                                                    : quire::plane_layout::split(shape, 4);
    auto& tensor = tensors_.emplace_back(quire::packed_bytes(Storage, layout.last_offset() + 1).value());
    return {.layout = layout, .type = Storage, .tensor = tensor};
  }
  auto layers(backend_plan const& plan) -> std::vector<quire::oracle_layer> {
    std::vector<quire::oracle_layer> out;
    for (auto const& p : plan.layers) {
      out.push_back({.params = p,
                     .key = plane(plan, quire::layout_role::key, p.kv_heads, p.key_width),
                     .value = plane(plan, quire::layout_role::value, p.kv_heads, p.value_width)});
    }
    return out;
  }

  std::deque<std::vector<std::byte>> tensors_ = {};
  quire::oracle_backend backend_;
};

} // namespace quire_test
