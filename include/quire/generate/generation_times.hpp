// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The times of one generation.
///
/// ```text
///   entry ──queue──▶ admitted ──prefill──▶ first token ──▶ … ──▶ last token
///   ├─────────────── TTFT ────────────────┤├── (G − 1) · TPOT ──┤
///   ├────────────────────── end to end ─────────────────────────┤
/// ```

#include <quire/core/types.hpp>
#include <quire/generate/instant.hpp>

#include <optional>

namespace quire {

/// Four instants and a count; everything else is a difference of them, so that nothing is added twice.
/// \source S40
struct generation_times {
  instant entry{};                          ///< The agreed entry: where waiting begins.
  std::optional<instant> admitted = {};     ///< When it got its place in the cache, the first time.
  std::optional<instant> first_output = {}; ///< When the first output was chosen.
  std::optional<instant> last_output = {};  ///< When the latest output was chosen.
  token_count outputs{};                    ///< [tokens] G so far.

  /// [ns] Waiting before admission: a part of `ttft`, not beside it.
  [[nodiscard]] auto queue() const noexcept -> std::optional<nanosecond_count> { return since_entry(admitted); }
  /// [ns] From the entry to the first output, queueing and prefill included.
  [[nodiscard]] auto ttft() const noexcept -> std::optional<nanosecond_count> { return since_entry(first_output); }
  /// [ns] From the entry to the last output.
  [[nodiscard]] auto end_to_end() const noexcept -> std::optional<nanosecond_count> { return since_entry(last_output); }
  /// [ns] Mean time of an output after the first; nothing below two outputs.
  [[nodiscard]] auto tpot() const noexcept -> std::optional<double> {
    if (outputs.value() < 2 || !first_output || !last_output) { return std::nullopt; }
    return static_cast<double>((*last_output - *first_output).value()) / static_cast<double>(outputs.value() - 1);
  }
  /// Same times.
  friend auto operator==(generation_times const&, generation_times const&) noexcept -> bool = default;

private:
  [[nodiscard]] auto since_entry(std::optional<instant> const& at) const noexcept -> std::optional<nanosecond_count> {
    if (!at) { return std::nullopt; }
    return *at - entry;
  }
};

} // namespace quire
