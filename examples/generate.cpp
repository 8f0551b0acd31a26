// SPDX-License-Identifier: Apache-2.0
// A language model writes through a paged, shared cache: many prompts at once, real keys and values in host memory.
// test: --plain --steps 24
#include "generate/built_in.hpp"
#include "generate/checkpoint.hpp"
#include "generate/equivalence.hpp"
#include "generate/input_error.hpp"
#include "generate/options.hpp"
#include "generate/report.hpp"
#include "generate/screen.hpp"
#include "generate/service.hpp"
#include "generate/tokenizer.hpp"

#include <quire/attention/equivalence_report.hpp>
#include <quire/core/config_error.hpp>
#include <quire/core/types.hpp>
#include <quire/model/attention_rule.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm> // std::count
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <system_error> // std::errc
#include <utility>      // std::move
#include <vector>

namespace {

using llama2::input_error;

auto trained_prompts() -> std::vector<std::string> {
  auto const lily = std::string{"Once upon a time, there was a little girl named Lily. She lived in a small house near "
                                "a big green park. One day,"};
  return {lily,
          lily + " it was very cold.",
          lily + " a big dog came to the park.",
          "Once upon a time, there was a little boy named Tim. He",
          "The little dog wanted",
          "Tom and Sam found a big red ball."};
}

/// "full", "window:W", "sinks:S:W" or "chunk:C".
auto rule_of(std::string const& text) -> quire::attention_rule {
  using quire::attention_rule;
  auto numbers = std::vector<quire::token_count>{};
  auto const name = text.substr(0, text.find(':'));
  for (auto at = text.find(':'); at != std::string::npos;) {
    auto value = std::uint32_t{};
    auto const* const end = text.data() + text.size();
    auto const read = std::from_chars(text.data() + at + 1, end, value);
    if (read.ec != std::errc{} || (read.ptr != end && *read.ptr != ':')) { break; }
    numbers.emplace_back(value);
    at = read.ptr == end ? std::string::npos : static_cast<std::size_t>(read.ptr - text.data());
  }
  auto const parts = static_cast<std::size_t>(std::count(text.begin(), text.end(), ':'));
  if (numbers.size() == parts) {
    if (name == "full" && parts == 0) { return attention_rule::causal(); }
    if (name == "window" && parts == 1) { return attention_rule::sliding_window(numbers[0]); }
    if (name == "sinks" && parts == 2) {
      return attention_rule::sink_window({.sinks = numbers[0], .window = numbers[1]});
    }
    if (name == "chunk" && parts == 1) { return attention_rule::chunked(numbers[0]); }
  }
  throw input_error{"--retention " + text + ": use full, window:W, sinks:S:W or chunk:C with whole numbers"};
}

auto run(llama2::options wanted) -> int {
  auto file = std::optional<llama2::checkpoint>{};
  auto words = std::optional<llama2::tokenizer>{};
  if (wanted.model.empty()) {
    if (!wanted.tokenizer.empty()) { throw input_error{"--tokenizer needs the --model that it belongs to"}; }
    auto built = llama2::built_in::make();
    file.emplace(std::move(built.file));
    words.emplace(std::move(built.words));
    if (wanted.prompts.empty()) { wanted.prompts = llama2::built_in::prompts(); }
  } else {
    if (wanted.tokenizer.empty()) { throw input_error{"--model needs the --tokenizer that it was trained with"}; }
    file.emplace(llama2::checkpoint::read(wanted.model));
    words.emplace(llama2::tokenizer::read(wanted.tokenizer, file->shape().vocabulary));
    if (wanted.prompts.empty()) { wanted.prompts = trained_prompts(); }
  }
  file->let_odd_layers_see(rule_of(wanted.retention));
  auto const& shape = file->shape();
  fmt::print("{}: {} layers, {} query heads on {} KV heads, width {}, {} words, {} positions\n\n",
             wanted.model.empty() ? "A built-in network, not trained" : wanted.model, shape.layers, shape.heads,
             shape.kv_heads, shape.dim, shape.vocabulary, shape.positions);

  auto service = llama2::service{*file, *words, wanted};
  auto screen = llama2::screen{service, wanted.plain};
  service.run([&] { screen.frame(); });
  screen.finish();
  auto const checked = llama2::check_equivalence(service, shape);
  screen.verdict(checked);
  if (!wanted.json.empty()) { llama2::write_report(wanted.json, service, shape, checked); }
  auto const sound = service.cache().audit();
  if (!sound) { fmt::print(stderr, "generate: the cache is broken: {}\n", sound.error()); }
  return sound && checked.report.verdict != quire::equivalence_verdict::structural ? 0 : 1;
}

} // namespace

auto main(int argc, char** argv) -> int {
  auto app = CLI::App{
      "Writes text with a small language model through quire's KV cache, and proves that the cache changes nothing.\n"
      "Without a checkpoint it uses a small built-in network."};
  auto wanted = llama2::options{};
  app.add_option("--model", wanted.model, "llama2.c checkpoint (first version, float32)");
  app.add_option("--tokenizer", wanted.tokenizer, "its tokenizer file");
  app.add_option("--prompt", wanted.prompts, "text to go on with; may be given more than once")
      ->allow_extra_args(false);
  app.add_option(
         "--retention", wanted.retention,
         "what the odd layers see and keep: full, window:W, sinks:S:W or chunk:C; with a checkpoint that was not\n"
         "trained so, it is another model")
      ->capture_default_str();
  app.add_option("--json", wanted.json, "write the report to this file");
  app.add_option("--block-tokens", wanted.block_tokens, "tokens per block")
      ->check(CLI::Range(1U, 4096U))
      ->capture_default_str();
  app.add_option("--blocks", wanted.blocks, "blocks in the pool")
      ->check(CLI::Range(1U, 1U << 20U))
      ->capture_default_str();
  app.add_option("--steps", wanted.outputs, "most tokens to write per prompt")
      ->check(CLI::Range(1U, 1U << 20U))
      ->capture_default_str();
  app.add_option("--chunk", wanted.chunk, "prompt tokens per step, 0 for all")->capture_default_str();
  app.add_option("--draft", wanted.draft, "tokens to guess ahead per step")
      ->check(CLI::Range(0U, 64U))
      ->capture_default_str();
  app.add_option("--temperature", wanted.temperature, "0 for the most likely token, else often 0.7 to 1")
      ->capture_default_str();
  app.add_option("--top-k", wanted.top_k, "only the k most likely tokens, 0 for all")->capture_default_str();
  app.add_option("--top-p", wanted.top_p, "only the most likely tokens up to this probability")->capture_default_str();
  app.add_option("--seed", wanted.seed, "of the random choices")->capture_default_str();
  app.add_flag("--plain", wanted.plain, "no animation; the default in a pipe");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(wanted);
  } catch (input_error const& error) {
    fmt::print(stderr, "generate: {}\n", error.what());
  } catch (quire::config_error const& error) { fmt::print(stderr, "generate: {}\n", error.what()); }
  return 2;
}
