// SPDX-License-Identifier: Apache-2.0

/// \file
/// The planner as a program: what it prints and writes, exit codes, and the published figures of real models.

#include "support/catch_compat.hpp"

#if __has_include(<nlohmann/json.hpp>) && defined(QUIRE_PLAN_PROGRAM)

#include <nlohmann/json.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace {

using quire_test::ContainsSubstring;

constexpr std::uint64_t kib = 1024;
constexpr std::uint64_t mib = 1024 * kib;
constexpr std::uint64_t gib = 1024 * mib;

struct answer {
  int code = -1;
  std::string text; // output and messages
};

/// A folder of this test run.
class workshop {
public:
  workshop() : path_{std::filesystem::temp_directory_path() / ("quire_plan_" + std::to_string(getpid()))} {
    std::filesystem::create_directories(path_);
  }
  workshop(workshop const&) = delete;
  auto operator=(workshop const&) -> workshop& = delete;
  ~workshop() {
    auto ignored = std::error_code{};
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] auto file(std::string const& name) const -> std::string { return (path_ / name).string(); }
  [[nodiscard]] auto run(std::string const& arguments) const -> answer {
    auto const command = std::string{"'" QUIRE_PLAN_PROGRAM "' "} + arguments + " >'" + file("said") + "' 2>&1";
    auto const status = std::system(command.c_str());
    auto in = std::ifstream{file("said")};
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, {std::istreambuf_iterator<char>{in}, {}}};
  }
  [[nodiscard]] auto plan(std::string const& arguments) const -> nlohmann::json {
    auto const done = run(arguments + " --json '" + file("plan.json") + "'");
    INFO(done.text);
    REQUIRE(done.code == 0);
    auto in = std::ifstream{file("plan.json")};
    return nlohmann::json::parse(in);
  }

private:
  std::filesystem::path path_;
};

/// The number on the line that begins with \p name.
auto number_of(std::string const& text, std::string const& name) -> std::uint64_t {
  std::smatch found;
  REQUIRE(std::regex_search(text, found, std::regex{"\n  " + name + " +([0-9,]+)( B|\n)"}));
  auto digits = found[1].str();
  std::erase(digits, ',');
  return std::stoull(digits);
}

} // namespace

