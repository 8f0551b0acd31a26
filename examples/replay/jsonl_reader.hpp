// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Reads a Mooncake trace: one JSON object per line with `timestamp` [ms], `input_length` and `output_length` [tokens] and
/// `hash_ids`, one id per 512 tokens of the prompt. The last id covers only the tokens that remain.

#include "replay/input_error.hpp"
#include "replay/trace.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <istream>
#include <limits>
#include <string>
#include <utility> // std::move

namespace replay {

namespace detail {

/// \p value as it can be shown in a message.
[[nodiscard]] inline auto shown(nlohmann::json const& value) -> std::string {
  auto text = value.is_primitive() ? value.dump() : std::string{value.type_name()};
  return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}
/// Parses \p line. What is broken is named by the last key before it.
[[nodiscard]] inline auto parse_object(std::string const& line, trace_place at) -> nlohmann::json {
  auto parsed = nlohmann::json::parse(line, nullptr, false);
  if (parsed.is_discarded()) {
    auto key = std::string{"timestamp"}; // the first one, unless there is another
    auto const note = [&](int, nlohmann::json::parse_event_t event, nlohmann::json& value) {
      if (event == nlohmann::json::parse_event_t::key) { key = value.get<std::string>(); }
      return true;
    };
    try {
      auto const again = nlohmann::json::parse(line, note);
    } catch (nlohmann::json::parse_error const& error) {
      throw field_error(at, key, "here the line stops being valid JSON (byte " + std::to_string(error.byte) + ")");
    } catch (nlohmann::json::exception const&) { throw field_error(at, key, "a number out of range"); }
  }
  if (!parsed.is_object()) {
    throw field_error(at, "timestamp", "missing: the line is no object but " + std::string{parsed.type_name()});
  }
  return parsed;
}
[[nodiscard]] inline auto member(nlohmann::json const& object, char const* field, trace_place at)
    -> nlohmann::json const& {
  auto const found = object.find(field);
  if (found == object.end()) { throw field_error(at, field, "missing"); }
  return *found;
}
[[nodiscard]] inline auto whole_number(nlohmann::json const& value, char const* field, std::uint64_t least,
                                       std::uint64_t most, trace_place at) -> std::uint64_t {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() < least || value.get<std::uint64_t>() > most) {
    throw field_error(at, field,
                      shown(value) + " is not a whole number from " + std::to_string(least) + " to " +
                          std::to_string(most));
  }
  return value.get<std::uint64_t>();
}

} // namespace detail

/// Longest prompt or output that is accepted [tokens].
inline constexpr std::uint32_t max_length = 1U << 28U;

/// Reads up to \p limit requests. \throws input_error naming file, line and field of the first mistake
[[nodiscard]] inline auto read_jsonl(std::istream& in, std::string name, std::size_t limit) -> trace {
  constexpr auto max_id = (std::uint64_t{1} << 53U) - 1;
  auto out = trace{.name = std::move(name), .has_ids = true};
  auto text = std::string{};
  for (std::size_t line = 1; out.requests.size() < limit && std::getline(in, text); ++line) {
    if (text.find_first_not_of(" \t\r") == std::string::npos) { continue; }
    auto const at = trace_place{out.name, line};
    auto const object = detail::parse_object(text, at);
    auto const& timestamp = detail::member(object, "timestamp", at);
    if (!timestamp.is_number() || !(timestamp.get<double>() >= 0)) {
      throw field_error(at, "timestamp", detail::shown(timestamp) + " is not a number of milliseconds");
    }
    auto r = request{
        .arrival = timestamp.get<double>() / 1000, .first_segment = out.segments.size(), .number = out.requests.size()};
    r.prompt = static_cast<std::uint32_t>(
        detail::whole_number(detail::member(object, "input_length", at), "input_length", 1, max_length, at));
    r.output = static_cast<std::uint32_t>(
        detail::whole_number(detail::member(object, "output_length", at), "output_length", 0, max_length, at));
    auto const& ids = detail::member(object, "hash_ids", at);
    auto const wanted = (std::uint64_t{r.prompt} + trace::tokens_of_id - 1) / trace::tokens_of_id;
    if (!ids.is_array()) { throw field_error(at, "hash_ids", "not an array"); }
    if (ids.size() != wanted) {
      throw field_error(at, "hash_ids",
                        std::to_string(ids.size()) + " ids, but " + std::to_string(r.prompt) + " tokens are " +
                            std::to_string(wanted) + " blocks of " + std::to_string(trace::tokens_of_id));
    }
    auto left = r.prompt;
    for (auto const& id : ids) {
      auto const tokens = left < trace::tokens_of_id ? left : trace::tokens_of_id;
      out.segments.push_back({hashed_text(detail::whole_number(id, "hash_ids", 0, max_id, at)), tokens});
      left -= tokens;
    }
    r.segments = static_cast<std::uint32_t>(ids.size());
    out.requests.push_back(r);
  }
  return out;
}

} // namespace replay
