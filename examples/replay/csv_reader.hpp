// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Reads a CSV of lengths, such as the Azure traces: a header that names `TIMESTAMP`, `ContextTokens` and
/// `GeneratedTokens` in any order, then a line per request. A timestamp is `2023-11-16 18:15:46.6805900`, or seconds.
/// Nothing is known about the text, so no two prompts share any: such a trace measures growth, admission and waste.

#include "replay/input_error.hpp"
#include "replay/jsonl_reader.hpp" // max_length
#include "replay/trace.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error> // std::errc
#include <utility>      // std::move
#include <vector>

namespace replay {

namespace detail {

[[nodiscard]] inline auto trimmed(std::string_view text) -> std::string_view {
  auto const first = text.find_first_not_of(" \t\r");
  return first == std::string_view::npos ? std::string_view{}
                                         : text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}
[[nodiscard]] inline auto columns_of(std::string_view line) -> std::vector<std::string_view> {
  std::vector<std::string_view> out;
  for (;;) {
    auto const comma = line.find(',');
    out.push_back(trimmed(line.substr(0, comma)));
    if (comma == std::string_view::npos) { return out; }
    line.remove_prefix(comma + 1);
  }
}
template <class T>
[[nodiscard]] auto number_in(std::string_view text) -> std::optional<T> {
  T out{};
  auto const end = text.data() + text.size();
  auto const [stop, error] = std::from_chars(text.data(), end, out);
  return error == std::errc{} && stop == end && !text.empty() ? std::optional{out} : std::nullopt;
}
/// [s] since 1970 of `YYYY-MM-DD hh:mm:ss[.fraction]`, or of a plain number.
[[nodiscard]] inline auto seconds_of(std::string_view text) -> std::optional<double> {
  if (auto const plain = number_in<double>(text)) { return *plain >= 0 && *plain < 1e15 ? plain : std::nullopt; }
  if (text.size() < 19 || text[4] != '-' || text[7] != '-' || (text[10] != ' ' && text[10] != 'T') || text[13] != ':' ||
      text[16] != ':') {
    return std::nullopt;
  }
  auto const year = number_in<int>(text.substr(0, 4));
  auto const month = number_in<unsigned>(text.substr(5, 2));
  auto const day = number_in<unsigned>(text.substr(8, 2));
  auto const hour = number_in<unsigned>(text.substr(11, 2));
  auto const minute = number_in<unsigned>(text.substr(14, 2));
  auto const second = number_in<double>(text.substr(17));
  if (!year || !month || !day || !hour || !minute || !second || *hour > 23 || *minute > 59 ||
      !(*second >= 0 && *second < 61)) {
    return std::nullopt;
  }
  auto const date = std::chrono::year{*year} / std::chrono::month{*month} / std::chrono::day{*day};
  if (!date.ok()) { return std::nullopt; }
  return static_cast<double>(std::chrono::sys_days{date}.time_since_epoch().count()) * 86400 + *hour * 3600.0 +
         *minute * 60.0 + *second;
}

} // namespace detail

/// Reads up to \p limit requests. \throws input_error naming file, line and field of the first mistake
[[nodiscard]] inline auto read_csv(std::istream& in, std::string name, std::size_t limit) -> trace {
  constexpr std::array<std::string_view, 3> fields{"TIMESTAMP", "ContextTokens", "GeneratedTokens"};
  auto out = trace{.name = std::move(name)};
  auto text = std::string{};
  std::array<std::size_t, 3> column{};
  std::size_t width = 0;
  for (std::size_t line = 1; out.requests.size() < limit && std::getline(in, text); ++line) {
    auto const at = trace_place{out.name, line};
    if (detail::trimmed(text).empty()) { continue; }
    auto const values = detail::columns_of(text);
    if (width == 0) { // the header
      width = values.size();
      for (std::size_t i = 0; i < fields.size(); ++i) {
        auto const found = std::find(values.begin(), values.end(), fields[i]);
        if (found == values.end()) { throw field_error(at, fields[i], "missing from the header of a CSV trace"); }
        column[i] = static_cast<std::size_t>(found - values.begin());
      }
      continue;
    }
    auto const value = [&](std::size_t i) {
      if (column[i] >= values.size()) { throw field_error(at, fields[i], "missing"); }
      return values[column[i]];
    };
    auto const length = [&](std::size_t i, std::uint32_t least) {
      auto const n = detail::number_in<std::uint32_t>(value(i));
      if (!n || *n < least || *n > max_length) {
        throw field_error(at, fields[i],
                          "\"" + std::string{value(i)} + "\" is not a whole number from " + std::to_string(least) +
                              " to " + std::to_string(max_length));
      }
      return *n;
    };
    auto const arrival = detail::seconds_of(value(0));
    if (!arrival) {
      throw field_error(at, fields[0], "\"" + std::string{value(0)} + "\" is no time such as 2023-11-16 18:15:46.68");
    }
    auto const number = out.requests.size();
    auto const prompt = length(1, 1);
    out.requests.push_back({.arrival = *arrival,
                            .first_segment = number,
                            .segments = 1,
                            .prompt = prompt,
                            .output = length(2, 0),
                            .number = number});
    out.segments.push_back({own_text(number), prompt});
  }
  if (!out.requests.empty()) {
    auto const start = std::min_element(out.requests.begin(), out.requests.end(), [](auto const& a, auto const& b) {
                         return a.arrival < b.arrival;
                       })->arrival;
    for (auto& r : out.requests) { r.arrival -= start; }
  }
  return out;
}

} // namespace replay
