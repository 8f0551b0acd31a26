// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A trained language model of 260 000 parameters, what it says according to another implementation in another language
/// and precision, and a generator that runs it. The files are not part of the project.

#include "generate/checkpoint.hpp"
#include "generate/cpu_attention.hpp"
#include "generate/float_attention.hpp"
#include "generate/network.hpp"
#include "generate/paged_memory.hpp"
#include "generate/tokenizer.hpp"

#include <quire/attention/cpu_backend.hpp>
#include <quire/cache/kv_cache.hpp>
#include <quire/generate/generator.hpp>
#include <quire/generate/no_clock.hpp>
#include <quire/generate/no_drafter.hpp>

#include "isolation/identity_fixtures.hpp"
#include "support/catch_compat.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace quire_test {

/// The folder of test data.
inline auto data_folder() -> std::filesystem::path {
  auto const* const traces = std::getenv("QUIRE_TRACES");
  return traces != nullptr ? std::filesystem::path{traces}.parent_path() : std::filesystem::path{"../shared/data"};
}

/// The model at rest, and its golden outputs.
struct stories {
  llama2::checkpoint file;
  llama2::tokenizer words;
  nlohmann::json golden;

  /// Nothing, with a line that says so, if the files are not there.
  static auto find() -> stories const* {
    static auto const* const found = []() -> stories const* {
      auto const folder = data_folder() / "models";
      if (!std::filesystem::exists(folder / "stories260K.bin")) { return nullptr; }
      auto file = llama2::checkpoint::read((folder / "stories260K.bin").string());
      auto words = llama2::tokenizer::read((folder / "tok512.bin").string(), file.shape().vocabulary);
      auto in = std::ifstream{folder / "golden_f64.json"};
      return new stories{std::move(file), std::move(words), nlohmann::json::parse(in)};
    }();
    if (found == nullptr) { WARN("skipped: there is no stories260K.bin in " << (data_folder() / "models").string()); }
    return found;
  }
  auto cases() const -> std::size_t { return golden["cases"].size(); }
  auto prompt(std::size_t i) const -> std::vector<quire::token_id> {
    return golden["cases"][i]["ids"].get<std::vector<quire::token_id>>();
  }
  auto greedy(std::size_t i) const -> std::vector<quire::token_id> {
    return golden["cases"][i]["greedy"].get<std::vector<quire::token_id>>();
  }
};

/// Outputs of one generation with the logits that each was chosen from.
struct said {
  std::vector<quire::token_id> tokens;
  std::vector<std::vector<float>> logits;
  friend auto operator==(said const&, said const&) -> bool = default;
};

struct optimistic_stories : quire::default_policies {
  using admission = quire::optimistic;
};

/// Attention over \p memory: the example's forty lines, or the library's CPU backend.
template <class Attention>
auto attention_over(stories const& data, llama2::paged_memory& memory, quire::block_count blocks) -> Attention {
  if constexpr (std::same_as<Attention, quire::cpu_backend>) {
    return llama2::cpu_attention(data.file.shape(), memory, blocks);
  } else {
    return Attention{data.file.shape(), memory};
  }
}

/// The model at work. \tparam Policies of the cache \tparam Drafter of the generator \tparam Attention of the network
template <class Policies = quire::default_policies, class Drafter = quire::no_drafter,
          class Attention = llama2::float_attention>
class storyteller {
public:
  using cache_type = quire::kv_cache<Policies>;
  using network_type = llama2::network<Attention>;
  using generator_type = quire::generator<cache_type, network_type, quire::no_clock, Drafter>;

  stories const* data;
  cache_type cache;
  quire::scope_number scope;
  llama2::paged_memory memory;
  Attention attention;
  network_type network;
  generator_type generator;
  std::map<quire::generation_id, said> outputs;

  explicit storyteller(stories const& from, unsigned block_tokens = 16, quire::generator_options const& how = {},
                       unsigned blocks = 0, Drafter drafter = {})
      : data{&from},
        cache{quire::cache_options{.blocks = quire::block_count{blocks != 0 ? blocks : 4096 / block_tokens},
                                   .block_tokens = quire::token_count{block_tokens}}},
        scope{cache.open_scope(quire::compute_identity{some_fields()}, domain_of("reader"))},
        memory{from.file.shape(), cache.figures(quire::group_id{0}).capacity, cache.block_tokens()},
        attention{attention_over<Attention>(from, memory, cache.figures(quire::group_id{0}).capacity)}, network{from.file, attention},
        generator{cache, network, how, {}, std::move(drafter)} {}
  storyteller(storyteller const&) = delete;

