// SPDX-License-Identifier: Apache-2.0

/// \file
/// The program itself: exit codes, messages, the files it writes.

#include "support/catch_compat.hpp"

#if __has_include(<nlohmann/json.hpp>) && defined(QUIRE_REPLAY_PROGRAM)

#include <nlohmann/json.hpp>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace {

struct answer {
  int code = -1;
  std::string text; // output and messages
};

/// A folder of this test run.
class workshop {
public:
  workshop() : path_{std::filesystem::temp_directory_path() / ("quire_replay_" + std::to_string(getpid()))} {
    std::filesystem::create_directories(path_);
  }
  workshop(workshop const&) = delete;
  auto operator=(workshop const&) -> workshop& = delete;
  ~workshop() {
    auto ignored = std::error_code{};
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] auto file(std::string const& name) const -> std::string { return (path_ / name).string(); }
  [[nodiscard]] auto write(std::string const& name, std::string const& text) const -> std::string {
    std::ofstream{file(name)} << text;
    return file(name);
  }
  [[nodiscard]] auto read(std::string const& name) const -> std::string {
    auto in = std::ifstream{file(name)};
    return {std::istreambuf_iterator<char>{in}, {}};
  }
  [[nodiscard]] auto run(std::string const& arguments) const -> answer {
    auto const command = std::string{"'" QUIRE_REPLAY_PROGRAM "' "} + arguments + " >'" + file("said") + "' 2>&1";
    auto const status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read("said")};
  }

private:
  std::filesystem::path path_;
};

std::string const line = R"({"timestamp": 0, "input_length": 1100, "output_length": 7, "hash_ids": [4, 9, 5]})"
                         "\n";

} // namespace

TEST_CASE("replay: bad input ends with exit code 2, an answer and no files") {
  using quire_test::ContainsSubstring;
  auto const w = workshop{};
  auto const trace = "--trace " + w.write("good.jsonl", line + line);
  struct bad {
    std::string arguments;
    std::string says;
  };
  for (auto const& [arguments, says] : {
           bad{"--trace " + w.file("none.jsonl"), "no such file"},
           bad{"--trace " + w.write("empty.jsonl", ""), "the trace is empty"},
           bad{"--trace " + w.write("bad.jsonl", line + line + "{\"timestamp\": 0, \"input_length\": -1}\n"),
               "bad.jsonl:3: field \"input_length\""},
           bad{trace + " --blocks 0", "0 blocks"},
           bad{trace + " --blocks ten", "--blocks"},
           bad{trace + " --block-tokens 0", "--block-tokens"},
           bad{trace + " --eviction lru,mru", "no policy \"mru\""},
           bad{trace + " --memory 8GiB --model nothing-7b", "no preset \"nothing-7b\""},
           bad{trace + " --memory 8GiB", "--model"},
           bad{trace + " --memory 8 GiB --model llama3-8b", "not"},
           bad{trace + " --memory 8QiB --model llama3-8b", "8QiB"},
           bad{trace + " --memory 1kB --model llama3-8b", "hold no block"},
           bad{trace + " --memory 1GiB --model llama3-8b --blocks 7", "--blocks"},
           bad{trace + " --whole-blocks --overlap", "--overlap"},
           bad{trace + " --whole-blocks --block-tokens 16", "512"},
           bad{trace + " --blocks 10 --csv " + w.file("no/such/folder.csv"), "cannot be written"},
           bad{"--whole-blocks", "--trace"},
           bad{"--whole-blocks --trace " + w.write("a.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n1,2,3\n"),
               "hash_ids"},
           bad{"--limit 0", "--limit"},
           bad{"--what", "--what"},
       }) {
    INFO(arguments);
    auto const said = w.run("--json " + w.file("out.json") + " " + arguments);
    CHECK(said.code == 2);
    CHECK_THAT(said.text, ContainsSubstring(says));
    CHECK_THAT(said.text, ContainsSubstring("replay: "));
    CHECK(said.text.find("eviction    blocks") == std::string::npos); // no table
  }
  CHECK(w.run("--help").code == 0);
}

