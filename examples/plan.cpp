// SPDX-License-Identifier: Apache-2.0
// test: --model llama3-8b --memory 80GiB --weights 16GiB --tp 2 --context 8192

/// \file
/// From a model and the memory of a device to blocks, tokens and requests: `./run plan --help`.
///
/// ```text
///   preset ─ with_format ─▶ model_spec ─┐
///   sizes, splits, context ─────────────┴▶ plan_capacity, per pipeline stage ─▶ lines that add up to the memory
///                                          usage_of, per block size          ─▶ waste and page tables
/// ```
///
/// Every figure is computed and none is measured.

#include "replay/memory_size.hpp"

#include <quire/core/config_error.hpp>
#include <quire/core/types.hpp>
#include <quire/model/block_usage.hpp>
#include <quire/model/capacity.hpp>
#include <quire/model/capacity_report.hpp>
#include <quire/model/dtype.hpp>
#include <quire/model/element_format.hpp>
#include <quire/model/index_width.hpp>
#include <quire/model/layer_group.hpp>
#include <quire/model/model_spec.hpp>
#include <quire/model/parallel_split.hpp>
#include <quire/model/presets.hpp>
#include <quire/model/retention.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility> // std::move, std::pair
#include <vector>

namespace {

/// Something the user gave that makes no sense.
struct input_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What the user asked for.
struct arguments {
  std::string model;
  std::string format;
  std::string json;
  quire::capacity_request request;
  std::vector<quire::token_count> lengths; ///< Empty = drawn evenly from the context.
  bool list = false;
};

/// The plan of one pipeline stage.
struct stage_plan {
  std::uint32_t stage = 0;
  quire::model_spec rank;
  quire::capacity_report report;
};

constexpr int drawn_lengths = 1024;
constexpr std::array<std::uint32_t, 7> block_sizes{1, 8, 16, 32, 64, 128, 256};

auto size_of(std::string_view option, std::string const& text) -> quire::byte_count {
  if (text.empty() || text == "0") { return {}; }
  if (auto const bytes = replay::memory_size(text)) { return quire::byte_count{*bytes}; }
  throw input_error{
      fmt::format("{}: \"{}\" is no amount of memory: write it like 80GiB, 1.5 TiB, 640MB or 4096", option, text)};
}

auto read_arguments(int argc, char const* const* argv) -> arguments {
  auto out = arguments{};
  auto app = CLI::App{
      "Plans a KV cache: blocks, tokens and requests that fit, computed and not measured. All sizes are per rank.",
      "plan"};
  auto& r = out.request;
  std::string memory;
  std::string weights;
  std::string workspace;
  std::string index = "int64";
  std::uint32_t context = 0;
  std::uint32_t source = 0;
  std::uint32_t block_tokens = 16;
  std::uint32_t step = 1;
  std::vector<std::uint32_t> lengths;
  app.add_option("--model", out.model, "model preset; --list names them")->type_name("PRESET");
  app.add_option("--memory", memory, "memory of one rank, e.g. 80GiB")->type_name("SIZE");
  app.add_option("--weights", weights, "weights that one rank holds, after the split (default 0)")->type_name("SIZE");
  app.add_option("--workspace", workspace, "activations, graphs and buffers of one rank (default 0)")
      ->type_name("SIZE");
  app.add_option("--tp", r.split.tensor, "tensor-parallel ranks (default 1)")->type_name("N");
  app.add_option("--pp", r.split.pipeline, "pipeline stages; the one with least room is printed (default 1)")
      ->type_name("N");
  app.add_option("--cp", r.split.context, "context-parallel ranks (default 1)")->type_name("N");
  app.add_option("--context", context, "tokens of one request, prompt and output (default: the model's longest)")
      ->type_name("TOKENS");
  app.add_option("--source", source, "tokens of one request's source; models with cross-attention only")
      ->type_name("TOKENS");
  app.add_option("--block-tokens", block_tokens, "tokens per block (default 16)")->type_name("TOKENS");
  app.add_option("--step", step, "longest append of one step, which windows must hold besides (default 1)")
      ->type_name("TOKENS");
  app.add_option("--format", out.format,
                 "store keys and values as another type: f32, f16, bf16, int8, fp8_e4m3, ...; 8 bits and less get one "
                 "f32 scale per token and head")
      ->type_name("TYPE");
  app.add_option("--index", index, "integers in which kernels compute offsets: int32 or int64 (default)")
      ->type_name("TYPE");
  app.add_option("--lengths", lengths,
                 "lengths of requests for the comparison of block sizes (default: 1024 drawn evenly from the context)")
      ->delimiter(',')
      ->type_name("N,N,...");
  app.add_option("--json", out.json, "write the plan as JSON")->type_name("FILE");
  app.add_flag("--list", out.list, "list the presets");
  try {
    app.parse(argc, argv);
  } catch (CLI::CallForHelp const& error) {
    app.exit(error); // prints it
    throw;
  }
  if (out.list) { return out; }
  if (out.model.empty()) { throw input_error{"--model is missing: give a preset, --list names them"}; }
  if (memory.empty()) { throw input_error{"--memory is missing: give the memory of one rank, e.g. --memory 80GiB"}; }
  if (index != "int32" && index != "int64") {
    throw input_error{fmt::format("--index: \"{}\" is neither int32 nor int64", index)};
  }
  r.memory = size_of("--memory", memory);
  r.weights = size_of("--weights", weights);
  r.workspace = size_of("--workspace", workspace);
  r.context = quire::token_count{context};
  r.source = quire::token_count{source};
  r.pages = {.block_tokens = quire::token_count{block_tokens}, .step = quire::token_count{step}};
  r.index = index == "int32" ? quire::index_width::int32 : quire::index_width::int64;
  for (auto const n : lengths) {
    if (n == 0) { throw input_error{"--lengths: a request of 0 tokens holds nothing: use at least 1"}; }
    out.lengths.emplace_back(n);
  }
  return out;
}

/// The model that was asked for.
auto model_of(arguments const& a) -> quire::model_spec {
  auto found = quire::presets::find(a.model);
  if (!found) { throw input_error{fmt::format("--model: no preset is called \"{}\"; --list names them", a.model)}; }
  if (a.format.empty()) { return *std::move(found); }
  auto const type = quire::parse_dtype(a.format);
  if (!type) {
    throw input_error{fmt::format(
        "--format: no type is called \"{}\": use f32, f16, bf16, fp8_e4m3, fp8_e5m2, int8, int4 or fp4_e2m1",
        a.format)};
  }
  auto const scales = quire::is_quantised(*type) ? quire::scale_spec::per_token_head() : quire::scale_spec::none();
  return found->with_format({.type = *type, .scales = scales});
}

/// Bytes with their separators, and in a unit for people.
auto grouped(std::uint64_t n) -> std::string {
  auto text = std::to_string(n);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3) {
    text.insert(static_cast<std::size_t>(at), 1, ',');
  }
  return text;
}
auto human(quire::byte_count bytes) -> std::string {
  auto value = static_cast<double>(bytes.value());
  constexpr std::array<char const*, 6> units{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  for (; value >= 1024.0 && unit + 1 < units.size(); ++unit) { value /= 1024.0; }
  return unit == 0 ? fmt::format("{} B", bytes.value()) : fmt::format("{:.2f} {}", value, units[unit]);
}
auto line(std::string_view name, quire::byte_count bytes) -> void {
  fmt::print("  {:<24}{:>22} B {:>14}\n", name, grouped(bytes.value()), human(bytes));
}

auto describe(quire::layer_group const& group) -> std::string {
  auto out = fmt::format("{} layer{}, {}", group.layers(), group.layers() == 1 ? "" : "s", name_of(group.keeps.kind));
  if (group.keeps.extent != quire::token_count{}) { out += fmt::format(" {}", group.keeps.extent.value()); }
  if (group.kind == quire::group_kind::cross) { out += ", cross"; }
  return out;
}

auto usage(quire::model_spec const& rank, arguments const& a) -> std::vector<quire::block_usage> {
  auto lengths = a.lengths;
  if (lengths.empty()) {
    std::mt19937_64 random{1}; // the same everywhere; round lengths would favour round block sizes
    for (auto i = 0; i < drawn_lengths; ++i) {
      lengths.emplace_back(static_cast<std::uint32_t>(random() % a.request.context.value() + 1));
    }
  }
  std::vector<quire::block_usage> out;
  for (auto const size : block_sizes) { out.push_back(quire::usage_of(rank, lengths, quire::token_count{size})); }
  return out;
}

auto print(arguments const& a, quire::model_spec const& whole, stage_plan const& plan,
           std::vector<quire::block_usage> const& sizes) -> void {
  auto const& r = a.request;
  auto const& report = plan.report;
  fmt::print("{}, context {} tokens, blocks of {} tokens, mode {}\n", a.model, r.context.value(),
             r.pages.block_tokens.value(), whole.execution_mode());
  fmt::print("split: {} tensor x {} pipeline x {} context ranks; figures are of one rank{}\n", r.split.tensor,
             r.split.pipeline, r.split.context,
             r.split.pipeline > 1 ? fmt::format(", pipeline stage {}, which has least room", plan.stage) : "");
  fmt::print("every figure is computed, none is measured\n\n");

  fmt::print("memory of a rank (computed)\n");
  for (auto const& part : report.lines()) { line(part.name, part.bytes); }
  line("= memory", report.memory);
  fmt::print("\nof the cache data, wasted by partial last blocks at most\n");
  line("internal fragmentation", report.fragmentation);

  fmt::print("\ncache (computed)\n");
  line("bytes per token", quire::bytes_per_token(plan.rank));
  line("growth per token", quire::growth_per_token(plan.rank));
  line("one request", quire::paged_sequence_bytes(plan.rank, r.context, r.pages, r.alignment));
  fmt::print("  {:<24}{:>22}\n", "concurrent requests", grouped(report.sequences));
  fmt::print("  {:<24}{:>22}\n", r.split.context > 1 ? "tokens, all context ranks" : "tokens", grouped(report.tokens));
  auto blocks = std::uint64_t{0};
  for (auto const& group : report.groups) { blocks += group.blocks.value(); }
  fmt::print("  {:<24}{:>22}\n\n", "blocks", grouped(blocks));

  fmt::print("  {:<6}{:<36}{:>14}{:>18}{:>16}\n", "group", "", "bytes/block", "blocks/request", "blocks");
  for (std::size_t i = 0; i < report.groups.size(); ++i) {
    auto const& group = report.groups[i];
    fmt::print("  {:<6}{:<36}{:>14}{:>18}{:>16}\n", group.id.value(), describe(plan.rank.groups()[i]),
               grouped(group.block_bytes.value()), grouped(group.per_sequence.value()), grouped(group.blocks.value()));
  }

  fmt::print("\nblock sizes (computed), for {}\n",
             a.lengths.empty() ? fmt::format("{} requests with lengths drawn evenly from the context", drawn_lengths)
                               : fmt::format("{} requests with the given lengths", a.lengths.size()));
  fmt::print("  {:>12}{:>16}{:>22}{:>12}{:>22}\n", "tokens/block", "blocks", "wasted bytes", "of held",
             "page-table bytes");
  for (auto const& size : sizes) {
    fmt::print("  {:>12}{:>16}{:>22}{:>11.3f}%{:>22}\n", size.block_tokens.value(), grouped(size.blocks),
               grouped(size.wasted_bytes().value()), 100.0 * (1.0 - size.utilisation()),
               grouped(size.table_bytes.value()));
  }
}

auto to_json(arguments const& a, quire::model_spec const& whole, std::vector<stage_plan> const& plans,
             std::vector<quire::block_usage> const& sizes) -> nlohmann::json {
  auto const& r = a.request;
  nlohmann::json out{
      {"computed", true},
      {"measured", false},
      {"model", a.model},
      {"mode", whole.execution_mode()},
      {"context", r.context.value()},
      {"block_tokens", r.pages.block_tokens.value()},
      {"split", {{"tensor", r.split.tensor}, {"pipeline", r.split.pipeline}, {"context", r.split.context}}}};
  for (auto const& plan : plans) {
    nlohmann::json bytes;
    for (auto const& part : plan.report.lines()) { bytes[std::string{part.name}] = part.bytes.value(); }
    nlohmann::json groups = nlohmann::json::array();
    for (std::size_t i = 0; i < plan.report.groups.size(); ++i) {
      auto const& group = plan.report.groups[i];
      groups.push_back({{"layers", plan.rank.groups()[i].layers()},
                        {"retention", std::string{name_of(plan.rank.groups()[i].keeps.kind)}},
                        {"block_bytes", group.block_bytes.value()},
                        {"blocks_per_request", group.per_sequence.value()},
                        {"blocks", group.blocks.value()}});
    }
    out["ranks"].push_back(
        {{"stage", plan.stage},
         {"memory", plan.report.memory.value()},
         {"bytes", std::move(bytes)},
         {"fragmentation_at_most", plan.report.fragmentation.value()},
         {"bytes_per_token", quire::bytes_per_token(plan.rank).value()},
         {"growth_per_token", quire::growth_per_token(plan.rank).value()},
         {"request_bytes", quire::paged_sequence_bytes(plan.rank, r.context, r.pages, r.alignment).value()},
         {"requests", plan.report.sequences},
         {"tokens", plan.report.tokens},
         {"groups", std::move(groups)}});
  }
  for (auto const& size : sizes) {
    out["block_sizes"].push_back({{"block_tokens", size.block_tokens.value()},
                                  {"blocks", size.blocks},
                                  {"held_bytes", size.held_bytes.value()},
                                  {"wasted_bytes", size.wasted_bytes().value()},
                                  {"table_bytes", size.table_bytes.value()}});
  }
  return out;
}

auto list() -> void {
  fmt::print("{:<24}{:>8}{:>16}{:>18}{:>18}\n", "preset", "layers", "positions", "bytes/token", "growth/token");
  for (auto const name : quire::presets::names()) {
    auto const model = *quire::presets::find(name);
    fmt::print("{:<24}{:>8}{:>16}{:>18}{:>18}\n", name, model.layers(), grouped(model.max_positions().value()),
               grouped(quire::bytes_per_token(model).value()), grouped(quire::growth_per_token(model).value()));
  }
}

auto plan(arguments a) -> void {
  if (a.list) {
    list();
    return;
  }
  auto const model = model_of(a);
  if (a.request.context == quire::token_count{}) { a.request.context = model.max_positions(); }
  std::vector<stage_plan> plans;
  auto const stages = std::max(1U, a.request.split.pipeline); // 0 is refused by plan_capacity
  for (a.request.stage = 0; a.request.stage < stages; ++a.request.stage) {
    auto report = quire::plan_capacity(model, a.request);
    plans.push_back({.stage = a.request.stage,
                     .rank = a.request.split.per_rank(model, a.request.stage),
                     .report = std::move(report)});
  }
  auto const& tightest = *std::min_element(
      plans.begin(), plans.end(), [](auto const& x, auto const& y) { return x.report.sequences < y.report.sequences; });
  auto const sizes = usage(tightest.rank, a);
  if (!a.json.empty()) {
    auto file = std::ofstream{a.json};
    file << to_json(a, model, plans, sizes).dump(2) << '\n';
    file.close();
    if (!file) { throw input_error{fmt::format("--json: {} cannot be written", a.json)}; }
  }
  print(a, model, tightest, sizes);
}

} // namespace

auto main(int argc, char** argv) -> int {
  constexpr int bad_input = 2;
  auto const complain = [](std::string_view what) {
    fmt::print(stderr, "plan: {}\n", what);
    return bad_input;
  };
  try {
    plan(read_arguments(argc, argv));
    return 0;
  } catch (CLI::CallForHelp const&) { return 0; } catch (CLI::ParseError const& error) {
    return complain(fmt::format("{}; --help lists the options", error.what()));
  } catch (input_error const& error) { return complain(error.what()); } catch (quire::config_error const& error) {
    return complain(error.what());
  } catch (std::exception const& error) {
    fmt::print(stderr, "plan: internal error: {}\n", error.what());
    return 1;
  }
}
