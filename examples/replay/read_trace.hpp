// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Opens a trace file and reads it with the reader for its format. The extension tells which (.jsonl, .json, .csv), or else
/// the first character: `{` is JSON lines.

#include "replay/csv_reader.hpp"
#include "replay/input_error.hpp"
#include "replay/jsonl_reader.hpp"
#include "replay/trace.hpp"

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace replay {

/// Reads up to \p limit requests of \p file. \throws input_error if it cannot be read, is empty or malformed
[[nodiscard]] inline auto read_trace(std::string const& file, std::size_t limit) -> trace {
  auto ignored = std::error_code{};
  if (std::filesystem::is_directory(file, ignored)) {
    throw input_error{file + ": this is a folder, a trace is a file"};
  }
  auto in = std::ifstream{file};
  if (!in) { throw input_error{file + ": there is no such file, or it cannot be read"}; }
  auto const extension = std::filesystem::path{file}.extension();
  auto json = extension == ".jsonl" || extension == ".json";
  if (!json && extension != ".csv") {
    in >> std::ws;
    json = in.peek() == '{';
    in.clear();
    in.seekg(0);
  }
  auto out = json ? read_jsonl(in, file, limit) : read_csv(in, file, limit);
  if (in.bad()) { throw input_error{file + ": reading failed"}; }
  if (out.requests.empty()) { throw input_error{file + ": the trace is empty, there is nothing to replay"}; }
  return out;
}

} // namespace replay
