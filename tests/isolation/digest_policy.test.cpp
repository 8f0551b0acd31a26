// SPDX-License-Identifier: Apache-2.0
#include <quire/identity/block_key.hpp>
#include <quire/identity/concepts.hpp>
#include <quire/identity/constant_digest.hpp>
#include <quire/identity/xxh3_128_digest.hpp>

#include "isolation/identity_fixtures.hpp"
#include "isolation/truncated_digest.hpp"
#include "support/catch_compat.hpp"
#include "support/counting_allocator.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace {

using quire::token_id;
using bytes = std::span<std::byte const>;
using block = std::span<token_id const>;

// The smallest model. Every near miss below is this with one thing wrong.
struct archetype {
  struct digest_type {
    int value;
    friend auto operator==(digest_type const&, digest_type const&) -> bool = default;
  };
  static constexpr auto scheme() noexcept -> std::string_view { return "archetype"; }
  auto root(bytes) const noexcept -> digest_type { return {0}; }
  auto chain(digest_type d, block) const noexcept -> digest_type { return {d.value + 1}; }
  auto locate(std::uint64_t, block) const noexcept -> std::uint32_t { return 0; }

  archetype(archetype const&) = delete; // the concept asks for no copy, no default and no comparison
  auto operator=(archetype const&) -> archetype& = delete;
  explicit archetype(int) noexcept {}
};
static_assert(quire::digest_policy<archetype>);
static_assert(!std::is_copy_constructible_v<archetype> && !std::is_default_constructible_v<archetype>);

static_assert(!quire::digest_policy<int>);
static_assert(!quire::digest_policy<void>);
static_assert(!quire::digest_policy<archetype&>);

// A model whose parts can be replaced one by one.
struct good_digest {
  using digest_type = std::uint64_t;
};
struct good_scheme {
  static constexpr auto scheme() noexcept -> std::string_view { return "near miss"; }
};
struct good_root {
  auto root(bytes) const noexcept -> std::uint64_t { return 0; }
};
struct good_chain {
  auto chain(std::uint64_t, block) const noexcept -> std::uint64_t { return 0; }
};
struct good_locate {
  auto locate(std::uint64_t, block) const noexcept -> std::uint32_t { return 0; }
};
struct nothing {};
template <class Digest = good_digest, class Scheme = good_scheme, class Root = good_root, class Chain = good_chain,
          class Locate = good_locate>
struct assembled : Digest, Scheme, Root, Chain, Locate {};

static_assert(quire::digest_policy<assembled<>>);

// digest_type
struct digest_incomparable {
  struct digest_type {};
};
struct digest_without_default {
  struct digest_type {
    explicit digest_type(int);
    [[maybe_unused]] friend auto operator==(digest_type const&, digest_type const&) -> bool = default;
  };
};
struct digest_not_trivial {
  using digest_type = std::string;
};
struct digest_reference {
  using digest_type = std::uint64_t&;
};
template <class D>
struct root_returning {
  auto root(bytes) const noexcept -> D;
};
template <class D>
struct chain_returning {
  auto chain(D, block) const noexcept -> D;
};
template <class Digest>
using with_digest = assembled<Digest, good_scheme, root_returning<typename Digest::digest_type>,
                              chain_returning<typename Digest::digest_type>>;
static_assert(quire::digest_policy<with_digest<good_digest>>);
static_assert(!quire::digest_policy<assembled<nothing>>);
static_assert(!quire::digest_policy<with_digest<digest_incomparable>>);
static_assert(!quire::digest_policy<with_digest<digest_without_default>>);
static_assert(!quire::digest_policy<with_digest<digest_not_trivial>>);
static_assert(!quire::digest_policy<with_digest<digest_reference>>);

// scheme
struct scheme_string {
  static constexpr auto scheme() noexcept -> char const* { return "x"; }
};
struct scheme_throwing {
  static constexpr auto scheme() -> std::string_view { return "x"; }
};
struct scheme_not_constexpr {
  static auto scheme() noexcept -> std::string_view { return "x"; }
};
struct scheme_not_static {
  constexpr auto scheme() const noexcept -> std::string_view { return "x"; }
};
template <class Scheme>
using with_scheme = assembled<good_digest, Scheme>;
static_assert(!quire::digest_policy<with_scheme<nothing>>);
static_assert(!quire::digest_policy<with_scheme<scheme_string>>);
static_assert(!quire::digest_policy<with_scheme<scheme_throwing>>);
static_assert(!quire::digest_policy<with_scheme<scheme_not_constexpr>>);
static_assert(!quire::digest_policy<with_scheme<scheme_not_static>>);

