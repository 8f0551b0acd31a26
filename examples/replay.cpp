// SPDX-License-Identifier: Apache-2.0
// test: --seed 1 --eviction lru,optimal

/// \file
/// Replays request traces through the cache and prints hit rates: `./run replay --help`, `./run demo`.
///
/// ```text
///   trace file ─ read_trace ─┐                ┌─ engine + serial_loop or overlap_loop ─▶ run_result ─┐
///   seed ── make_workload ───┴─▶ trace ──▶ future ─ offline_bound ───────────────────────────────────┴─▶ report ─▶ table,
///                                             └─ tells the optimal policy what comes                       JSON, CSV, chart
/// ```

#include "replay/arguments.hpp"
#include "replay/chart.hpp"
#include "replay/csv_output.hpp"
#include "replay/floor.hpp"
#include "replay/future.hpp"
#include "replay/input_error.hpp"
#include "replay/json_output.hpp"
#include "replay/memory_size.hpp"
#include "replay/offline_bound.hpp"
#include "replay/progress_bar.hpp"
#include "replay/read_trace.hpp"
#include "replay/report.hpp"
#include "replay/run_replay.hpp"
#include "replay/table.hpp"
#include "replay/trace.hpp"
#include "replay/whole_blocks.hpp"
#include "replay/workload.hpp"

#include <quire/cache/kv_cache.hpp>
#include <quire/core/config_error.hpp>
#include <quire/model/presets.hpp>
#include <quire/prefix/fifo_eviction.hpp>
#include <quire/prefix/lfu_eviction.hpp>
#include <quire/prefix/lru_eviction.hpp>
#include <quire/prefix/optimal_eviction.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <limits>
#include <memory>
#include <new>
#include <numeric> // std::accumulate
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility> // std::move
#include <vector>

namespace {

using replay::detail::grouped;

/// The requests, in the order in which they are replayed.
auto load(replay::arguments const& args) -> replay::trace {
  auto out = args.trace.empty() ? replay::make_workload(args.seed) : replay::read_trace(args.trace, args.limit);
  out.requests.resize(std::min(out.requests.size(), args.limit));
  if (args.whole_blocks) { out = replay::whole_blocks(out); }
  if (args.overlap) {
    std::stable_sort(out.requests.begin(), out.requests.end(),
                     [](auto const& a, auto const& b) { return a.arrival < b.arrival; });
  }
  return out;
}

/// The preset called \p name. \throws input_error if there is none
auto model_of(std::string const& name) -> quire::model_spec {
  auto model = quire::presets::find(name);
  if (!model) {
    auto known = std::string{};
    for (auto const preset : quire::presets::names()) { known += (known.empty() ? "" : ", ") + std::string{preset}; }
    throw replay::input_error{"--model: there is no preset \"" + name + "\"; there are " + known};
  }
  return std::move(*model);
}

/// Sizes of the pool [blocks]; what a model makes of them goes to \p memory in words.
auto sizes_of(replay::arguments const& args, std::uint64_t distinct, std::string& memory)
    -> std::vector<std::uint32_t> {
  auto out = args.blocks;
  if (!args.model.empty()) {
    auto const model = model_of(args.model);
    auto const each = quire::kv_cache<>::block_bytes_of(model, quire::token_count{args.block_tokens}).value();
    memory = fmt::format("a block of {} tokens of {} takes {} bytes", args.block_tokens, args.model, grouped(each));
    if (!args.memory.empty()) {
      auto const bytes = replay::memory_size(args.memory);
      if (!bytes) { throw replay::input_error{"--memory: \"" + args.memory + "\" is no amount such as 8GiB or 640MB"}; }
      auto const fit = std::min<std::uint64_t>(*bytes / each, replay::max_blocks);
      if (fit == 0) {
        throw replay::input_error{fmt::format("--memory: {} hold no block: {} tokens of {} take {} bytes", args.memory,
                                              args.block_tokens, args.model, grouped(each))};
      }
      memory += fmt::format("; {} hold {} of them", args.memory, grouped(fit));
      out.push_back(static_cast<std::uint32_t>(fit));
    }
  }
  if (out.empty()) {
    for (auto const percent : {2U, 5U, 20U}) {
      out.push_back(
          static_cast<std::uint32_t>(std::clamp<std::uint64_t>(distinct * percent / 100, 1, replay::max_blocks)));
    }
  }
  return out;
}

/// Tells before the operating system does. \throws input_error if this machine cannot hold the index of such a pool
auto check_memory(std::uint32_t blocks, std::uint32_t block_tokens) -> void {
  auto const needed = std::uint64_t{blocks} * (block_tokens * sizeof(quire::token_id) + 100);
  auto const pages = sysconf(_SC_PHYS_PAGES);
  auto const page = sysconf(_SC_PAGE_SIZE);
  if (pages > 0 && page > 0 && needed > static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page)) {
    throw replay::input_error{fmt::format("a pool of {} blocks needs about {} GiB here for tokens and tables: more "
                                          "than this machine has; use a smaller one",
                                          grouped(blocks), needed >> 30U)};
  }
}

