// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Text to tokens and back: byte-pair encoding with scores, in the file format of llama2.c.
///
///     int32 longest │ float32 score, int32 length, bytes │ … once per token
///
/// Tokens 0, 1 and 2 are <unk>, <s> (begin, and end of a story) and </s>; 3 … 258 stand for single bytes, "<0x41>".

#include "generate/input_error.hpp"
#include "generate/read_file.hpp"

#include <quire/core/types.hpp>

#include <algorithm> // std::min
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility> // std::move
#include <vector>

namespace llama2 {

/// The token that begins every text, and ends a story.
inline constexpr quire::token_id begin_token = 1;

/// A vocabulary.
class tokenizer {
public:
  /// A token: what it stands for, and how much it is worth to make it.
  struct token {
    std::string text;
    float score = 0.0F;
  };

  /// Takes over \p tokens, in the order of their ids.
  explicit tokenizer(std::vector<token> tokens) : tokens_{std::move(tokens)} {
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      ids_.try_emplace(tokens_[i].text, static_cast<quire::token_id>(i)); // the first of equal texts
    }
  }
  /// Reads \p vocabulary tokens from a file. \throws input_error that says what is wrong with it
  [[nodiscard]] static auto read(std::string const& path, std::uint32_t vocabulary) -> tokenizer {
    auto const bytes = read_file(path);
    auto out = std::vector<token>{};
    std::size_t at = 4;
    for (std::uint32_t i = 0; i < vocabulary; ++i) {
      auto const size = bytes.size() < at + 8 ? std::int32_t{-1} : int_at(bytes, at + 4);
      if (size < 0 || bytes.size() - at - 8 < static_cast<std::size_t>(size)) {
        throw input_error{path + ": token " + std::to_string(i) + " of " + std::to_string(vocabulary) +
                          " is cut off: truncated, or the tokenizer of another model"};
      }
      auto const* const text = static_cast<char const*>(static_cast<void const*>(bytes.data() + at + 8));
      out.push_back({std::string(text, static_cast<std::size_t>(size)), float_at(bytes, at)});
      at += 8 + static_cast<std::size_t>(size);
    }
    if (at != bytes.size()) {
      throw input_error{path + ": " + std::to_string(bytes.size() - at) + " bytes behind token " +
                        std::to_string(vocabulary) + ": the tokenizer of another model"};
    }
    return tokenizer{std::move(out)};
  }

  /// V.
  [[nodiscard]] auto size() const noexcept -> std::size_t { return tokens_.size(); }
  /// The tokens in the order of their ids.
  [[nodiscard]] auto tokens() const noexcept -> std::vector<token> const& { return tokens_; }
  /// The token whose text is \p text, −1 if there is none.
  [[nodiscard]] auto find(std::string const& text) const -> quire::token_id {
    auto const found = ids_.find(text);
    return found == ids_.end() ? -1 : found->second;
  }

  /// \p text as tokens, `begin_token` first. Merges the pair of the highest score until none is left.
  /// \throws input_error if the vocabulary cannot spell it. \complexity O(text²)
  [[nodiscard]] auto encode(std::string_view text) const -> std::vector<quire::token_id> {
    auto out = std::vector<quire::token_id>{begin_token};
    if (!text.empty()) { spell(" ", out); }
    for (std::size_t i = 0; i < text.size();) {
      auto const size = std::min(character_bytes(text[i]), text.size() - i);
      spell(std::string{text.substr(i, size)}, out);
      i += size;
    }
    while (merge_best(out)) {}
    return out;
  }
  /// Text of \p id behind \p before: a story's first space is not printed.
  /// \throws input_error if there is no such token
  [[nodiscard]] auto text_of(quire::token_id id, quire::token_id before) const -> std::string {
    if (id < 0 || static_cast<std::size_t>(id) >= tokens_.size()) {
      throw input_error{"there is no token " + std::to_string(id) + ": the vocabulary has " +
                        std::to_string(tokens_.size())};
    }
    auto text = tokens_[static_cast<std::size_t>(id)].text;
    if (before == begin_token && text.starts_with(' ')) { text.erase(0, 1); }
    if (text.size() == 6 && text.starts_with("<0x")) {
      unsigned byte = 0;
      std::from_chars(text.data() + 3, text.data() + 5, byte, 16);
      return {static_cast<char>(static_cast<unsigned char>(byte))};
    }
    return text;
  }
  /// \p ids as text, read behind \p before. \throws input_error if a token does not exist
  [[nodiscard]] auto decode(std::vector<quire::token_id> const& ids, quire::token_id before = begin_token) const
      -> std::string {
    auto out = std::string{};
    for (auto const id : ids) {
      out += text_of(id, before);
      before = id;
    }
    return out;
  }

private:
  /// [bytes] of the UTF-8 character that begins with \p lead.
  [[nodiscard]] static auto character_bytes(char lead) noexcept -> std::size_t {
    auto const b = static_cast<unsigned char>(lead);
    return b >= 0xF0 ? 4 : b >= 0xE0 ? 3 : b >= 0xC0 ? 2 : 1;
  }
  auto spell(std::string const& character, std::vector<quire::token_id>& out) const -> void {
    if (auto const id = find(character); id >= 0) {
      out.push_back(id);
      return;
    }
    for (auto const c : character) {
      auto const id = quire::token_id{static_cast<unsigned char>(c)} + 3;
      if (static_cast<std::size_t>(id) >= tokens_.size()) {
        throw input_error{"the vocabulary cannot spell \"" + character + '"'};
      }
      out.push_back(id);
    }
  }
  auto merge_best(std::vector<quire::token_id>& ids) const -> bool {
    auto best_id = quire::token_id{-1};
    auto best_score = 0.0F;
    std::size_t best_at = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      auto const id =
          find(tokens_[static_cast<std::size_t>(ids[i])].text + tokens_[static_cast<std::size_t>(ids[i + 1])].text);
      if (id < 0) { continue; }
      auto const score = tokens_[static_cast<std::size_t>(id)].score;
      if (best_id < 0 || score > best_score) {
        best_id = id;
        best_score = score;
        best_at = i;
      }
    }
    if (best_id < 0) { return false; }
    ids[best_at] = best_id;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best_at) + 1);
    return true;
  }

  std::vector<token> tokens_;
  std::unordered_map<std::string, quire::token_id> ids_;
};

} // namespace llama2
