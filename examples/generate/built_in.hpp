// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A small network that is computed, not trained, so that the example works without any file.
///
/// Its classifier turns each word of a short tale into the words that follow it there, and its layers are random: they
/// stir in the context, which decides where a word has several successors. What comes out is the tale, loosely told.

#include "generate/checkpoint.hpp"
#include "generate/network_shape.hpp"
#include "generate/tokenizer.hpp"

#include <quire/generate/random_state.hpp>

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility> // std::move
#include <vector>

namespace llama2 {

/// The tale. Its words are tokens, with the space before and the mark behind them.
inline constexpr std::string_view tale = " Paper remembers what voices forget. Loose sheets drift like leaves until "
                                         "somebody sews them together with blue thread, one "
                                         "gathering after another, and a quire becomes the book. Readers open it at "
                                         "different pages, yet every page they share is "
                                         "printed only once. When two stories begin alike their first lines stay "
                                         "common; where paths part, each writer takes fresh "
                                         "paper of his own. Nothing is copied twice, nothing lost, and whoever returns "
                                         "tomorrow finds yesterday's ink still dry. So "
                                         "this small machine keeps its memory in blocks, hands them out, counts who "
                                         "reads, and never lets anyone erase words that "
                                         "others need.";

/// A network and the words it speaks.
struct built_in {
  checkpoint file;
  tokenizer words;

  /// The words of the tale, in its order.
  [[nodiscard]] static auto pieces() -> std::vector<std::string> {
    auto out = std::vector<std::string>{};
    for (auto const c : tale) {
      if (c == ' ') { out.emplace_back(); }
      out.back() += c;
    }
    return out;
  }

  /// The vocabulary: bytes, letters, and every beginning of every word, so that pair merging reaches the word.
  [[nodiscard]] static auto vocabulary() -> tokenizer {
    auto tokens = std::vector<tokenizer::token>{{"<unk>", 0}, {"<s>", 0}, {"</s>", 0}};
    for (unsigned byte = 0; byte < 256; ++byte) { tokens.push_back({fmt::format("<0x{:02X}>", byte), 0}); }
    auto texts = std::set<std::string>{};
    for (auto c = ' '; c <= '~'; ++c) { texts.insert(std::string(1, c)); }
    for (auto const& piece : pieces()) {
      for (std::size_t n = 1; n <= piece.size(); ++n) { texts.insert(piece.substr(0, n)); }
    }
    for (auto const& text : texts) { tokens.push_back({text, static_cast<float>(text.size())}); }
    return tokenizer{tokens};
  }

  /// Computes it. The same numbers everywhere.
  [[nodiscard]] static auto make() -> built_in {
    auto words = vocabulary();
    auto const shape = network_shape{.dim = 64,
                                     .hidden = 128,
                                     .layers = 3,
                                     .heads = 8,
                                     .kv_heads = 4,
                                     .vocabulary = static_cast<std::uint32_t>(words.size()),
                                     .positions = 512};
    auto const at = checkpoint::parts{shape, false};
    auto values = std::vector<float>(at.size);
    auto random = quire::random_state{2024};
    auto const fill = [&](checkpoint::part const& p, double size) {
      for (std::size_t i = 0; i < p.size; ++i) {
        values[p.begin + i] = static_cast<float>((2.0 * random.uniform() - 1.0) * size);
      }
    };
    auto const ones = [&](checkpoint::part const& p) {
      for (std::size_t i = 0; i < p.size; ++i) { values[p.begin + i] = 1.0F; }
    };
    fill(at.embedding, 1.0);
    for (auto const* p : {&at.wq, &at.wk}) { fill(*p, 0.3); }
    for (auto const* p : {&at.wv, &at.wo, &at.w1, &at.w3}) { fill(*p, 0.15); }
    fill(at.w2, 0.06);
    for (auto const* p : {&at.attention_norm, &at.feed_norm, &at.final_norm}) { ones(*p); }
    auto const tale_pieces = pieces();
    for (std::size_t i = 0; i < tale_pieces.size(); ++i) { // the last word leads back to the first
      auto const from = static_cast<std::size_t>(words.find(tale_pieces[i]));
      auto const to = static_cast<std::size_t>(words.find(tale_pieces[(i + 1) % tale_pieces.size()]));
      for (std::size_t d = 0; d < shape.dim; ++d) {
        values[at.classifier.begin + to * shape.dim + d] += 0.4F * values[at.embedding.begin + from * shape.dim + d];
      }
    }
    return {checkpoint{shape, false, std::move(values)}, std::move(words)};
  }

  /// What it is asked to go on with unless the user has prompts: the first four share their beginning.
  [[nodiscard]] static auto prompts() -> std::vector<std::string> {
    auto const opening =
        std::string{"Paper remembers what voices forget. Loose sheets drift like leaves until somebody sews them "
                    "together with blue thread, one gathering after another, and a quire becomes the book."};
    return {opening,
            opening + " When two stories",
            opening + " So this small machine",
            opening + " Nothing is copied",
            "Readers open",
            "whoever returns"};
  }
};

} // namespace llama2
