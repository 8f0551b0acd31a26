// SPDX-License-Identifier: Apache-2.0
#include "support/catch_compat.hpp"

#if __has_include(<nlohmann/json.hpp>)

#include "replay/csv_reader.hpp"
#include "replay/jsonl_reader.hpp"
#include "replay/read_trace.hpp"
#include "replay/whole_blocks.hpp"

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

namespace {

constexpr auto all = std::numeric_limits<std::size_t>::max();

auto json(std::string const& text, std::size_t limit = all) -> replay::trace {
  auto in = std::istringstream{text};
  return replay::read_jsonl(in, "a.jsonl", limit);
}
auto csv(std::string const& text, std::size_t limit = all) -> replay::trace {
  auto in = std::istringstream{text};
  return replay::read_csv(in, "a.csv", limit);
}
/// What is wrong with \p text; empty if nothing is.
template <class Reader>
auto mistake(Reader reader, std::string const& text) -> std::string {
  try {
    static_cast<void>(reader(text));
    return {};
  } catch (replay::input_error const& error) { return error.what(); }
}
auto json_mistake(std::string const& text) -> std::string {
  return mistake([](auto const& t) { return json(t); }, text);
}
auto csv_mistake(std::string const& text) -> std::string {
  return mistake([](auto const& t) { return csv(t); }, text);
}

std::string const good = R"({"timestamp": 1500, "input_length": 600, "output_length": 7, "hash_ids": [4, 9]})"
                         "\n";
std::string const header = "TIMESTAMP,ContextTokens,GeneratedTokens\n";

} // namespace

TEST_CASE("replay: a Mooncake trace is read, the last id covers what remains") {
  auto const t = json(good + "\n  \r\n" + good);
  REQUIRE(t.requests.size() == 2);
  auto const& r = t.requests[1];
  CHECK(r.arrival == 1.5);
  CHECK(r.prompt == 600);
  CHECK(r.output == 7);
  CHECK(r.number == 1);
  auto const prompt = t.prompt_of(r);
  REQUIRE(prompt.size() == 2);
  CHECK(prompt[0].text == replay::hashed_text(4));
  CHECK(prompt[0].tokens == 512);
  CHECK(prompt[1].text == replay::hashed_text(9));
  CHECK(prompt[1].tokens == 88);
  CHECK(json(good + good + good, 2).requests.size() == 2);
}

TEST_CASE("replay: a malformed line is named by file, line and field") {
  using quire_test::ContainsSubstring;
  CHECK(json_mistake(good).empty());
  struct bad {
    std::string line;
    std::string field;
  };
  for (auto const& [line, field] : {
           bad{R"({"timestamp": 1, "input_length": 600, "output_length": 7, "hash_ids": [4, 9)", "hash_ids"},
           bad{R"({"timestamp": 1, "input_length": 600, "output_length": 7, "hash_ids": [4]})", "hash_ids"},
           bad{R"({"timestamp": 1, "input_length": 600, "output_length": 7, "hash_ids": [4, -9]})", "hash_ids"},
           bad{R"({"timestamp": 1, "input_length": 600, "output_length": 7, "hash_ids": [4, "9"]})", "hash_ids"},
           bad{R"({"timestamp": 1, "input_length": 600, "output_length": 7, "hash_ids": 4})", "hash_ids"},
           bad{R"({"timestamp": 1, "input_length": 600, "output_length": 7})", "hash_ids"},
           bad{R"({"timestamp": 1, "input_length": 600, "output_length": 7.5, "hash_ids": [4, 9]})", "output_length"},
           bad{R"({"timestamp": 1, "input_length": 600, "output_length": -1, "hash_ids": [4, 9]})", "output_length"},
           bad{R"({"timestamp": 1, "input_length": 600, "hash_ids": [4, 9]})", "output_length"},
           bad{R"({"timestamp": 1, "input_length": 0, "output_length": 7, "hash_ids": []})", "input_length"},
           bad{R"({"timestamp": 1, "input_length": "600", "output_length": 7, "hash_ids": [4, 9]})", "input_length"},
           bad{R"({"timestamp": 1, "input_length": 99999999999, "output_length": 7, "hash_ids": [4, 9]})",
               "input_length"},
           bad{R"({"timestamp": 1, "input_length": [[[]]], "output_length": 7, "hash_ids": [4, 9]})", "input_length"},
           bad{R"({"timestamp": null, "input_length": 600, "output_length": 7, "hash_ids": [4, 9]})", "timestamp"},
           bad{R"({"timestamp": -1, "input_length": 600, "output_length": 7, "hash_ids": [4, 9]})", "timestamp"},
           bad{R"({"timestamp": 1e999, "input_length": 600, "output_length": 7, "hash_ids": [4, 9]})", "timestamp"},
           bad{R"([1, 2])", "timestamp"},
           bad{R"(what is this)", "timestamp"},
       }) {
    INFO(line);
    CHECK_THAT(json_mistake(good + "\n" + line + "\n" + good), ContainsSubstring("a.jsonl:3: field \"" + field + "\""));
  }
}