TEST_CASE("B13: Llama-3-8B on two ranks of 80 GiB, each overhead on its own line") {
  workshop const w;
  auto const said = w.run("--model llama3-8b --memory 80GiB --weights 16GiB --tp 2 --context 8192");
  REQUIRE(said.code == 0);
  // 4 of 8 heads: 32 layers · 4 · 256 · 2 bytes = 64 KiB per token, 1 MiB per block of 16, 512 blocks and 2 KiB of table
  // per request: 64 GiB / (512 MiB + 2 KiB) = 127, the rest in blocks
  CHECK(number_of(said.text, "weights") == 16 * gib);
  CHECK(number_of(said.text, "bytes per token") == 64 * kib);
  CHECK(number_of(said.text, "one request") == 512 * mib);
  CHECK(number_of(said.text, "concurrent requests") == 127);
  CHECK(number_of(said.text, "blocks") == 65'535);
  CHECK(number_of(said.text, "tokens") == 65'535 * 16);
  CHECK(number_of(said.text, "page tables") == 127 * 512 * 4);
  auto sum = std::uint64_t{0};
  for (auto const* const name : {"weights", "workspace", "page tables", "unmanaged state", "cache data", "cache scales",
                                 "alignment padding", "unused"}) {
    sum += number_of(said.text, name);
  }
  CHECK(sum == 80 * gib);
  CHECK(number_of(said.text, "= memory") == 80 * gib);
}

TEST_CASE("S42: the plan says that its figures are computed") {
  workshop const w;
  auto const said = w.run("--model llama3-8b --memory 80GiB");
  CHECK_THAT(said.text, ContainsSubstring("every figure is computed, none is measured"));
  for (auto const* const table : {"memory of a rank (computed)", "cache (computed)", "block sizes (computed)"}) {
    CHECK_THAT(said.text, ContainsSubstring(table));
  }
  auto const json = w.plan("--model llama3-8b --memory 80GiB");
  CHECK(json["computed"] == true);
  CHECK(json["measured"] == false);
}

TEST_CASE("S10: the plan of every model gives the published bytes per token") {
  struct figures {
    char const* model;
    std::uint64_t naive;  ///< [bytes] per token, all layers
    std::uint64_t growth; ///< [bytes] per token beyond the window
  };
  workshop const w;
  for (auto const& [model, naive, growth] : std::vector<figures>{{"llama3-8b", 131'072, 131'072},
                                                                 {"llama3.1-405b", 516'096, 516'096},
                                                                 {"llama4-scout", 196'608, 49'152},
                                                                 {"mistral-7b-v0.1", 131'072, 0},
                                                                 {"qwen2.5-0.5b", 12'288, 12'288},
                                                                 {"qwen3-235b-a22b", 192'512, 192'512},
                                                                 {"gemma2-27b", 376'832, 188'416},
                                                                 {"gemma3-27b", 507'904, 81'920},
                                                                 {"gpt-oss-120b", 73'728, 36'864},
                                                                 {"phi-4", 204'800, 204'800},
                                                                 {"deepseek-v3", 70'272, 70'272},
                                                                 {"deepseek-v3-fp8", 40'016, 40'016},
                                                                 {"qwen3-next-80b", 24'576, 24'576}}) {
    auto const rank = w.plan(std::string{"--memory 4TiB --context 8192 --model "} + model)["ranks"][0];
    INFO(model);
    CHECK(rank["bytes_per_token"] == naive);
    CHECK(rank["growth_per_token"] == growth);
  }
}

TEST_CASE("S11: ranks hold what they store") {
  workshop const w;
  auto const bytes = [&](std::string const& split) {
    return w.plan("--memory 1TiB --context 1024 " + split)["ranks"][0]["bytes_per_token"].get<std::uint64_t>();
  };
  CHECK(bytes("--model llama3-8b --tp 8") == 131'072 / 8);
  CHECK(bytes("--model llama3-8b --tp 16") == 131'072 / 8); // replicated
  CHECK(bytes("--model deepseek-v3 --tp 8") == 70'272);     // latents are never sharded
  auto const stages = w.plan("--memory 1TiB --model gemma3-27b --context 8192 --pp 3")["ranks"];
  REQUIRE(stages.size() == 3);
  auto sum = std::uint64_t{0};
  for (auto const& stage : stages) { sum += stage["bytes_per_token"].get<std::uint64_t>(); }
  CHECK(sum == 507'904);
  // 2 context ranks: half of the blocks of each request
  auto const shared = w.plan("--memory 80GiB --model llama3-8b --context 8192 --cp 2")["ranks"][0]["groups"][0];
  CHECK(shared["blocks_per_request"] == 256);
}

TEST_CASE("S29: windows make the plan of a hybrid stack smaller") {
  workshop const w;
  auto const rank = w.plan("--memory 80GiB --model gemma3-27b --context 131072")["ranks"][0];
  REQUIRE(rank["groups"].size() == 2);
  CHECK(rank["groups"][0]["blocks_per_request"] == 65); // ⌈1023 / 16⌉ + 1
  CHECK(rank["groups"][1]["blocks_per_request"] == 8'192);
  auto const request = rank["request_bytes"].get<std::uint64_t>();
  CHECK(request > 10 * gib); // 10.41 GiB of needed positions, and at most a block per window layer besides
  CHECK(request < 10 * gib + 430 * mib);
}

TEST_CASE("S16: the plan compares block sizes") {
  workshop const w;
  auto const sizes = w.plan("--memory 80GiB --model llama3-8b --lengths 100,17,1")["block_sizes"];
  auto const find = [&](std::uint64_t tokens) {
    for (auto const& size : sizes) {
      if (size["block_tokens"] == tokens) { return size; }
    }
    return nlohmann::json{};
  };
  CHECK(find(1)["wasted_bytes"] == 0);
  CHECK(find(1)["table_bytes"] == 118 * 4);
  CHECK(find(16)["blocks"] == 7 + 2 + 1);
  CHECK(find(16)["wasted_bytes"] == (160 - 118) * 131'072);
  CHECK(find(16)["table_bytes"] == 10 * 4);
  CHECK(find(256)["wasted_bytes"] == (768 - 118) * 131'072);
}

TEST_CASE("S6: a lossy format is named in the plan, its scales on their line") {
  workshop const w;
  auto const plan = w.plan("--memory 80GiB --model llama3-8b --format int8");
  CHECK(plan["mode"] == "key=int8/token_head:f32+value=int8/token_head:f32");
  CHECK(plan["ranks"][0]["bytes_per_token"] == 32 * 8 * 2 * (128 + 4));
  CHECK(plan["ranks"][0]["bytes"]["cache scales"].get<std::uint64_t>() > 0);
}

TEST_CASE("B13: impossible plans are refused with the reason and exit code 2") {
  workshop const w;
  struct refusal {
    char const* arguments;
    char const* reason;
  };
  for (auto const& [arguments, reason] :
       std::vector<refusal>{{"--memory 80GiB", "--model is missing"},
                            {"--model llama3-8b", "--memory is missing"},
                            {"--model llama9 --memory 80GiB", "no preset is called \"llama9\""},
                            {"--model llama3-8b --memory 80GiB --tp 3", "32 query heads over 3 tensor ranks"},
                            {"--model phi-4 --memory 80GiB --tp 4", "10 KV heads over 4 tensor ranks"},
                            {"--model llama3-8b --memory 80GiB --tp 0", "a split over 0 ranks"},
                            {"--model llama3-8b --memory 80GiB --pp 33", "use at most 32 stages"},
                            {"--model llama3-8b --memory 80GiB --context 8193", "exceeds the model's 8192"},
                            {"--model llama3-8b --memory 1GiB", "use at most 8176 tokens"},
                            {"--model llama3-8b --memory 16GiB --weights 16GiB", "leaves nothing for a cache"},
                            {"--model llama3-8b --memory 80GiB --block-tokens 0", "a block of 0 tokens"},
                            {"--model llama3-8b --memory 900GiB --index int32", "a 64-bit index"},
                            {"--model llama3-8b --memory much", "is no amount of memory"},
                            {"--model llama3-8b --memory 80GiB --format f12", "no type is called \"f12\""},
                            {"--model llama3-8b --memory 80GiB --lengths 0", "a request of 0 tokens"},
                            {"--model llama3-8b --memory 80GiB --json /nowhere/plan.json", "cannot be written"},
                            {"--model llama3-8b --memory 80GiB --tp two", "--help lists the options"},
                            {"--bogus", "--help lists the options"}}) {
    auto const said = w.run(arguments);
    INFO(arguments << "\n" << said.text);
    CHECK(said.code == 2);
    CHECK_THAT(said.text, ContainsSubstring(reason));
  }
}

TEST_CASE("B13: the presets can be listed") {
  workshop const w;
  auto const said = w.run("--list");
  CHECK(said.code == 0);
  CHECK_THAT(said.text, ContainsSubstring("llama3-8b") && ContainsSubstring("deepseek-v3.2") &&
                            ContainsSubstring("minimax-text-01"));
  auto lines = 0;
  for (auto const c : said.text) { lines += c == '\n' ? 1 : 0; }
  CHECK(lines > 36);
  CHECK(w.run("--help").code == 0);
}

#endif
