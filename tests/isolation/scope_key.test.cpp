// SPDX-License-Identifier: Apache-2.0
#include <quire/identity/constant_digest.hpp>
#include <quire/identity/scope_key.hpp>

#include "isolation/identity_fixtures.hpp"
#include "isolation/truncated_digest.hpp"
#include "support/catch_compat.hpp"
#include "support/counting_allocator.hpp"

#include <cstddef>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

using quire::scope_key;
using quire_test::domain_of;
using quire_test::scope_of;
using quire_test::some_digest;
using quire_test::some_fields;

// Case 14: nothing can be left out, and nothing stands for "the usual scope".
static_assert(!std::is_default_constructible_v<scope_key>);
static_assert(std::is_constructible_v<scope_key, quire::digest_scheme, quire::token_count, quire::compute_identity,
                                      quire::sharing_domain>);
static_assert(!std::is_constructible_v<scope_key, quire::digest_scheme, quire::token_count, quire::compute_identity>);
static_assert(!std::is_constructible_v<scope_key, quire::digest_scheme, quire::token_count, quire::sharing_domain>);
static_assert(
    !std::is_constructible_v<scope_key, quire::digest_scheme, quire::compute_identity, quire::sharing_domain>);
static_assert(!std::is_constructible_v<scope_key, quire::token_count, quire::compute_identity, quire::sharing_domain>);
static_assert(!std::is_constructible_v<scope_key, quire::digest_scheme, unsigned, quire::compute_identity,
                                       quire::sharing_domain>);
static_assert(!std::is_constructible_v<scope_key, std::string_view, quire::token_count, quire::compute_identity,
                                       quire::sharing_domain>);
static_assert(!std::is_default_constructible_v<quire::digest_scheme>);
static_assert(!std::is_constructible_v<quire::digest_scheme, std::string_view>);

TEST_CASE("S33: each part of a scope separates, equal parts join") {
  auto other = some_fields();
  other.weights = quire::weights_digest{some_digest(77)};
  auto const scopes = std::vector{scope_of(some_fields(), domain_of("a"), 4),
                                  scope_of(some_fields(), domain_of("a"), 16),
                                  scope_of(some_fields(), domain_of("b"), 4),
                                  scope_of(other, domain_of("a"), 4),
                                  scope_of<quire::constant_digest>(some_fields(), domain_of("a"), 4),
                                  scope_of<quire_test::truncated_digest>(some_fields(), domain_of("a"), 4)};
  for (std::size_t i = 0; i < scopes.size(); ++i) {
    for (std::size_t j = 0; j < scopes.size(); ++j) {
      CAPTURE(i, j);
      CHECK((scopes[i] == scopes[j]) == (i == j));
    }
  }
  CHECK(scopes[0] == scope_of(some_fields(), domain_of("a"), 4));
  CHECK(scopes[1].block_tokens() == quire::token_count{16});
}

TEST_CASE("S33: the encoding of a scope is that of an independent implementation") {
  auto const scope =
      scope_of(quire_test::golden_fields(),
               quire::sharing_domain::isolated(quire::tenant_id{"tenant"}, quire::authorisation_domain{"project"},
                                               quire::domain_salt::none()));
  CHECK(quire_test::to_hex(scope.bytes()) == quire_test::golden("scope"));
}

TEST_CASE("case 4: a scope says how it is digested") {
  auto const scope = scope_of<quire::constant_digest>(some_fields(), domain_of("a"));
  CHECK(scope.scheme().name() == "quire/constant/1");
  CHECK(scope.scheme() == quire::digest_scheme::of(quire::constant_digest{}));
  CHECK_FALSE(scope.scheme() == quire::digest_scheme::of<quire::xxh3_128_digest>());
  CHECK_FALSE(scope == scope_of<quire::xxh3_128_digest>(some_fields(), domain_of("a")));
}

TEST_CASE("case 11: what one field says, another cannot say") {
  auto const salted = [](std::string_view salt) {
    return quire::sharing_domain::isolated(quire::tenant_id{"t"}, quire::authorisation_domain{"p"},
                                           quire::domain_salt::of(salt));
  };
  auto const none = quire::sharing_domain::isolated(quire::tenant_id{"t"}, quire::authorisation_domain{"p"},
                                                    quire::domain_salt::none());
  auto const adapted = [](unsigned first) {
    auto fields = some_fields();
    fields.adapters = quire::adapter_list::of({quire_test::some_adapter(first, 1.0)});
    return fields;
  };
  // The bytes of an adapter's digest as salt, with the base model.
  auto const digest = some_digest(60);
  auto const as_salt = std::string_view{reinterpret_cast<char const*>(digest.bytes().data()), 32};
  CHECK_FALSE(scope_of(adapted(60), none) == scope_of(some_fields(), salted(as_salt)));
  // 'ab' + 'c' against 'a' + 'bc', over the seam between identity and domain too.
  auto const attention = [](std::string_view rule) {
    auto fields = some_fields();
    fields.attention = quire::visibility_rule{rule};
    return fields;
  };
  CHECK_FALSE(scope_of(attention("ab"), salted("c")) == scope_of(attention("a"), salted("bc")));
  CHECK_FALSE(scope_of(adapted(60), salted("ab")) == scope_of(adapted(60), salted("a")));
  CHECK(scope_of(adapted(60), salted("ab")) == scope_of(adapted(60), salted("ab")));
}

TEST_CASE("S35: a new revision shares nothing with the old one") {
  auto revised = some_fields();
  revised.weights = quire::weights_digest{some_digest(2)};
  auto const policy = quire::xxh3_128_digest{};
  auto const before = scope_of(some_fields(), domain_of("a"));
  auto const after = scope_of(revised, domain_of("a"));
  CHECK_FALSE(before == after);
  CHECK(policy.root(before.bytes()) != policy.root(after.bytes()));
}

TEST_CASE("S36: an equal digest never makes scopes equal") {
  auto const policy = quire::constant_digest{};
  auto const a = scope_of<quire::constant_digest>(some_fields(), domain_of("a"));
  auto const b = scope_of<quire::constant_digest>(some_fields(), domain_of("b"));
  REQUIRE(policy.root(a.bytes()) == policy.root(b.bytes()));
  CHECK_FALSE(a == b);
}

TEST_CASE("S33: a block of no tokens is refused") {
  CHECK_THROWS_AS(scope_of(some_fields(), domain_of("a"), 0), quire::config_error);
  CHECK_NOTHROW(scope_of(some_fields(), domain_of("a"), 1));
}

TEST_CASE("S33: a scope that cannot be built leaves nothing behind") {
  auto const identity = quire::compute_identity{some_fields()};
  auto const domain = domain_of("a");
  auto const refused = quire_test::fail_each_allocation(
      [] { return std::optional<scope_key>{}; },
      [&](auto& made) {
        made.emplace(quire::digest_scheme::of<quire::xxh3_128_digest>(), quire::token_count{4}, identity, domain);
      },
      [](auto const& made) { CHECK_FALSE(made.has_value()); });
  CHECK(refused > 0);
}