// root
struct root_narrow {
  auto root(bytes) const noexcept -> std::uint32_t;
};
struct root_throwing {
  auto root(bytes) const -> std::uint64_t;
};
struct root_mutable {
  auto root(bytes) noexcept -> std::uint64_t;
};
struct root_of_writable {
  auto root(std::span<std::byte>) const noexcept -> std::uint64_t;
};
template <class Root>
using with_root = assembled<good_digest, good_scheme, Root>;
static_assert(!quire::digest_policy<with_root<nothing>>);
static_assert(!quire::digest_policy<with_root<root_narrow>>);
static_assert(!quire::digest_policy<with_root<root_throwing>>);
static_assert(!quire::digest_policy<with_root<root_mutable>>);
static_assert(!quire::digest_policy<with_root<root_of_writable>>);

// chain
struct chain_narrow {
  auto chain(std::uint64_t, block) const noexcept -> std::uint32_t;
};
struct chain_throwing {
  auto chain(std::uint64_t, block) const -> std::uint64_t;
};
struct chain_mutable {
  auto chain(std::uint64_t, block) noexcept -> std::uint64_t;
};
struct chain_without_parent {
  auto chain(block) const noexcept -> std::uint64_t;
};
struct chain_of_writable {
  auto chain(std::uint64_t, std::span<token_id>) const noexcept -> std::uint64_t;
};
template <class Chain>
using with_chain = assembled<good_digest, good_scheme, good_root, Chain>;
static_assert(!quire::digest_policy<with_chain<nothing>>);
static_assert(!quire::digest_policy<with_chain<chain_narrow>>);
static_assert(!quire::digest_policy<with_chain<chain_throwing>>);
static_assert(!quire::digest_policy<with_chain<chain_mutable>>);
static_assert(!quire::digest_policy<with_chain<chain_without_parent>>);
static_assert(!quire::digest_policy<with_chain<chain_of_writable>>);

// locate
struct locate_wide {
  auto locate(std::uint64_t, block) const noexcept -> std::uint64_t;
};
struct locate_throwing {
  auto locate(std::uint64_t, block) const -> std::uint32_t;
};
struct locate_mutable {
  auto locate(std::uint64_t, block) noexcept -> std::uint32_t;
};
struct locate_without_seed {
  auto locate(block) const noexcept -> std::uint32_t;
};
template <class Locate>
using with_locate = assembled<good_digest, good_scheme, good_root, good_chain, Locate>;
static_assert(!quire::digest_policy<with_locate<nothing>>);
static_assert(!quire::digest_policy<with_locate<locate_wide>>);
static_assert(!quire::digest_policy<with_locate<locate_throwing>>);
static_assert(!quire::digest_policy<with_locate<locate_mutable>>);
static_assert(!quire::digest_policy<with_locate<locate_without_seed>>);

} // namespace

TEST_CASE("S44: the smallest digest policy works wherever one is taken") {
  auto const policy = archetype{0};
  auto const scope = quire_test::scope_of<archetype>(quire_test::some_fields(), quire_test::domain_of("a"), 2);
  auto const tokens = std::vector<token_id>{1, 2};
  auto const key =
      quire::block_key{policy, scope, quire::block_depth{0}, policy.root(scope.bytes()), std::span{tokens}};
  CHECK(key.digest().value == 1);
  CHECK(!key.encode().empty());
  CHECK(key == key);
  CHECK(quire::digest_scheme::of(policy) == scope.scheme());
}

// What every model promises beyond what the compiler sees; docs/concepts/digest_policy.md.
TEMPLATE_TEST_CASE("S44: digest policies keep the rules of the concept", "", quire::xxh3_128_digest,
                   quire::constant_digest, quire_test::truncated_digest) {
  auto const policy = TestType{};
  auto const same = TestType{};
  auto const scope = quire_test::scope_of<TestType>(quire_test::some_fields(), quire_test::domain_of("a"));
  auto tokens = std::vector<token_id>(600);
  std::iota(tokens.begin(), tokens.end(), -5);

  STATIC_REQUIRE(!TestType::scheme().empty());
  auto const root = policy.root(scope.bytes());
  auto const root_again = same.root(scope.bytes());
  CHECK(root == root_again);

  for (auto const length : {1U, 4U, 16U, 17U, 64U, 65U, 512U}) {
    auto const one = std::span{tokens}.first(length);
    auto copy = std::vector<token_id>(length + 1); // another address and alignment
    std::copy(one.begin(), one.end(), copy.begin() + 1);
    auto const two = std::span<token_id const>{copy}.subspan(1);
    auto const first = policy.chain(root, one);
    auto const second = same.chain(root, two);
    CHECK(first == second);
    CHECK(policy.locate(7, one) == same.locate(7, two));
    CHECK(quire_test::allocations_of([&] {
            static_cast<void>(policy.root(scope.bytes()));
            static_cast<void>(policy.chain(root, one));
            static_cast<void>(policy.locate(7, one));
          }) == 0);
  }
}