/// How the trace is replayed, in words.
auto mode_of(replay::arguments const& args, replay::trace const& trace) -> std::string {
  auto const forks = std::accumulate(trace.requests.begin(), trace.requests.end(), std::uint64_t{0},
                                     [](std::uint64_t sum, auto const& r) { return sum + r.branches - 1; });
  auto const cached =
      std::string{"outputs are cached too"} + (forks > 0 ? "; " + grouped(forks) + " further answers are forks" : "");
  if (args.whole_blocks) {
    return "whole blocks: in the order of the file, one request at a time, every id is 512 tokens, no outputs; the "
           "pool has one block more, for the last position";
  }
  if (args.overlap) {
    return fmt::format(
        "overlapping: by time of arrival, each request with {} prompt and {} output tokens per second; {}",
        args.prefill_rate, args.decode_rate, cached);
  }
  return "in the order of the trace, one request at a time; " + cached;
}

/// What the columns of the table mean.
auto explanation_of(replay::arguments const& args) -> std::string {
  auto out =
      fmt::format("block hit   full blocks of the prompts that were found; token hit: prompt tokens that need no "
                  "compute (at most P - 1 of a prompt)\n"
                  "(bound)     most blocks that any policy can find, computed beside the cache; it may bypass, that "
                  "is, not keep a block at all{}\n"
                  "of optimum  blocks found / (bound)\n"
                  "peak, mean  blocks with content, cached or in use; in use: held by requests; {}\n"
                  "waste       token slots in the blocks of a request that are empty when it ends\n"
                  "refs/s      references per second of the replay loop: making the tokens, admission to release\n",
                  args.overlap ? ",\n            and serves one request at a time" : "",
                  args.overlap ? "means are over time" : "means are over requests");
  auto const shown = [&](char const* name) {
    return std::find(args.eviction.begin(), args.eviction.end(), name) != args.eviction.end();
  };
  if (shown("lru")) { out += "lru         the victim is the idle block whose last user ended first, deepest first\n"; }
  if (shown("fifo")) {
    out += "fifo        the victim is the end of the idle leaf run that was published first; a run has the time of its "
           "first block, its own\n"
           "            publisher may lengthen it, hits move nothing, and no block stays without its parent\n";
  }
  if (shown("lfu")) {
    out += "lfu         the victim is the idle block with the fewest uses since it was published; ties: as lru\n";
  }
  if (shown("optimal")) {
    out += "optimal     the victim is the idle block that is used again last (the trace tells), deepest first; every "
           "missed block is admitted\n";
  }
  return out;
}

/// A file that is opened before the work begins, so that a wrong name costs nothing.
class output_file {
public:
  explicit output_file(std::string name) : name_{std::move(name)} {
    if (name_.empty()) { return; }
    out_.open(name_, std::ios::app);
    if (!out_) { throw replay::input_error{name_ + ": cannot be written"}; }
    out_.close();
  }
  /// Writes \p text, if there is a file. \returns a line that says where
  auto write(std::string_view what, std::string const& text) -> std::string {
    if (name_.empty()) { return {}; }
    out_.open(name_, std::ios::trunc);
    out_ << text;
    out_.close();
    if (!out_) { throw replay::input_error{name_ + ": writing failed"}; }
    return fmt::format("{} {}\n", what, name_);
  }

private:
  std::string name_;
  std::ofstream out_;
};

