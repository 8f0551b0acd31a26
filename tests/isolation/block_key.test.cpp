// SPDX-License-Identifier: Apache-2.0
#include <quire/identity/block_key.hpp>
#include <quire/identity/constant_digest.hpp>
#include <quire/identity/xxh3_128_digest.hpp>

#include "isolation/identity_fixtures.hpp"
#include "isolation/truncated_digest.hpp"
#include "support/catch_compat.hpp"
#include "support/counting_allocator.hpp"
#include "support/throwing_contract.hpp"

#include <array>
#include <cstddef>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

namespace {

using quire::block_depth;
using quire::block_key;
using quire::token_id;
using quire_test::domain_of;
using quire_test::scope_of;
using quire_test::some_fields;
using tokens = std::vector<token_id>;

using xxh3 = quire::xxh3_128_digest;
using key = block_key<xxh3>;
using token_span = std::span<token_id const>;

// Cases 13, 14: every argument, in its own type; no key of tokens only, of a scope that is about to end, or by default.
static_assert(std::is_constructible_v<key, xxh3, quire::scope_key const&, block_depth, quire::digest_128, token_span>);
static_assert(!std::is_default_constructible_v<key>);
static_assert(!std::is_constructible_v<key, token_span>);
static_assert(!std::is_constructible_v<key, xxh3, token_span>);
static_assert(!std::is_constructible_v<key, quire::digest_128>);
static_assert(!std::is_constructible_v<key, xxh3, block_depth, quire::digest_128, token_span>);
static_assert(!std::is_constructible_v<key, xxh3, quire::scope_key const&, quire::digest_128, token_span>);
static_assert(!std::is_constructible_v<key, xxh3, quire::scope_key const&, block_depth, token_span>);
static_assert(!std::is_constructible_v<key, xxh3, quire::scope_key const&, block_depth, quire::digest_128>);
static_assert(!std::is_constructible_v<key, xxh3, quire::scope_key const&, unsigned, quire::digest_128, token_span>);
static_assert(!std::is_constructible_v<key, xxh3, quire::scope_key, block_depth, quire::digest_128, token_span>);
static_assert(!std::is_constructible_v<key, quire::constant_digest, quire::scope_key const&, block_depth,
                                       quire::digest_128, token_span>);
static_assert(std::is_trivially_copyable_v<key>);

template <class Policy>
auto first_key(quire::scope_key const& scope, tokens const& block) -> block_key<Policy> {
  auto const policy = Policy{};
  return {policy, scope, block_depth{0}, policy.root(scope.bytes()), block};
}

} // namespace

TEST_CASE("S21: a key is what was said, and its digest is the chain") {
  auto const policy = xxh3{};
  auto const scope = scope_of(some_fields(), domain_of("a"));
  auto const a = tokens{1, 2, 3, 4};
  auto const b = tokens{5, 6, 7, 8};
  auto const first = key{policy, scope, block_depth{0}, policy.root(scope.bytes()), a};
  auto const second = key{policy, scope, block_depth{1}, first.digest(), b};
  CHECK(&second.scope() == &scope);
  CHECK(second.depth() == block_depth{1});
  CHECK(second.parent() == policy.chain(policy.root(scope.bytes()), a));
  CHECK(second.digest() == policy.chain(second.parent(), b));
  CHECK(second.tokens().data() == b.data());
  CHECK(second.tokens().size() == 4);
}

TEST_CASE("S21: each part of a key separates, equal parts join") {
  auto const policy = xxh3{};
  auto const scope = scope_of(some_fields(), domain_of("a"));
  auto const same_scope = scope_of(some_fields(), domain_of("a"));
  auto const other_scope = scope_of(some_fields(), domain_of("b"));
  auto const block = tokens{1, 2, 3, 4};
  auto const same_block = block;
  auto const other_block = tokens{1, 2, 3, 5};
  auto const parent = quire::digest_128{};
  auto other_parent = parent;
  other_parent.bytes[7] = std::byte{1};

  auto const base = key{policy, scope, block_depth{2}, parent, block};
  auto const equal = key{policy, same_scope, block_depth{2}, parent, same_block};
  CHECK(base == equal);
  CHECK(base.digest() == equal.digest());
  CHECK(base.encode() == equal.encode());

  for (auto const& other :
       {key{policy, other_scope, block_depth{2}, parent, block}, key{policy, scope, block_depth{3}, parent, block},
        key{policy, scope, block_depth{2}, other_parent, block},
        key{policy, scope, block_depth{2}, parent, other_block}}) {
    CHECK_FALSE(base == other);
    CHECK(base.encode() != other.encode());
  }
}

