// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What is replayed: requests in order, each a list of segments of text.
///
/// ```text
///   prompt = segment │ segment │ segment           output of branch b = one segment of its own
///            id 0      id 14     id 15             never equal to anything else, until a later prompt contains it
/// ```
///
/// A segment stands for the first tokens of a text without end; the text is named by a number and made by `tokens.hpp`.
/// Two prompts share exactly the tokens of the segments they begin with alike.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace replay {

/// Names one text. The kinds of texts never meet.
enum class text_id : std::uint64_t {};

/// The text behind hash id \p id of a trace.
[[nodiscard]] constexpr auto hashed_text(std::uint64_t id) noexcept -> text_id { return text_id{id << 2U}; }
/// The text that only prompt \p number contains.
[[nodiscard]] constexpr auto own_text(std::uint64_t number) noexcept -> text_id { return text_id{(number << 2U) | 1U}; }
/// What branch \p branch of request \p number answers.
[[nodiscard]] constexpr auto answer_text(std::uint64_t number, std::uint32_t branch) noexcept -> text_id {
  return text_id{(((number << 8U) | branch) << 2U) | 2U};
}

/// The first \p tokens tokens of a text.
struct segment {
  text_id text{};
  std::uint32_t tokens = 0;
};

/// One request. Its prompt has at least one token.
struct request {
  double arrival = 0;            ///< [s] since the trace began.
  std::size_t first_segment = 0; ///< Of the prompt, in `trace::segments`.
  std::uint32_t segments = 0;    ///< Of the prompt.
  std::uint32_t prompt = 0;      ///< [tokens] P, the sum over the segments.
  std::uint32_t output = 0;      ///< [tokens] of each branch.
  std::uint32_t branches = 1;    ///< Answers to the same prompt: the first computes it, the others are forks.
  std::uint64_t number = 0;      ///< Names its outputs; its place in the file.
};

/// A trace.
struct trace {
  std::string name{};              ///< File, or what made it.
  bool has_ids = false;            ///< Prompts are made of hash ids, of `tokens_of_id` tokens each.
  std::vector<request> requests{}; ///< In order.
  std::vector<segment> segments{}; ///< Of all prompts.

  /// Tokens that a hash id stands for.
  static constexpr std::uint32_t tokens_of_id = 512;

  /// Segments of the prompt of \p r.
  [[nodiscard]] auto prompt_of(request const& r) const -> std::span<segment const> {
    return std::span{segments}.subspan(r.first_segment, r.segments);
  }
};

} // namespace replay
