// SPDX-License-Identifier: Apache-2.0
// Files that are no checkpoint or no tokenizer: each is refused with what is wrong.
#include "generate/checkpoint.hpp"
#include "generate/input_error.hpp"
#include "generate/tokenizer.hpp"

#include "support/catch_compat.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <ios>
#include <limits>
#include <string>
#include <unistd.h>
#include <vector>

namespace {
using quire_test::ContainsSubstring;

/// A file that is gone when the test is over.
class scratch_file {
public:
  explicit scratch_file(std::vector<char> const& bytes)
      : path_{std::filesystem::temp_directory_path() /
              ("quire_input_" + std::to_string(getpid()) + "_" + std::to_string(std::bit_cast<std::uintptr_t>(this)))} {
    auto out = std::ofstream{path_, std::ios::binary};
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  scratch_file(scratch_file const&) = delete;
  ~scratch_file() { std::filesystem::remove(path_); }
  auto path() const -> std::string { return path_.string(); }

private:
  std::filesystem::path path_;
};

auto put(std::vector<char>& to, std::uint32_t word) -> void {
  for (unsigned i = 0; i < 4; ++i) { to.push_back(static_cast<char>(static_cast<unsigned char>(word >> (8 * i)))); }
}
/// A checkpoint of the given header with ascending small weights.
auto small_checkpoint(std::vector<std::int32_t> const& header = {8, 12, 2, 2, 1, 20, 16}) -> std::vector<char> {
  auto out = std::vector<char>{};
  for (auto const value : header) { put(out, std::bit_cast<std::uint32_t>(value)); }
  auto const shape = llama2::network_shape{8, 12, 2, 2, 1, 20, 16};
  auto const floats = llama2::checkpoint::parts{shape, header[5] > 0}.size;
  for (std::size_t i = 0; i < floats; ++i) { put(out, std::bit_cast<std::uint32_t>(static_cast<float>(i) / 1024)); }
  return out;
}
auto read(std::vector<char> const& bytes) -> llama2::checkpoint {
  return llama2::checkpoint::read(scratch_file{bytes}.path());
}

auto token_bytes(std::vector<std::string> const& words) -> std::vector<char> {
  auto out = std::vector<char>{};
  put(out, 7);
  for (auto const& word : words) {
    put(out, std::bit_cast<std::uint32_t>(-1.0F));
    put(out, static_cast<std::uint32_t>(word.size()));
    out.insert(out.end(), word.begin(), word.end());
  }
  return out;
}
} // namespace

TEST_CASE("checkpoint: a good file is read part by part") {
  auto const file = read(small_checkpoint());
  CHECK(file.shape().dim == 8);
  CHECK(file.shape().head_size() == 4);
  CHECK(file.shape().kv_dim() == 4);
  auto const& at = file.layout();
  CHECK(at.wq.begin == 20 * 8 + 2 * 8);
  CHECK(file.of_layer(at.wq, 1).front() == static_cast<float>(20 * 8 + 2 * 8 + 64) / 1024);
  CHECK(file.whole(at.classifier).data() == file.whole(at.embedding).data()); // tied
  auto const untied = read(small_checkpoint({8, 12, 2, 2, 1, -20, 16}));
  CHECK(untied.shape().vocabulary == 20);
  CHECK(untied.whole(untied.layout().classifier).size() == 160);
  CHECK(untied.whole(untied.layout().classifier).data() != untied.whole(untied.layout().embedding).data());
}

TEST_CASE("checkpoint: files that are missing, truncated, oversized or corrupt are refused with the reason") {
  CHECK_THROWS_WITH(llama2::checkpoint::read("/nowhere/model.bin"), ContainsSubstring("cannot be read"));
  CHECK_THROWS_WITH(read({}), ContainsSubstring("0 bytes, less than the header"));
  auto bytes = small_checkpoint();
  auto const size = bytes.size();
  bytes.pop_back();
  CHECK_THROWS_WITH(read(bytes), ContainsSubstring("truncated: it has " + std::to_string(size - 1) +
                                                   " bytes and its header asks for " + std::to_string(size)));
  bytes.resize(28);
  CHECK_THROWS_WITH(read(bytes), ContainsSubstring("truncated"));
  bytes.resize(27);
  CHECK_THROWS_WITH(read(bytes), ContainsSubstring("less than the header"));
  bytes = small_checkpoint();
  bytes.push_back(0);
  CHECK_THROWS_WITH(read(bytes), ContainsSubstring("oversized"));
  CHECK_THROWS_WITH(read(std::vector<char>(4096, 'x')), ContainsSubstring("the header says dim = 2021161080"));
  CHECK_THROWS_WITH(read(small_checkpoint({0, 12, 2, 2, 1, 20, 16})), ContainsSubstring("dim = 0"));
  CHECK_THROWS_WITH(read(small_checkpoint({8, -12, 2, 2, 1, 20, 16})), ContainsSubstring("hidden = -12"));
  CHECK_THROWS_WITH(read(small_checkpoint({8, 12, 2000, 2, 1, 20, 16})), ContainsSubstring("layers = 2000"));
  CHECK_THROWS_WITH(read(small_checkpoint({8, 12, 2, 0, 1, 20, 16})), ContainsSubstring("heads = 0"));
  CHECK_THROWS_WITH(read(small_checkpoint({8, 12, 2, 2, 0, 20, 16})), ContainsSubstring("kv_heads = 0"));
  CHECK_THROWS_WITH(read(small_checkpoint({8, 12, 2, 2, 1, 0, 16})), ContainsSubstring("vocabulary = 0"));
  CHECK_THROWS_WITH(read(small_checkpoint({8, 12, 2, 2, 1, std::numeric_limits<std::int32_t>::min(), 16})),
                    ContainsSubstring("vocabulary = -2147483648"));
  CHECK_THROWS_WITH(read(small_checkpoint({8, 12, 2, 2, 1, 20, 0})), ContainsSubstring("positions = 0"));
  CHECK_THROWS_WITH(read(small_checkpoint({8, 12, 2, 3, 1, 20, 16})), ContainsSubstring("do not divide"));
  CHECK_THROWS_WITH(read(small_checkpoint({8, 12, 2, 8, 1, 20, 16})),
                    ContainsSubstring("do not divide")); // heads of one element
  CHECK_THROWS_WITH(read(small_checkpoint({8, 12, 2, 4, 3, 20, 16})), ContainsSubstring("do not divide"));
  CHECK_THROWS_WITH(read(small_checkpoint({65536, 262144, 1024, 4096, 4096, 4194304, 4194304})),
                    ContainsSubstring("truncated"));
  bytes = small_checkpoint();
  for (std::size_t i = 0; i < 4; ++i) { bytes[28 + 4 * 17 + i] = static_cast<char>(0xFF); }
  CHECK_THROWS_WITH(read(bytes), ContainsSubstring("weight number 17 is no finite number"));
}

TEST_CASE("tokenizer: files that are cut off or belong to another model are refused with the reason") {
  auto const words = std::vector<std::string>{"<unk>", "<s>", "</s>", "a", " b"};
  auto const load = [](std::vector<char> const& bytes, std::uint32_t n) {
    return llama2::tokenizer::read(scratch_file{bytes}.path(), n);
  };
  auto bytes = token_bytes(words);
  CHECK(load(bytes, 5).tokens()[4].text == " b");
  CHECK_THROWS_WITH(load(bytes, 6), ContainsSubstring("token 5 of 6 is cut off"));
  CHECK_THROWS_WITH(load(bytes, 4), ContainsSubstring("bytes behind token 4"));
  bytes.pop_back();
  CHECK_THROWS_WITH(load(bytes, 5), ContainsSubstring("token 4 of 5 is cut off"));
  CHECK_THROWS_WITH(load({}, 1), ContainsSubstring("token 0 of 1 is cut off"));
  auto negative = token_bytes({"a"});
  negative[8] = static_cast<char>(0xFF);
  negative[9] = negative[10] = negative[11] = static_cast<char>(0xFF);
  CHECK_THROWS_WITH(load(negative, 1), ContainsSubstring("cut off"));
}

TEST_CASE("tokenizer: the best pair is merged first, bytes stand in for characters without a token") {
  auto tokens = std::vector<llama2::tokenizer::token>{{"<unk>", 0}, {"<s>", 0}, {"</s>", 0}};
  for (unsigned b = 0; b < 256; ++b) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", b);
    tokens.push_back({name, 0});
  }
  for (auto const* text : {" ", "a", "b", "c", "\xC3\xA9"}) { tokens.push_back({text, 0}); }
  tokens.push_back({"ab", 1});   // 264
  tokens.push_back({"bc", 2});   // 265
  tokens.push_back({"abc", -1}); // 266
  auto const t = llama2::tokenizer{tokens};
  CHECK(t.encode("") == std::vector<quire::token_id>{1});
  CHECK(t.encode("ab") == std::vector<quire::token_id>{1, 259, 264});
  CHECK(t.encode("abc") == std::vector<quire::token_id>{1, 259, 266}); // a + bc, since bc is worth more, then abc
  CHECK(t.encode("\xC3\xA9") == std::vector<quire::token_id>{1, 259, 263});
  CHECK(t.encode("\xC3\xA4") == std::vector<quire::token_id>{1, 259, 3 + 0xC3, 3 + 0xA4});
  CHECK(t.encode("\xC3") == std::vector<quire::token_id>{1, 259, 3 + 0xC3}); // cut off: bytes still
  CHECK(t.decode({259, 264, 3 + 0x41}) == "abA");                            // the first space is not printed
  CHECK(t.decode({259, 264}, 264) == " ab");
  CHECK_THROWS_WITH(t.decode({9999}), ContainsSubstring("there is no token 9999"));
  CHECK_THROWS_WITH(t.decode({-1}), ContainsSubstring("there is no token -1"));
  CHECK_THROWS_WITH((llama2::tokenizer{{{"<unk>", 0}, {"<s>", 0}, {" ", 0}}}.encode("x")),
                    ContainsSubstring("cannot spell"));
}