TEST_CASE("S21: the encoding of a key is that of an independent implementation") {
  auto const scope =
      scope_of(quire_test::golden_fields(),
               quire::sharing_domain::isolated(quire::tenant_id{"tenant"}, quire::authorisation_domain{"project"},
                                               quire::domain_salt::none()));
  auto parent = quire::digest_128{};
  for (std::size_t i = 0; i < 16; ++i) { parent.bytes[i] = static_cast<std::byte>(i); }
  auto const block = tokens{1, -2, 300, std::numeric_limits<token_id>::max()};
  CHECK(quire_test::to_hex(key{xxh3{}, scope, block_depth{3}, parent, block}.encode()) == quire_test::golden("block"));
}

TEST_CASE("case 1: blocks whose digests collide have different keys") {
  using policy_type = quire_test::truncated_digest;
  auto const policy = policy_type{};
  auto const scope = scope_of<policy_type>(some_fields(), domain_of("a"));
  auto const root = policy.root(scope.bytes());
  auto const stored = tokens{1, 2, 3, 4};
  auto collisions = 0;
  for (token_id t = 0; t < 5000; ++t) {
    auto const forged = tokens{9, 7, 5, t};
    if (policy.chain(root, forged) != policy.chain(root, stored)) { continue; }
    ++collisions;
    auto const a = first_key<policy_type>(scope, stored);
    auto const b = first_key<policy_type>(scope, forged);
    REQUIRE(a.digest() == b.digest());
    CHECK_FALSE(a == b);
    CHECK(a.encode() != b.encode());
  }
  CHECK(collisions > 4); // 5000 / 256 are expected
}

TEST_CASE("case 2: equal tokens after another parent have different keys") {
  auto const policy = xxh3{};
  auto const scope = scope_of(some_fields(), domain_of("a"));
  auto const root = policy.root(scope.bytes());
  auto const shared = tokens{5, 6, 7, 8};
  auto const after_a = key{policy, scope, block_depth{1}, policy.chain(root, tokens{1, 2, 3, 4}), shared};
  auto const after_b = key{policy, scope, block_depth{1}, policy.chain(root, tokens{1, 2, 3, 5}), shared};
  CHECK_FALSE(after_a == after_b);
  CHECK(after_a.digest() != after_b.digest());
}

TEST_CASE("case 3: under a constant digest keys differ by everything they carry") {
  using policy_type = quire::constant_digest;
  auto const policy = policy_type{};
  auto const scope_a = scope_of<policy_type>(some_fields(), domain_of("a"));
  auto const scope_b = scope_of<policy_type>(some_fields(), domain_of("b"));
  auto const one = tokens{1, 2, 3, 4};
  auto const two = tokens{1, 2, 3, 5};
  auto const root = policy.root(scope_a.bytes());
  auto const victim = block_key{policy, scope_a, block_depth{0}, root, std::span{one}};
  auto const poisoned = block_key{policy, scope_a, block_depth{0}, root, std::span{two}};
  auto const foreign = block_key{policy, scope_b, block_depth{0}, root, std::span{one}};
  auto const deeper = block_key{policy, scope_a, block_depth{1}, root, std::span{one}};
  for (auto const& other : {poisoned, foreign, deeper}) {
    REQUIRE(victim.digest() == other.digest());
    CHECK_FALSE(victim == other);
    CHECK(victim.encode() != other.encode());
  }
}

