// SPDX-License-Identifier: Apache-2.0
// Digest collisions through the real indexes: a digest only says where to look.
#include <quire/identity/digest_scheme.hpp>
#include <quire/prefix/flat_index.hpp>
#include <quire/prefix/run_tree.hpp>

#include "isolation/identity_fixtures.hpp"
#include "isolation/truncated_digest.hpp"
#include "storage/prefix/index_fixture.hpp"
#include "support/catch_compat.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace {
using namespace quire;
using quire_test::ascending;
using quire_test::domain_of;
using quire_test::scope_of;
using quire_test::shelf;
using quire_test::some_fields;
using quire_test::text;
using quire_test::truncated_digest;
using list = std::vector<std::uint32_t>;

// A text {9, x, y, z} whose first block has the 8-bit digest and the place of {1, 2, 3, 4} below the same root.
auto colliding(node_id root) -> text {
  auto const digest = truncated_digest{};
  auto const scope = scope_of(some_fields(), domain_of("tenant")); // as the shelf opens it
  auto const parent = digest.root(scope.bytes());
  auto const seed = root.value() * 0x9E37'79B9'7F4A'7C15ULL;
  auto const wanted = text{1, 2, 3, 4};
  for (token_id x = 0; x < 4000; ++x) {
    for (token_id y = 0; y < 64; ++y) {
      auto out = text{9, x, y, 2};
      if (digest.chain(parent, out) == digest.chain(parent, wanted) &&
          digest.locate(seed, out) == digest.locate(seed, wanted)) {
        return out;
      }
    }
  }
  return {};
}
} // namespace

TEMPLATE_TEST_CASE("case 1: a block whose 8-bit digest collides is never a hit", "",
                   (run_tree<lru_eviction, truncated_digest>), (flat_index<lru_eviction, truncated_digest>)) {
  auto s = shelf<TestType>{16, 4};
  auto const evil = colliding(s.root);
  REQUIRE(evil.size() == 4); // the collision exists
  s.use({1, 2, 3, 4});
  CHECK(s.index.hash_collisions() == 0);
  CHECK(s.find(evil).empty());
  CHECK(s.index.hash_collisions() == 1);
  CHECK(s.find({1, 2, 3, 4}) == list{0});
  CHECK(s.index.hash_collisions() == 1);
}

TEMPLATE_TEST_CASE("case 2: nothing collides under the default digest", "", (run_tree<>), (flat_index<>)) {
  auto s = shelf<TestType>{300, 4};
  for (token_id t = 0; t < 280; ++t) { s.use({t, t, t, t}); } // many share a bucket, and some a tag in it
  for (token_id t = 0; t < 280; ++t) { CHECK(s.find({t, t, t, t + 1}).empty()); }
  CHECK(s.index.hash_collisions() == 0);
}

TEMPLATE_TEST_CASE("case 4: two processes that agree on the scheme agree on every digest", "", run_tree<>,
                   flat_index<>) {
  auto producer = shelf<TestType>{16, 4};
  auto consumer = shelf<TestType>{16, 4};
  static_cast<void>(consumer.open("somebody else first")); // other numbers, other order
  auto const scope = scope_of(some_fields(), domain_of("shared"));
  auto const a = producer.index.open_root(scope.bytes());
  auto const b = consumer.index.open_root(scope.bytes());
  auto from = producer.publish(a, ascending(12));
  consumer.use(ascending(12, 70));
  auto to = consumer.publish(b, ascending(12));
  CHECK(producer.index.digest(from) == consumer.index.digest(to));
  for (auto back = 1U; back <= 3; ++back) { // and on what is before
    auto shorter = producer.pin_back(from, back);
    auto same = consumer.pin_back(to, back);
    CHECK(producer.index.digest(shorter) == consumer.index.digest(same));
    producer.release(std::move(shorter));
    consumer.release(std::move(same));
  }
  producer.release(std::move(from));
  consumer.release(std::move(to));
}

TEST_CASE("case 4: another scheme is another scope, so that a mismatch shows instead of missing for ever") {
  auto const ours = scope_of<xxh3_128_digest>(some_fields(), domain_of("t"));
  auto const theirs = scope_of<truncated_digest>(some_fields(), domain_of("t"));
  CHECK_FALSE(ours == theirs);
  CHECK(digest_scheme::of<xxh3_128_digest>() != digest_scheme::of<truncated_digest>());
}
