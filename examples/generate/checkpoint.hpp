// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Weights of a network, as llama2.c stores them: 7 int32, then every matrix in float32, nothing else.
///
///     dim hidden layers heads kv_heads ±vocabulary positions │ embedding │ attention norms │ wq │ wk │ wv │ wo │
///     feed-forward norms │ w1 │ w2 │ w3 │ final norm │ two unused tables │ classifier, if the vocabulary is negative

#include "generate/input_error.hpp"
#include "generate/network_shape.hpp"
#include "generate/read_file.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility> // std::move
#include <vector>

namespace llama2 {

/// A matrix or a stack of them, row by row.
using weights = std::span<float const>;

/// A network at rest.
class checkpoint {
public:
  /// Where one part begins and how many floats it has.
  struct part {
    std::size_t begin = 0;
    std::size_t size = 0;
  };
  /// Every part of the file, in its order.
  struct parts {
    part embedding, attention_norm, wq, wk, wv, wo, feed_norm, w1, w2, w3, final_norm, unused, classifier;
    std::size_t size = 0;

    /// The parts of a network of \p shape.
    parts(network_shape const& s, bool tied) {
      auto const take = [this](std::size_t a, std::size_t b, std::size_t c = 1) {
        auto const out = part{size, a * b * c};
        size += out.size;
        return out;
      };
      embedding = take(s.vocabulary, s.dim);
      attention_norm = take(s.layers, s.dim);
      wq = take(s.layers, s.dim, s.dim);
      wk = take(s.layers, s.kv_dim(), s.dim);
      wv = take(s.layers, s.kv_dim(), s.dim);
      wo = take(s.layers, s.dim, s.dim);
      feed_norm = take(s.layers, s.dim);
      w1 = take(s.layers, s.hidden, s.dim);
      w2 = take(s.layers, s.dim, s.hidden);
      w3 = take(s.layers, s.hidden, s.dim);
      final_norm = take(1, s.dim);
      unused = take(s.positions, s.head_size());
      classifier = tied ? embedding : take(s.vocabulary, s.dim);
    }
  };

  /// Takes over \p values. \pre `values.size() == parts{shape, tied}.size`
  checkpoint(network_shape shape, bool tied, std::vector<float> values)
      : shape_{shape}, parts_{shape, tied}, values_{std::move(values)} {}

  /// Reads a file. \throws input_error that says what is wrong with it
  [[nodiscard]] static auto read(std::string const& path) -> checkpoint {
    auto const bytes = read_file(path);
    if (bytes.size() < header_bytes) {
      fail(path, "has " + std::to_string(bytes.size()) +
                     " bytes, less than the header of 28: this is no llama2.c checkpoint");
    }
    auto const field = [&](std::size_t i, char const* name, std::int64_t most) {
      auto const value = std::int64_t{int_at(bytes, 4 * i)};
      if (value < 1 || value > most) {
        fail(path, std::string{"the header says "} + name + " = " + std::to_string(value) + ", which must be in 1 … " +
                       std::to_string(most) + ": corrupt, or no llama2.c checkpoint of the first version");
      }
      return static_cast<std::uint32_t>(value);
    };
    auto const vocabulary = std::int64_t{int_at(bytes, 20)};
    auto const tied = vocabulary > 0;
    auto s = network_shape{.dim = field(0, "dim", 1 << 16),
                           .hidden = field(1, "hidden", 1 << 18),
                           .layers = field(2, "layers", 1 << 10),
                           .heads = field(3, "heads", 1 << 12),
                           .kv_heads = field(4, "kv_heads", 1 << 12)};
    if (vocabulary == 0 || std::abs(vocabulary) > (1 << 22)) {
      fail(path, "the header says vocabulary = " + std::to_string(vocabulary) + ": corrupt");
    }
    s.vocabulary = static_cast<std::uint32_t>(std::abs(vocabulary));
    s.positions = field(6, "positions", 1 << 22);
    if (s.dim % s.heads != 0 || s.head_size() % 2 != 0 || s.heads % s.kv_heads != 0) {
      fail(path, "dim " + std::to_string(s.dim) + ", heads " + std::to_string(s.heads) + " and kv_heads " +
                     std::to_string(s.kv_heads) + " do not divide: corrupt");
    }
    auto const needed = header_bytes + 4 * parts{s, tied}.size; // below 2^62: each field is bounded
    if (bytes.size() != needed) {
      fail(path, std::string{bytes.size() < needed ? "truncated" : "oversized"} + ": it has " +
                     std::to_string(bytes.size()) + " bytes and its header asks for " + std::to_string(needed));
    }
    auto values = std::vector<float>((bytes.size() - header_bytes) / 4);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = float_at(bytes, header_bytes + 4 * i);
      if (!std::isfinite(values[i])) {
        fail(path, "weight number " + std::to_string(i) + " is no finite number: corrupt");
      }
    }
    return checkpoint{s, tied, std::move(values)};
  }

  /// Lets the odd layers see \p rule only. Where it was not trained so, that is another model.
  auto let_odd_layers_see(quire::attention_rule const& rule) -> void { shape_.odd = rule; }
  /// Sizes.
  [[nodiscard]] auto shape() const noexcept -> network_shape const& { return shape_; }
  /// All weights, in the order of the file.
  [[nodiscard]] auto values() const noexcept -> weights { return values_; }
  /// Where the parts lie.
  [[nodiscard]] auto layout() const noexcept -> parts const& { return parts_; }
  /// A whole part.
  [[nodiscard]] auto whole(part const& p) const noexcept -> weights {
    return weights{values_}.subspan(p.begin, p.size);
  }
  /// The share of one layer in a part.
  [[nodiscard]] auto of_layer(part const& p, std::uint32_t layer) const noexcept -> weights {
    auto const each = p.size / shape_.layers;
    return whole(p).subspan(layer * each, each);
  }

private:
  static constexpr std::size_t header_bytes = 28;
  [[noreturn]] static void fail(std::string const& path, std::string const& what) {
    throw input_error{path + ": " + what};
  }

  network_shape shape_;
  parts parts_;
  std::vector<float> values_;
};

} // namespace llama2
