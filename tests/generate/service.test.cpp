// SPDX-License-Identifier: Apache-2.0
// The example's service, with the network that needs no file: what the program shows is true.
#include "generate/service.hpp"
#include "generate/built_in.hpp"
#include "generate/equivalence.hpp"
#include "generate/input_error.hpp"
#include "generate/options.hpp"
#include "generate/report.hpp"
#include "generate/stopwatch.hpp"

#include "support/catch_compat.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

auto network() -> llama2::built_in const& {
  static auto const made = llama2::built_in::make();
  return made;
}
auto small() -> llama2::options {
  auto out = llama2::options{};
  out.outputs = 20;
  out.prompts = llama2::built_in::prompts();
  return out;
}
auto nothing() -> void {}

} // namespace

TEST_CASE("generate: the built-in network tells its tale, and every letter can be a prompt") {
  auto const& n = network();
  auto const prompt = llama2::built_in::prompts().front();
  CHECK(n.words.encode(prompt).size() == 29); // words, not letters
  auto odd = n.words.encode("Zebras ate {3} x\xC3\xB6");
  odd.erase(odd.begin());
  CHECK(n.words.decode(odd) == "Zebras ate {3} x\xC3\xB6");
  auto wanted = small();
  wanted.prompts = {"Readers open"};
  auto s = llama2::service{n.file, n.words, wanted};
  s.run(nothing);
  auto const& r = s.result(s.stories()[0]);
  CHECK(n.words.decode({r.visible().begin(), r.visible().begin() + 6}, s.stories()[0].ids.back()) ==
        " it at different pages, yet every");
}

TEST_CASE("S4: the program's own comparison calls an exact run numeric, and could have told") {
  for (auto const draft : {0U, 3U}) {
    auto wanted = small();
    wanted.draft = draft;
    wanted.chunk = draft == 0 ? 0 : 5;
    auto s = llama2::service{network().file, network().words, wanted};
    s.run(nothing);
    auto const e = llama2::check_equivalence(s, network().file.shape());
    CHECK(e.report.verdict == quire::equivalence_verdict::numeric);
    CHECK(e.report.rows == 6 * 20);
    CHECK(e.report.max_abs < 1e-4);
    CHECK(e.report.effect > 10 * e.report.bound.total());
    CHECK(s.cache().audit().has_value());
    CHECK(s.cache().live_sequences() == quire::sequence_count{0});
  }
}

TEST_CASE("S4: the program's own comparison calls a spoiled block structural") {
  auto s = llama2::service{network().file, network().words, small()};
  auto steps = 0;
  s.run([&] {
    if (++steps != 8) { return; }
    auto const at = std::size_t{s.generator().sequence_of(s.stories()[0].id)->blocks()[1].value()} *
                    s.memory().block_tokens() * s.memory().width();
    std::fill_n(s.memory().keys(1).begin() + static_cast<std::ptrdiff_t>(at), s.memory().width(),
                0.0F); // one key of one layer
  });
  CHECK(llama2::check_equivalence(s, network().file.shape()).report.verdict == quire::equivalence_verdict::structural);
}

TEST_CASE("S23: what the program calls saved are blocks that two sequences hold") {
  auto s = llama2::service{network().file, network().words, small()};
  auto seen = std::uint32_t{0};
  s.run([&] {
    auto const holders = s.holders();
    auto const saved = [&] {
      std::uint32_t out = 0;
      for (auto const n : holders) { out += n > 1 ? n - 1 : 0; }
      return out;
    }();
    seen = std::max(seen, saved);
  });
  auto const [held, unshared] = s.peak();
  CHECK(unshared - held == seen);
  CHECK(seen == 9); // three prompts find three blocks of 8
  for (std::size_t i : {1U, 2U, 3U}) { CHECK(s.result(s.stories()[i]).cached == quire::token_count{24}); }
}

TEST_CASE("generate: samples of one seed are the same again, of another not") {
  auto wanted = small();
  wanted.temperature = 1.0;
  wanted.top_k = 30;
  auto const say = [&](std::uint64_t seed) {
    wanted.seed = seed;
    auto s = llama2::service{network().file, network().words, wanted};
    s.run(nothing);
    auto out = std::vector<std::vector<quire::token_id>>{};
    for (auto const& one : s.stories()) { out.push_back(s.result(one).state.output); }
    return out;
  };
  CHECK(say(1) == say(1));
  CHECK(say(1) != say(2));
}

TEST_CASE("generate: what cannot be served says why") {
  auto wanted = small();
  auto const run = [&] {
    auto s = llama2::service{network().file, network().words, wanted};
    s.run(nothing);
  };
  wanted.prompts = {std::string(600, 'z')};
  CHECK_THROWS_WITH(run(), quire_test::ContainsSubstring("the model has 512"));
  wanted.prompts = {"Readers open"};
  wanted.blocks = 2;
  CHECK_THROWS_WITH(run(), quire_test::ContainsSubstring("the pool has 16"));
  wanted = small();
  wanted.top_p = 2.0;
  CHECK_THROWS_AS(run(), quire::config_error);
  wanted = small();
  wanted.prompts = {std::string(506, 'z')}; // 508 tokens: five outputs fit
  auto s = llama2::service{network().file, network().words, wanted};
  s.run(nothing);
  CHECK(s.result(s.stories()[0]).covered == quire::token_count{512});
}

TEST_CASE("generate: the report for machines says what the screen says") {
  auto s = llama2::service{network().file, network().words, small()};
  s.run(nothing);
  auto const e = llama2::check_equivalence(s, network().file.shape());
  auto const path = std::filesystem::temp_directory_path() / ("quire_report_" + std::to_string(getpid()) + ".json");
  llama2::write_report(path.string(), s, network().file.shape(), e);
  auto const report = nlohmann::json::parse(std::ifstream{path});
  std::filesystem::remove(path);
  CHECK(report["prompts"].size() == 6);
  CHECK(report["prompts"][1]["found"] == 24);
  CHECK(report["prompts"][1]["output_ids"].size() == 20);
  CHECK(report["prompts"][1]["computed"]["positions"] == 32 - 24 + 19);
  CHECK(report["equivalence"]["verdict"] == "numeric");
  CHECK(report["computed"]["positions"] == s.generator().computed().positions);
  CHECK(report["prompts"][0]["measured_ns"]["ttft"] > 0);
  CHECK_THROWS_AS(llama2::write_report("/nowhere/report.json", s, network().file.shape(), e), llama2::input_error);
}

TEST_CASE("S40: drawing takes no time from those who are timed") {
  auto watch = llama2::stopwatch{};
  auto const before = watch.now();
  watch.pause();
  auto const during = watch.now();
  CHECK(watch.now() == during);
  watch.resume();
  CHECK(watch.now() >= during);
  CHECK(during >= before);
}