TEST_CASE("replay: the JSON has the agreed fields, and files say what the table says") {
  using quire_test::ContainsSubstring;
  auto const w = workshop{};
  auto const trace = w.write("good.jsonl", line + line + line);
  auto const said = w.run("--trace " + trace + " --whole-blocks --blocks 3,10 --eviction lru,optimal --json " +
                          w.file("o.json") + " --csv " + w.file("o.csv") + " --chart " + w.file("o.svg"));
  REQUIRE(said.code == 0);
  CHECK(said.text.find('\r') == std::string::npos); // no progress bar in a pipe
  CHECK(said.text.find('\x1b') == std::string::npos);
  CHECK_THAT(said.text, ContainsSubstring("3 requests"));
  CHECK_THAT(said.text, ContainsSubstring(w.file("o.svg")));
  auto const json = nlohmann::json::parse(w.read("o.json"));
  CHECK(json.size() == 2);
  CHECK(json["trace"] == trace);
  REQUIRE(json["runs"].size() == 4);
  for (auto const& run : json["runs"]) {
    CHECK(run["eviction"].is_string());
    for (auto const* const field : {"blocks", "references", "hit_blocks", "hit_tokens", "evictions", "peak_blocks"}) {
      INFO(field);
      CHECK(run[field].is_number_unsigned());
    }
    CHECK(run["seconds"].is_number_float());
    CHECK(run["references"] == 9);
    CHECK(run["hit_blocks"] == 6);
    CHECK(run["hit_tokens"] == 6 * 512);
    CHECK(run["evictions"] == 0);
    CHECK(run["peak_blocks"] == 3);
    CHECK(run["bound_hit_blocks"] == 6);
  }
  CHECK(json["runs"][0]["eviction"] == "lru");
  CHECK(json["runs"][0]["blocks"] == 3);
  CHECK(json["runs"][1]["eviction"] == "optimal");
  CHECK(json["runs"][2]["blocks"] == 10);
  auto const csv = w.read("o.csv");
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 5);
  CHECK_THAT(csv, ContainsSubstring("\nlru,3,512,3,0,9,6,"));
  auto const svg = w.read("o.svg");
  CHECK_THAT(svg, ContainsSubstring("<svg xmlns"));
  CHECK_THAT(svg, ContainsSubstring("</svg>"));
}

TEST_CASE("replay: a request larger than the pool is shown and the others are served") {
  using quire_test::ContainsSubstring;
  auto const w = workshop{};
  auto const trace = w.write(
      "good.jsonl", line + R"({"timestamp": 5, "input_length": 40, "output_length": 7, "hash_ids": [8]})" + "\n");
  auto const said = w.run("--trace " + trace + " --blocks 20 --eviction lru --json " + w.file("o.json"));
  CHECK(said.code == 0);
  CHECK_THAT(said.text, ContainsSubstring("1 of 2 requests; the first is request 1: "));
  CHECK_THAT(said.text, ContainsSubstring("needs 70 blocks"));
  auto const json = nlohmann::json::parse(w.read("o.json"));
  CHECK(json["runs"][0]["refused"] == 1);
  CHECK(json["runs"][0]["references"] == 2);
}

TEST_CASE("replay: without a trace the same seed gives the same figures") {
  auto const w = workshop{};
  auto const figures = [&](char const* seed) {
    REQUIRE(w.run(std::string{"--limit 300 --blocks 3000 --seed "} + seed + " --eviction lru,lfu --json " +
                  w.file("o.json"))
                .code == 0);
    auto json = nlohmann::json::parse(w.read("o.json"));
    for (auto& run : json["runs"]) {
      CHECK(run["requests"] == 300);
      run.erase("seconds");
      run.erase("references_per_second");
    }
    return json["runs"].dump();
  };
  auto const first = figures("4");
  CHECK(first == figures("4"));
  CHECK(first != figures("5"));
}

#else

TEST_CASE("replay: the program") { WARN("skipped: the program is not built here, or there is no nlohmann-json"); }

#endif