TEST_CASE("replay: a CSV of lengths is read by the names in its header") {
  auto const t = csv(header + "2023-11-16 18:17:03.9799600,4808,10\r\n2023-11-16 18:17:05.4799600,3180,0\r\n");
  REQUIRE(t.requests.size() == 2);
  CHECK_FALSE(t.has_ids);
  CHECK(t.requests[0].arrival == 0);
  CHECK(t.requests[1].arrival == quire_test::approx(1.5));
  CHECK(t.requests[0].prompt == 4808);
  CHECK(t.requests[0].output == 10);
  CHECK(t.requests[1].output == 0);
  CHECK(t.prompt_of(t.requests[0])[0].text != t.prompt_of(t.requests[1])[0].text);
  auto const other = csv("GeneratedTokens,x,TIMESTAMP,ContextTokens\n3,y,12.5,40\n1,z,11.5,50");
  CHECK(other.requests[0].arrival == 1);
  CHECK(other.requests[0].prompt == 40);
  CHECK(other.requests[1].arrival == 0);
  CHECK_THROWS_AS(replay::whole_blocks(t), replay::input_error);
}

TEST_CASE("replay: a malformed line of a CSV is named by file, line and field") {
  using quire_test::ContainsSubstring;
  auto const first = header + "2023-11-16 18:17:03.97,4808,10\n";
  CHECK(csv_mistake(first).empty());
  CHECK_THAT(csv_mistake(first + "2023-13-16 18:17:03.97,1,1"), ContainsSubstring("a.csv:3: field \"TIMESTAMP\""));
  CHECK_THAT(csv_mistake(first + "2023-11-31 18:17:03.97,1,1"), ContainsSubstring("a.csv:3: field \"TIMESTAMP\""));
  CHECK_THAT(csv_mistake(first + "2023-11-16 25:17:03.97,1,1"), ContainsSubstring("a.csv:3: field \"TIMESTAMP\""));
  CHECK_THAT(csv_mistake(first + "now,1,1"), ContainsSubstring("a.csv:3: field \"TIMESTAMP\""));
  CHECK_THAT(csv_mistake(first + "1,,1"), ContainsSubstring("a.csv:3: field \"ContextTokens\""));
  CHECK_THAT(csv_mistake(first + "1,0,1"), ContainsSubstring("a.csv:3: field \"ContextTokens\""));
  CHECK_THAT(csv_mistake(first + "1,2"), ContainsSubstring("a.csv:3: field \"GeneratedTokens\""));
  CHECK_THAT(csv_mistake(first + "1,2,3x"), ContainsSubstring("a.csv:3: field \"GeneratedTokens\""));
  CHECK_THAT(csv_mistake("TIMESTAMP,ContextTokens\n1,2"), ContainsSubstring("a.csv:1: field \"GeneratedTokens\""));
}

TEST_CASE("replay: a file that is missing, a folder or empty has a clear answer") {
  using quire_test::ContainsSubstring;
  auto const mistake_in = [](std::string const& file) {
    return mistake([](auto const& f) { return replay::read_trace(f, all); }, file);
  };
  auto const folder = std::filesystem::temp_directory_path() / "quire_replay_readers";
  std::filesystem::create_directories(folder);
  auto const write = [&](char const* name, std::string const& text) {
    auto const file = (folder / name).string();
    std::ofstream{file} << text;
    return file;
  };
  CHECK_THAT(mistake_in((folder / "none.jsonl").string()), ContainsSubstring("no such file"));
  CHECK_THAT(mistake_in(folder.string()), ContainsSubstring("folder"));
  CHECK_THAT(mistake_in(write("empty.jsonl", "")), ContainsSubstring("empty"));
  CHECK_THAT(mistake_in(write("blank.jsonl", "\n\n")), ContainsSubstring("empty"));
  CHECK_THAT(mistake_in(write("empty.csv", header)), ContainsSubstring("empty"));
  CHECK_THAT(mistake_in(write("no_json.jsonl", "hello\n")), ContainsSubstring("no_json.jsonl:1: field"));
  CHECK(replay::read_trace(write("no_extension", good), all).has_ids);
  CHECK_FALSE(replay::read_trace(write("no_extension_either", header + "1,2,3"), all).has_ids);
  std::filesystem::remove_all(folder);
}

TEST_CASE("replay: whole blocks have 512 tokens per id, one position more and no outputs") {
  auto const t = replay::whole_blocks(json(good + good));
  REQUIRE(t.requests.size() == 2);
  for (auto const& r : t.requests) {
    CHECK(r.prompt == 2 * 512 + 1);
    CHECK(r.output == 0);
    auto const prompt = t.prompt_of(r);
    REQUIRE(prompt.size() == 3);
    CHECK(prompt[0].text == replay::hashed_text(4));
    CHECK(prompt[1].text == replay::hashed_text(9));
    CHECK(prompt[1].tokens == 512);
    CHECK(prompt[2].tokens == 1);
  }
  CHECK(t.prompt_of(t.requests[0])[2].text != t.prompt_of(t.requests[1])[2].text);
}

#else

TEST_CASE("replay: readers") { WARN("skipped: there is no nlohmann-json"); }

#endif
