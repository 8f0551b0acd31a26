// SPDX-License-Identifier: Apache-2.0
// Opened scopes: the bytes of a key alone decide, whatever their hash; a failed allocation opens nothing.
#include <quire/cache/scope_table.hpp>
#include <quire/core/types.hpp>
#include <quire/identity/scope_key.hpp>
#include <quire/prefix/node_id.hpp>

#include "isolation/identity_fixtures.hpp"
#include "support/catch_compat.hpp"
#include "support/counting_allocator.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new> // std::bad_alloc
#include <span>
#include <string>
#include <vector>

namespace {
using namespace quire;
using quire_test::domain_of;
using quire_test::scope_of;
using quire_test::some_fields;

using bytes_span = std::span<std::byte const>;

/// Tells no key from another.
struct constant_hash {
  auto operator()(bytes_span) const noexcept -> std::uint64_t { return 0; }
};
/// Tells eight kinds of keys apart, so that walks meet in the middle.
struct narrow_hash {
  auto operator()(bytes_span key) const noexcept -> std::uint64_t { return scope_hash{}(key) & 7U; }
};
/// The last slots come first: every walk goes past the end.
struct high_hash {
  auto operator()(bytes_span key) const noexcept -> std::uint64_t { return scope_hash{}(key) | 0xFFFF'FFF8U; }
};

/// Keys of \p count tenants, all of one length.
auto keys_of(std::size_t count) -> std::vector<scope_key> {
  auto keys = std::vector<scope_key>{};
  for (std::size_t i = 0; i < count; ++i) {
    auto const name = std::to_string(i);
    keys.push_back(scope_of(some_fields(), domain_of(std::string(6 - name.size(), '0') + name)));
  }
  return keys;
}

auto equal(bytes_span a, bytes_span b) -> bool { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

/// Notes for which bytes it was asked for a root.
struct index_of_roots {
  auto open_root(bytes_span scope) -> node_id {
    asked.emplace_back(scope.begin(), scope.end());
    return node_id{detail::root_bit | static_cast<std::uint32_t>(asked.size() - 1)};
  }
  std::vector<std::vector<std::byte>> asked;
};

/// Opens \p keys, and again in the other order; all keep their number and their bytes.
template <class Table>
void every_key_is_told_apart(std::vector<scope_key> const& keys) {
  auto table = Table{};
  for (std::size_t i = 0; i < keys.size(); ++i) {
    REQUIRE(table.open(keys[i]).value() == i);
    REQUIRE(table.open(keys[i / 2]).value() == i / 2); // while it grows as well
  }
  auto index = index_of_roots{};
  for (auto i = keys.size(); i-- > 0;) {
    auto const again = scope_key{keys[i]}; // other memory, equal bytes
    auto const number = table.open(again);
    REQUIRE(number.value() == i);
    static_cast<void>(table.root(number, 0, index));
    REQUIRE(equal(index.asked.back(), keys[i].bytes()));
  }
}
} // namespace

TEST_CASE("S36: scopes are told apart by their bytes, whatever their hash") {
  auto const keys = keys_of(600);
  REQUIRE(
      std::all_of(keys.begin(), keys.end(), [&](auto const& k) { return k.bytes().size() == keys[0].bytes().size(); }));
  SECTION("a hash that spreads") { every_key_is_told_apart<scope_table>(keys); }
  SECTION("a hash that never differs") { every_key_is_told_apart<basic_scope_table<constant_hash>>(keys); }
  SECTION("a hash of eight values") { every_key_is_told_apart<basic_scope_table<narrow_hash>>(keys); }
  SECTION("a hash that starts at the end") { every_key_is_told_apart<basic_scope_table<high_hash>>(keys); }
}

TEST_CASE("S36: a key longer than a stretch of memory is kept whole") {
  auto const fields = some_fields();
  auto table = basic_scope_table<constant_hash>{};
  auto const a = table.open(scope_of(fields, domain_of("a")));
  auto const longer =
      table.open(scope_of(fields, domain_of(std::string(70'000, 'a')))); // more than a chunk begins with
  CHECK(a != longer);
  CHECK(a == table.open(scope_of(fields, domain_of("a"))));
  CHECK(longer == table.open(scope_of(fields, domain_of(std::string(70'000, 'a')))));
}

TEST_CASE("S36: a scope keeps its root within an epoch") {
  auto const keys = keys_of(2);
  auto table = scope_table{};
  auto index = index_of_roots{};
  auto const a = table.open(keys[0]);
  auto const b = table.open(keys[1]);
  auto const root = table.root(a, 7, index);
  CHECK(table.root(a, 7, index) == root);
  CHECK(table.root(b, 7, index) != root);
  auto const later = table.root(a, 8, index);
  CHECK(later != root);
  CHECK(table.root(a, 8, index) == later);
  CHECK(index.asked.size() == 3);
  CHECK_THROWS(table.root(scope_number{2}, 8, index));
}

TEST_CASE("S36: a scope that memory is missing for is not opened, and is later") {
  auto const keys = keys_of(70);
  for (auto const before : {0U, 7U, 8U, 32U, 64U}) { // slots, scopes or chunks are full
    auto const failed = quire_test::fail_each_allocation(
        [&] {
          auto table = std::make_unique<scope_table>();
          for (auto i = 0U; i < before; ++i) { static_cast<void>(table->open(keys[i])); }
          return table;
        },
        [&](auto& table) { static_cast<void>(table->open(keys[before])); },
        [&](auto& table) {
          auto index = index_of_roots{};
          CHECK_THROWS(table->root(scope_number{before}, 0, index)); // no such scope
          for (auto i = 0U; i < before; ++i) { CHECK(table->open(keys[i]).value() == i); }
          CHECK(table->open(keys[before + 1]).value() == before); // the next one takes the number
          CHECK(table->open(keys[before]).value() == before + 1);
        });
    CHECK((failed > 0 || before == 7));
  }
}

TEST_CASE("S36: a scope that fails a thousand times uses up no memory") {
  auto const keys = keys_of(9);
  auto const open_all_but_one = [&](scope_table& table) {
    for (auto i = 0U; i < 8; ++i) { static_cast<void>(table.open(keys[i])); }
  };
  auto const open_last = [&](scope_table& table) { static_cast<void>(table.open(keys[8])); };
  auto spared = scope_table{};
  open_all_but_one(spared);
  auto const usual = quire_test::allocations_of([&] { open_last(spared); });
  REQUIRE(usual == 2); // slots and entries; the key finds room

  auto table = scope_table{};
  open_all_but_one(table);
  auto const fails_at = [&](std::size_t n) {
    auto const guard = quire_test::failing_allocation{n};
    try {
      open_last(table);
    } catch (std::bad_alloc const&) { return true; }
    return false;
  };
  CHECK(fails_at(2)); // the slots stay
  auto const held = table.metadata_bytes();
  auto failed = 0;
  for (auto i = 0; i < 1000; ++i) { failed += fails_at(1) ? 1 : 0; }
  CHECK(failed == 1000);
  CHECK(table.metadata_bytes() == held);
  CHECK(quire_test::allocations_of([&] { open_last(table); }) == usual - 1);
  CHECK(table.metadata_bytes() == spared.metadata_bytes());
}

TEST_CASE("S36: an opened scope is found without an allocation") {
  auto const keys = keys_of(100);
  auto table = scope_table{};
  for (auto const& key : keys) { static_cast<void>(table.open(key)); }
  auto numbers = 0U;
  CHECK(quire_test::allocations_of([&] {
          for (auto const& key : keys) { numbers += table.open(key).value(); }
        }) == 0);
  CHECK(numbers == 99 * 100 / 2);
}
