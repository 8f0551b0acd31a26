// SPDX-License-Identifier: Apache-2.0
#include <quire/identity/constant_digest.hpp>
#include <quire/identity/xxh3_128_digest.hpp>

#include "isolation/identity_fixtures.hpp"
#include "support/catch_compat.hpp"

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using quire::token_id;
using quire_test::to_hex;

enum class golden_kind { root, chain, locate, prefix };

struct golden_digest {
  golden_kind kind;
  std::size_t length;
  std::uint64_t seed;
  std::string_view hex;
};

// Computed without quire: golden/make_xxh3_128_chain.py.
constexpr golden_digest golden_digests[] = {
#include "golden/xxh3_128_chain.txt"
};

auto golden_tokens(std::size_t first, std::size_t count) -> std::vector<token_id> {
  auto out = std::vector<token_id>{};
  for (auto i = first; i < first + count; ++i) {
    out.push_back(static_cast<token_id>(2654435761U * static_cast<std::uint32_t>(i) + 12345U));
  }
  return out;
}

auto golden_scope(std::size_t size) -> std::vector<std::byte> {
  auto out = std::vector<std::byte>{};
  for (std::size_t i = 0; i < size; ++i) { out.push_back(static_cast<std::byte>((31 * i + 7) & 0xFFU)); }
  return out;
}

auto golden_parent() -> quire::digest_128 {
  auto out = quire::digest_128{};
  for (std::size_t i = 0; i < out.bytes.size(); ++i) { out.bytes[i] = static_cast<std::byte>(7 * i + 1); }
  return out;
}

} // namespace

TEST_CASE("S21: XXH3 digests have the values of an independent implementation") {
  auto const policy = quire::xxh3_128_digest{};
  auto seen = std::set<golden_kind>{};
  for (auto const& golden : golden_digests) {
    CAPTURE(static_cast<int>(golden.kind), golden.length, golden.seed);
    seen.insert(golden.kind);
    auto got = std::string{};
    switch (golden.kind) {
    case golden_kind::root: got = to_hex(policy.root(golden_scope(golden.length)).bytes); break;
    case golden_kind::chain: {
      auto const tokens = golden_tokens(0, golden.length);
      got = to_hex(policy.chain(golden_parent(), tokens).bytes);
      break;
    }
    case golden_kind::locate: {
      auto const tokens = golden_tokens(0, golden.length);
      auto const place = policy.locate(golden.seed, tokens);
      for (auto shift : {24U, 16U, 8U, 0U}) {
        auto const b = static_cast<std::byte>((place >> shift) & 0xFFU);
        got += to_hex({&b, 1});
      }
      break;
    }
    case golden_kind::prefix: {
      auto digest = policy.root(golden_scope(100));
      for (std::size_t b = 0; b < golden.length; ++b) { digest = policy.chain(digest, golden_tokens(16 * b, 16)); }
      got = to_hex(digest.bytes);
      break;
    }
    }
    CHECK(got == golden.hex);
  }
  CHECK(seen.size() == 4);
}

TEST_CASE("S21: a digest depends on every token, on their order, on their number and on the parent") {
  auto const policy = quire::xxh3_128_digest{};
  for (auto const length : {1U, 2U, 15U, 16U, 17U, 64U, 65U, 300U}) {
    CAPTURE(length);
    auto const parent = golden_parent();
    auto tokens = golden_tokens(0, length);
    auto all = std::set<quire::digest_128>{policy.chain(parent, tokens)};
    for (std::size_t i = 0; i < length; ++i) {
      tokens[i] ^= 1;
      all.insert(policy.chain(parent, tokens));
      tokens[i] ^= 1;
    }
    for (std::size_t i = 1; i < length; ++i) {
      std::swap(tokens[i - 1], tokens[i]);
      all.insert(policy.chain(parent, tokens));
      std::swap(tokens[i - 1], tokens[i]);
    }
    for (std::size_t i = 0; i < parent.bytes.size(); ++i) {
      auto other = parent;
      other.bytes[i] ^= std::byte{0x80};
      all.insert(policy.chain(other, tokens));
    }
    tokens.push_back(0);
    all.insert(policy.chain(parent, tokens));
    CHECK(all.size() == 1 + length + (length - 1) + 16 + 1);
  }
}

TEST_CASE("S21: the same block after another prefix has another digest") {
  auto const policy = quire::xxh3_128_digest{};
  auto const root = policy.root(golden_scope(50));
  auto const shared = golden_tokens(0, 16);
  auto const after_a = policy.chain(policy.chain(root, golden_tokens(100, 16)), shared);
  auto const after_b = policy.chain(policy.chain(root, golden_tokens(200, 16)), shared);
  CHECK(after_a != after_b);
  CHECK(policy.chain(root, shared) != after_a);
}

TEST_CASE("S21: a root is not the chain link whose bytes it has") {
  auto const policy = quire::xxh3_128_digest{};
  auto const tokens = golden_tokens(0, 16);
  auto const parent = golden_parent();
  auto scope = std::vector<std::byte>(parent.bytes.begin(), parent.bytes.end());
  auto const raw = std::as_bytes(std::span{tokens});
  scope.insert(scope.end(), raw.begin(), raw.end());
  CHECK(policy.root(scope) != policy.chain(parent, tokens));
}

TEST_CASE("case 4: a placement secret changes places and no digest") {
  auto const plain = quire::xxh3_128_digest{};
  auto const secret = quire::xxh3_128_digest{0x1234'5678'9ABC'DEF0U};
  auto const scope = golden_scope(80);
  auto moved = 0;
  for (std::size_t i = 0; i < 64; ++i) {
    auto const tokens = golden_tokens(16 * i, 16);
    CHECK(plain.root(scope) == secret.root(scope));
    CHECK(plain.chain(golden_parent(), tokens) == secret.chain(golden_parent(), tokens));
    moved += plain.locate(i, tokens) != secret.locate(i, tokens) ? 1 : 0;
    CHECK(plain.locate(0x1234'5678'9ABC'DEF0U, tokens) == secret.locate(0, tokens));
  }
  CHECK(moved == 64);
}

TEST_CASE("S21: places depend on the seed and spread over their low bits") {
  auto const policy = quire::xxh3_128_digest{};
  auto const tokens = golden_tokens(0, 16);
  auto buckets = std::vector<int>(256);
  for (std::uint64_t seed = 0; seed < 256 * 64; ++seed) { ++buckets[policy.locate(seed, tokens) & 0xFFU]; }
  for (auto const count : buckets) { // mean 64, standard deviation 8
    CHECK(count > 24);
    CHECK(count < 104);
  }
}

TEST_CASE("VERIFY: the null model tells nothing apart") {
  auto const policy = quire::constant_digest{};
  auto const a = golden_tokens(0, 4);
  auto const b = golden_tokens(9, 16);
  CHECK(policy.root(golden_scope(1)) == policy.root(golden_scope(2)));
  CHECK(policy.chain(golden_parent(), a) == policy.chain(policy.root({}), b));
  CHECK(policy.locate(1, a) == policy.locate(2, b));
}
