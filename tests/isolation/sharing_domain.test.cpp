// SPDX-License-Identifier: Apache-2.0
#include <quire/identity/sharing_domain.hpp>

#include "isolation/identity_fixtures.hpp"
#include "support/catch_compat.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

using quire::sharing_domain;

// S36: no domain by default, from text, or with parts exchanged.
static_assert(!std::is_default_constructible_v<sharing_domain>);
static_assert(!std::is_constructible_v<sharing_domain, std::string_view>);
static_assert(!std::is_convertible_v<quire::tenant_id, quire::authorisation_domain>);
static_assert(!std::is_convertible_v<quire::authorisation_domain, quire::tenant_id>);
static_assert(!std::is_convertible_v<quire::tenant_id, quire::grant_id>);
static_assert(!std::is_convertible_v<quire::tenant_id, quire::domain_salt>);
static_assert(!std::is_convertible_v<std::string, quire::tenant_id>);
static_assert(!std::is_default_constructible_v<quire::tenant_id>);
static_assert(!std::is_default_constructible_v<quire::authorisation_domain>);
static_assert(!std::is_default_constructible_v<quire::grant_id>);
static_assert(!std::is_default_constructible_v<quire::domain_salt>);

namespace {
auto isolated(std::string_view tenant, std::string_view authorisation, quire::domain_salt const& salt)
    -> sharing_domain {
  return sharing_domain::isolated(quire::tenant_id{tenant}, quire::authorisation_domain{authorisation}, salt);
}
} // namespace

TEST_CASE("S36: each part of a domain separates, equal parts join") {
  auto const none = quire::domain_salt::none();
  auto const domains = std::vector{isolated("a", "p", none),
                                   isolated("b", "p", none),
                                   isolated("a", "q", none),
                                   isolated("a", "p", quire::domain_salt::of("s")),
                                   isolated("a", "p", quire::domain_salt::of("t")),
                                   isolated("p", "a", none),
                                   sharing_domain::public_grant(quire::grant_id{"a"}),
                                   sharing_domain::public_grant(quire::grant_id{"p"})};
  for (std::size_t i = 0; i < domains.size(); ++i) {
    for (std::size_t j = 0; j < domains.size(); ++j) {
      CAPTURE(i, j);
      CHECK((domains[i] == domains[j]) == (i == j));
    }
  }
  CHECK(isolated("a", "p", quire::domain_salt::of("s")) == domains[3]);
  CHECK(sharing_domain::public_grant(quire::grant_id{"a"}) == domains[6]);
}

TEST_CASE("S36: a tenant cannot spell the domain of another") {
  auto const none = quire::domain_salt::none();
  CHECK_FALSE(isolated("ab", "c", none) == isolated("a", "bc", none));
  CHECK_FALSE(isolated("a", "bc", none) == isolated("a", "b", quire::domain_salt::of("c")));
  auto const text = [](sharing_domain const& d) {
    return std::string{reinterpret_cast<char const*>(d.bytes().data()), d.bytes().size()};
  };
  // Not even with a whole encoding as its name.
  CHECK_FALSE(isolated(text(isolated("b", "p", none)), "p", none) == isolated("b", "p", none));
  CHECK_FALSE(sharing_domain::public_grant(quire::grant_id{text(isolated("b", "p", none))}) ==
              isolated("b", "p", none));
  CHECK_FALSE(isolated(std::string_view{"a\0", 2}, "p", none) == isolated("a", "p", none));
}

TEST_CASE("S36: the encoding is that of an independent implementation") {
  CHECK(quire_test::to_hex(isolated("tenant", "project", quire::domain_salt::none()).bytes()) ==
        quire_test::golden("isolated"));
  CHECK(quire_test::to_hex(isolated("tenant", "project", quire::domain_salt::of("salt")).bytes()) ==
        quire_test::golden("salted"));
  CHECK(quire_test::to_hex(sharing_domain::public_grant(quire::grant_id{"everyone"}).bytes()) ==
        quire_test::golden("public"));
}

TEST_CASE("S36: empty names and empty salts are refused") {
  CHECK_THROWS_AS(quire::tenant_id{""}, quire::config_error);
  CHECK_THROWS_AS(quire::authorisation_domain{""}, quire::config_error);
  CHECK_THROWS_AS(quire::grant_id{""}, quire::config_error);
  CHECK_THROWS_AS(quire::domain_salt::of(""), quire::config_error);
  CHECK(quire::domain_salt::none() == quire::domain_salt::none());
  CHECK_FALSE(quire::domain_salt::none() == quire::domain_salt::of(std::string_view{"\0", 1}));
}
