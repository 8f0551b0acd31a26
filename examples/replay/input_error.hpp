// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Input that cannot be replayed. The program prints what is wrong and ends with exit code 2.

#include <stdexcept>
#include <string>
#include <string_view>

namespace replay {

/// Something about the arguments or the trace is wrong; the text says what, and what would be right.
struct input_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Where in a trace something is wrong.
struct trace_place {
  std::string_view file;
  std::size_t line = 0; ///< From 1.
};

/// A malformed field, by file, line and name.
[[nodiscard]] inline auto field_error(trace_place at, std::string_view field, std::string_view what) -> input_error {
  return input_error{std::string{at.file} + ":" + std::to_string(at.line) + ": field \"" + std::string{field} +
                     "\": " + std::string{what}};
}

} // namespace replay