auto replay_all(replay::arguments const& args) -> void {
  auto const trace = load(args);
  auto all = replay::report{.trace_name = trace.name,
                            .mode = mode_of(args, trace),
                            .memory = {},
                            .explanation = explanation_of(args),
                            .block_tokens = args.block_tokens,
                            .requests = trace.requests.size()};
  auto future = std::make_unique<replay::future>(trace, args.block_tokens, std::numeric_limits<std::uint64_t>::max());
  all.references = future->references();
  all.distinct = future->distinct();
  auto const sizes = sizes_of(args, future->distinct(), all.memory);
  for (auto const blocks : sizes) { check_memory(blocks, args.block_tokens); }
  auto json = output_file{args.json};
  auto csv = output_file{args.csv};
  auto chart = output_file{args.chart};
  for (auto const blocks : sizes) {
    auto const options = replay::run_options{.blocks = blocks,
                                             .block_tokens = args.block_tokens,
                                             .whole = args.whole_blocks,
                                             .overlap = args.overlap,
                                             .prefill_rate = args.prefill_rate,
                                             .decode_rate = args.decode_rate};
    auto const refused = std::count_if(trace.requests.begin(), trace.requests.end(), [&](auto const& r) {
      return replay::budget_of(r, args.block_tokens) > options.pool();
    });
    if (trace.requests.size() - static_cast<std::size_t>(refused) !=
        future->fitting()) { // the others never meet what is refused
      future = std::make_unique<replay::future>(trace, args.block_tokens, options.pool());
    }
    auto const bound = replay::offline_bound(*future, trace, blocks);
    for (auto const& eviction : args.eviction) {
      auto bar = replay::progress_bar{fmt::format("{} at {} blocks", eviction, grouped(blocks)), trace.requests.size()};
      auto run = replay::reported_run{
          .result = replay::run_replay(eviction, trace, *future, options, [&](std::size_t done) { bar.update(done); }),
          .bound = bound};
      if (args.floor && eviction == "lru" && run.result.requests > 0) {
        run.floor_seconds = replay::replay_floor::of<quire::lru_eviction>(trace, *future, options).measure();
        all.memory += fmt::format(
            "{}lru at {} blocks took {:.3f} s; the floor is {:.3f} s: {:.0f} % of the greatest possible speed",
            all.memory.empty() ? "" : "\n", grouped(blocks), run.result.seconds, run.floor_seconds,
            100 * run.floor_seconds / run.result.seconds);
      }
      all.runs.push_back(std::move(run));
    }
  }
  fmt::print("{}", replay::table_of(all));
  auto written = json.write("JSON: ", replay::json_of(all)) + csv.write("CSV:  ", replay::csv_of(all)) +
                 chart.write("Chart:", replay::chart_of(all));
  if (!written.empty()) { fmt::print("\n{}", written); }
}

} // namespace

auto main(int argc, char** argv) -> int {
  constexpr int bad_input = 2;
  auto const complain = [](std::string_view what) {
    fmt::print(stderr, "replay: {}\n", what);
    return bad_input;
  };
  try {
    replay_all(replay::read_arguments(argc, argv));
    return 0;
  } catch (CLI::CallForHelp const&) { return 0; } catch (CLI::ParseError const& error) {
    return complain(fmt::format("{}; --help lists the options", error.what()));
  } catch (replay::input_error const& error) {
    return complain(error.what());
  } catch (quire::config_error const& error) { return complain(error.what()); } catch (std::bad_alloc const&) {
    return complain("there is not enough memory for a pool of this size or a trace of this length");
  } catch (std::exception const& error) {
    fmt::print(stderr, "replay: internal error: {}\n", error.what());
    return 1;
  }
}