TEST_CASE("case 4: a scope and a policy of different schemes make no key") {
  auto const scope = scope_of<quire::constant_digest>(some_fields(), domain_of("a"));
  auto const block = tokens{1, 2, 3, 4};
  CHECK_THROWS_AS(first_key<xxh3>(scope, block), quire_test::contract_violation);
  CHECK_NOTHROW(first_key<quire::constant_digest>(scope, block));
}

TEST_CASE("case 5: base and adapter, same prompt: no common key") {
  auto adapted = some_fields();
  adapted.adapters = quire::adapter_list::of({quire_test::some_adapter(1, 1.0)});
  auto const base = scope_of(some_fields(), domain_of("a"));
  auto const with = scope_of(adapted, domain_of("a"));
  auto const block = tokens{1, 2, 3, 4};
  CHECK(first_key<xxh3>(base, block).digest() != first_key<xxh3>(with, block).digest());
  CHECK_FALSE(first_key<xxh3>(base, block) == first_key<xxh3>(with, block));
}

TEST_CASE("case 9: a digest of content lies in another domain than tokens") {
  STATIC_REQUIRE_FALSE(std::is_convertible_v<quire::content_digest, token_id>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<token_id, quire::content_digest>);
  // Placeholder tokens stay what they are; the image is in the scope.
  auto with_image = some_fields();
  with_image.conditions = quire::external_conditions::of(quire_test::some_digest(1));
  auto const text = scope_of(some_fields(), domain_of("a"));
  auto const image = scope_of(with_image, domain_of("a"));
  auto const block = tokens{7, 7, 7, 7};
  CHECK_FALSE(first_key<xxh3>(text, block) == first_key<xxh3>(image, block));
}

TEST_CASE("case 13: another tenant's key never equals, whatever the digest") {
  auto const block = tokens{1, 2, 3, 4};
  auto const x = scope_of(some_fields(), domain_of("x"));
  auto const y = scope_of(some_fields(), domain_of("y"));
  CHECK(first_key<xxh3>(x, block).digest() != first_key<xxh3>(y, block).digest());
  CHECK(first_key<xxh3>(x, block).encode() != first_key<xxh3>(y, block).encode());
  auto const cx = scope_of<quire::constant_digest>(some_fields(), domain_of("x"));
  auto const cy = scope_of<quire::constant_digest>(some_fields(), domain_of("y"));
  CHECK_FALSE(first_key<quire::constant_digest>(cx, block) == first_key<quire::constant_digest>(cy, block));
}

TEST_CASE("case 118: only full blocks have keys, and the first one starts at the root") {
  auto const policy = xxh3{};
  auto const scope = scope_of(some_fields(), domain_of("a"));
  auto const root = policy.root(scope.bytes());
  auto const block = tokens{1, 2, 3, 4};
  CHECK_NOTHROW(key{policy, scope, block_depth{0}, root, block});
  CHECK_THROWS_AS((key{policy, scope, block_depth{0}, root, token_span{}}), quire_test::contract_violation);
  CHECK_THROWS_AS((key{policy, scope, block_depth{1}, root, token_span{block}.first(3)}),
                  quire_test::contract_violation);
  CHECK_THROWS_AS((key{policy, scope, block_depth{1}, root, tokens{1, 2, 3, 4, 5}}), quire_test::contract_violation);
  CHECK_THROWS_AS((key{policy, scope, block_depth{0}, quire::digest_128{}, block}), quire_test::contract_violation);
  auto const other = scope_of(some_fields(), domain_of("b"));
  CHECK_THROWS_AS((key{policy, other, block_depth{0}, root, block}), quire_test::contract_violation);
}

TEST_CASE("S21: making and comparing keys allocates nothing") {
  auto const scope = scope_of(some_fields(), domain_of("a"));
  auto const block = tokens{1, 2, 3, 4};
  CHECK(quire_test::allocations_of(
            [&] { static_cast<void>(first_key<xxh3>(scope, block) == first_key<xxh3>(scope, block)); }) == 0);
}
