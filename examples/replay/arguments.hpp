// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The command line.

#include "replay/input_error.hpp"
#include "replay/run_replay.hpp" // eviction_names
#include "replay/trace.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <system_error> // std::errc
#include <vector>

namespace replay {

/// What the user asked for.
struct arguments {
  std::string trace;                 ///< File; empty = the built-in workload.
  std::uint32_t block_tokens = 0;    ///< [tokens] per block; 0 = the default.
  std::vector<std::uint32_t> blocks; ///< Sizes of the pool; empty = by memory, or by the size of the trace.
  std::string memory;                ///< Amount, with `model`.
  std::string model;                 ///< Name of a preset.
  std::vector<std::string> eviction; ///< Names of policies.
  std::string json;                  ///< File; empty = none.
  std::string csv;                   ///< File; empty = none.
  std::string chart;                 ///< File; empty = none.
  bool whole_blocks = false;         ///< The comparison mode.
  bool overlap = false;              ///< Requests at the same time.
  bool floor = false;                ///< Measure the floor too.
  double prefill_rate = 10'000;      ///< [tokens/s] with `overlap`.
  double decode_rate = 40;           ///< [tokens/s] with `overlap`.
  std::size_t limit = std::numeric_limits<std::size_t>::max(); ///< Requests.
  std::uint64_t seed = 1;                                      ///< Of the built-in workload.
};

namespace detail {

/// The whole number that \p text is. \throws input_error otherwise
template <class T>
[[nodiscard]] auto count_of(std::string_view option, std::string_view text, T least, T most) -> T {
  T out{};
  auto const* const end = text.data() + text.size();
  auto const [stop, error] = std::from_chars(text.data(), end, out);
  if (error != std::errc{} || stop != end || out < least || out > most) {
    throw input_error{std::string{option} + ": \"" + std::string{text} + "\" is not a whole number from " +
                      std::to_string(least) + " to " + std::to_string(most)};
  }
  return out;
}

} // namespace detail

/// Largest pool that can be asked for [blocks].
inline constexpr std::uint32_t max_blocks = 0x7fff'fff0U;

/// Reads the command line. \throws input_error if an argument makes no sense; CLI::ParseError for the rest, and for --help
[[nodiscard]] inline auto read_arguments(int argc, char const* const* argv) -> arguments {
  auto out = arguments{};
  auto app =
      CLI::App{"Replays a trace of requests, or a workload of agents and chats, through the quire cache.", "replay"};
  auto blocks = std::vector<std::string>{};
  std::string block_tokens;
  std::string limit;
  std::string seed;
  app.add_option("--trace", out.trace,
                 "Mooncake JSON lines (timestamp, input_length, output_length, hash_ids), or a CSV of lengths "
                 "(TIMESTAMP, ContextTokens, GeneratedTokens). Without it a workload is made")
      ->type_name("FILE");
  app.add_option("--block-tokens", block_tokens, "tokens per block (default 16)")->type_name("N");
  app.add_option("--blocks", blocks,
                 "sizes of the pool in blocks (default: 2, 5 and 20 % of the trace's different blocks)")
      ->delimiter(',')
      ->type_name("N,N,...");
  app.add_option("--memory", out.memory, "size of the pool as memory, e.g. 8GiB; needs --model")->type_name("SIZE");
  app.add_option("--model", out.model, "model preset whose blocks fill the memory, e.g. llama3-8b")
      ->type_name("PRESET");
  app.add_option("--eviction", out.eviction, "policies out of lru, fifo, lfu, optimal (default: all)")
      ->delimiter(',')
      ->type_name("NAME,...");
  app.add_option("--json", out.json, "write the figures as JSON")->type_name("FILE");
  app.add_option("--csv", out.csv, "write the figures as CSV")->type_name("FILE");
  app.add_option("--chart", out.chart, "draw hit rate over size as SVG")->type_name("FILE.svg")->take_last();
  app.add_flag("--whole-blocks", out.whole_blocks,
               "comparison mode: every hash id is one block of 512 tokens, no outputs, one request at a time");
  app.add_flag("--overlap", out.overlap, "requests run at the same time, by their time of arrival");
  app.add_option("--prefill-rate", out.prefill_rate,
                 "tokens per second of one request's prompt, with --overlap (default 10000)")
      ->type_name("R");
  app.add_option("--decode-rate", out.decode_rate,
                 "tokens per second of one request's output, with --overlap (default 40)")
      ->type_name("R");
  app.add_flag("--floor", out.floor, "with --whole-blocks: time the least that the replay must do, too");
  app.add_option("--limit", limit, "replay only the first N requests")->type_name("N");
  app.add_option("--seed", seed, "seed of the workload that is made without --trace (default 1)")->type_name("N");
  try {
    app.parse(argc, argv);
  } catch (CLI::CallForHelp const& error) {
    app.exit(error); // prints it
    throw;
  }

  constexpr auto no_limit = std::numeric_limits<std::uint64_t>::max();
  if (std::find(blocks.begin(), blocks.end(), "0") != blocks.end()) {
    throw input_error{"--blocks: a pool of 0 blocks holds nothing: use at least 1"};
  }
  for (auto const& n : blocks) { out.blocks.push_back(detail::count_of<std::uint32_t>("--blocks", n, 1, max_blocks)); }
  if (!block_tokens.empty()) {
    out.block_tokens = detail::count_of<std::uint32_t>("--block-tokens", block_tokens, 1, 1U << 20U);
  }
  if (!limit.empty()) { out.limit = detail::count_of<std::uint64_t>("--limit", limit, 1, no_limit); }
  if (!seed.empty()) { out.seed = detail::count_of<std::uint64_t>("--seed", seed, 0, no_limit); }
  if (out.eviction.empty()) { out.eviction.assign(eviction_names.begin(), eviction_names.end()); }
  for (auto const& name : out.eviction) {
    if (std::find(eviction_names.begin(), eviction_names.end(), name) == eviction_names.end()) {
      throw input_error{"--eviction: there is no policy \"" + name + "\"; there are lru, fifo, lfu and optimal"};
    }
  }
  if (!out.memory.empty() && !out.blocks.empty()) {
    throw input_error{"--memory and --blocks both size the pool: give one of them"};
  }
  if (!out.memory.empty() && out.model.empty()) {
    throw input_error{"--memory needs --model: how many blocks fit depends on what a model caches"};
  }
  if (out.whole_blocks) {
    if (out.overlap) { throw input_error{"--whole-blocks runs one request at a time: leave out --overlap"}; }
    if (out.trace.empty()) { throw input_error{"--whole-blocks needs --trace with hash_ids"}; }
    if (out.block_tokens != 0 && out.block_tokens != trace::tokens_of_id) {
      throw input_error{"--whole-blocks has blocks of 512 tokens: leave out --block-tokens"};
    }
  } else if (out.floor) {
    throw input_error{"--floor needs --whole-blocks"};
  }
  auto const rate = [](char const* option, double r) {
    if (!(r > 0 && r < 1e12)) { throw input_error{std::string{option} + ": a rate is more than 0 tokens per second"}; }
  };
  rate("--prefill-rate", out.prefill_rate);
  rate("--decode-rate", out.decode_rate);
  if (out.block_tokens == 0) { out.block_tokens = out.whole_blocks ? trace::tokens_of_id : 16; }
  return out;
}

} // namespace replay