  auto submit(std::vector<quire::token_id> prompt, std::size_t outputs_wanted,
              quire::reuse_rule reuse = quire::reuse_rule::read_and_write) -> quire::generation_id {
    auto const id =
        generator.submit({.scope = scope,
                          .state = {.prompt = std::move(prompt),
                                    .stop = {.limit = quire::token_count{static_cast<std::uint32_t>(outputs_wanted)}}},
                          .reuse = reuse});
    INFO((id ? std::string{} : id.error().message));
    REQUIRE(id.has_value());
    return *id;
  }
  /// Submits golden case \p i: its outputs, and one more for the logits behind the last.
  auto submit_case(std::size_t i) -> quire::generation_id {
    return submit(data->prompt(i), data->greedy(i).size() + 1);
  }
  auto submit_cases() -> std::vector<quire::generation_id> {
    auto out = std::vector<quire::generation_id>{};
    for (std::size_t i = 0; i < data->cases(); ++i) { out.push_back(submit_case(i)); }
    return out;
  }
  auto step() -> void {
    auto const done = generator.step();
    REQUIRE(done.has_value());
    for (auto const& e : *done) {
      outputs[e.of].tokens.push_back(e.token);
      outputs[e.of].logits.emplace_back(e.logits.begin(), e.logits.end());
    }
  }
  auto run() -> void {
    while (!generator.idle()) { step(); }
    auto const proven = cache.audit();
    INFO((proven ? std::string{} : proven.error()));
    REQUIRE(proven.has_value());
  }
  /// Requires the golden outputs of case \p i, and that every logit is that of \p base to the last bit.
  auto check_case(std::size_t i, quire::generation_id id, std::vector<said> const& base) -> void {
    INFO("case " << i);
    auto tokens = outputs[id].tokens;
    REQUIRE(tokens.size() == data->greedy(i).size() + 1);
    tokens.pop_back();
    CHECK(tokens == data->greedy(i));
    CHECK((outputs[id] == base[i]));
  }
  /// Requires the golden tokens of case \p i, and logits near those of \p base: for attention that adds in another order.
  auto check_case_near(std::size_t i, quire::generation_id id, std::vector<said> const& base) -> void {
    INFO("case " << i);
    auto const& out = outputs[id];
    REQUIRE(out.tokens == base[i].tokens); // those of the golden file: `base` was compared with it
    auto apart = 0.0F;
    for (std::size_t k = 0; k < out.logits.size(); ++k) {
      for (std::size_t v = 0; v < out.logits[k].size(); ++v) {
        auto const d = std::fabs(out.logits[k][v] - base[i].logits[k][v]);
        apart = d <= apart ? apart : d; // NaN stays
      }
    }
    CHECK(apart < 5e-5F); // with the 2e-5 of `base` itself below 1e-4
  }
  auto check_cases(std::vector<quire::generation_id> const& ids, std::vector<said> const& base) -> void {
    for (std::size_t i = 0; i < ids.size(); ++i) { check_case(i, ids[i], base); }
  }
};

/// Largest difference of \p a from the golden numbers \p b.
template <class Values>
auto distance(Values const& a, nlohmann::json const& b) -> double {
  REQUIRE(a.size() == b.size());
  auto out = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    out = std::max(out, std::fabs(static_cast<double>(a[i]) - b[i].template get<double>()));
  }
  return out;
}

/// What each golden case says alone, prefilled at once, in blocks of 16.
inline auto base_run(stories const& data) -> std::vector<said> const& {
  static auto const base = [&] {
    auto out = std::vector<said>{};
    for (std::size_t i = 0; i < data.cases(); ++i) {
      auto alone = storyteller<>{data};
      auto const id = alone.submit_case(i);
      alone.run();
      out.push_back(alone.outputs[id]);
    }
    return out;
  }();
  return base;
}

} // namespace quire_test
