// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What a model and a cache can serve at all, and what is said to a request beyond it.

#include <quire/core/errc.hpp>
#include <quire/core/types.hpp>
#include <quire/generate/generation_request.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace quire::detail {

/// \cond INTERNAL
/// Limits that no waiting removes.
struct request_limits {
  std::size_t vocabulary;  // V
  token_count positions{}; // of the model
  std::uint64_t pool;      // [tokens]

  /// Why \p request can never be served; nothing if it can. \throws config_error if its sampling options are impossible
  [[nodiscard]] auto fault_of(generation_request const& request) const -> std::optional<generation_refusal> {
    auto const& s = request.state;
    s.sampling.validate();
    if (s.prompt.empty()) { return plain(errc::empty_prompt); }
    if (s.stop.limit == token_count{} || s.output.size() >= s.stop.limit.value()) { return plain(errc::zero_output); }
    for (auto const* text : {&s.prompt, &s.output}) {
      if (auto unknown = unknown_token(*text)) { return unknown; }
    }
    auto const budget = std::uint64_t{s.prompt.size()} + s.stop.limit.value();
    auto const covers = budget - (request.last_output == last_output_rule::leave ? 1U : 0U); // the last one is not fed
    if (covers > positions.value()) {
      return generation_refusal{errc::never_fits, std::to_string(s.prompt.size()) + " prompt tokens and " +
                                                      std::to_string(s.stop.limit.value()) + " outputs need " +
                                                      std::to_string(covers) + " positions and the model has " +
                                                      std::to_string(positions.value()) +
                                                      ": shorten the prompt or ask for fewer outputs"};
    }
    if (budget > pool) {
      return generation_refusal{errc::never_fits, "prompt and outputs need " + std::to_string(budget) +
                                                      " positions and the pool has " + std::to_string(pool) +
                                                      ": shorten the request or give the pool more blocks"};
    }
    return std::nullopt;
  }

private:
  [[nodiscard]] static auto plain(errc code) -> generation_refusal { return {code, std::string{message(code)}}; }
  [[nodiscard]] auto unknown_token(std::span<token_id const> text) const -> std::optional<generation_refusal> {
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] >= 0 && static_cast<std::size_t>(text[i]) < vocabulary) { continue; }
      return generation_refusal{errc::out_of_range, "token " + std::to_string(text[i]) + " at place " +
                                                        std::to_string(i) + " is unknown: the vocabulary has " +
                                                        std::to_string(vocabulary) + " tokens"};
    }
    return std::nullopt;
  }
};
/// \endcond

} // namespace quire::detail
