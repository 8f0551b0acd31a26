// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A whole file in memory, and little-endian numbers in it.

#include "generate/input_error.hpp"

#include <bit> // std::bit_cast
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ios>
#include <span>
#include <string>
#include <system_error>
#include <vector>

namespace llama2 {

/// The bytes of \p path. \throws input_error if it cannot be read
[[nodiscard]] inline auto read_file(std::string const& path) -> std::vector<std::byte> {
  auto error = std::error_code{};
  auto const size = std::filesystem::file_size(path, error);
  if (error) { throw input_error{path + ": cannot be read: " + error.message()}; }
  auto out = std::vector<std::byte>(static_cast<std::size_t>(size));
  auto file = std::ifstream{path, std::ios::binary};
  auto* const to = static_cast<char*>(static_cast<void*>(out.data()));
  if (!file || !file.read(to, static_cast<std::streamsize>(out.size()))) {
    throw input_error{path + ": cannot be read"};
  }
  return out;
}

/// The 4 bytes at \p at as a number. \pre they exist
[[nodiscard]] inline auto word_at(std::span<std::byte const> bytes, std::size_t at) noexcept -> std::uint32_t {
  auto out = std::uint32_t{0};
  for (unsigned i = 0; i < 4; ++i) { out |= std::to_integer<std::uint32_t>(bytes[at + i]) << (8U * i); }
  return out;
}
/// The same as a signed number.
[[nodiscard]] inline auto int_at(std::span<std::byte const> bytes, std::size_t at) noexcept -> std::int32_t {
  return std::bit_cast<std::int32_t>(word_at(bytes, at));
}
/// The same as a binary32.
[[nodiscard]] inline auto float_at(std::span<std::byte const> bytes, std::size_t at) noexcept -> float {
  return std::bit_cast<float>(word_at(bytes, at));
}

} // namespace llama2
