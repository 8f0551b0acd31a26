// SPDX-License-Identifier: Apache-2.0
// A fixed number of records, in use or not, and numbers that are never used twice.
#include <quire/cache/detail/record.hpp>
#include <quire/cache/detail/sequence_registry.hpp>
#include <quire/core/types.hpp>
#include <quire/sequence/request_state.hpp>

#include "support/catch_compat.hpp"
#include "support/counting_allocator.hpp"

#include <cstdint>
#include <set>
#include <vector>

namespace {
using namespace quire;
using record = detail::record<request_state, 1>;
using registry = detail::sequence_registry<record>;

auto numbers(registry const& r) -> std::vector<std::uint64_t> {
  auto out = std::vector<std::uint64_t>{};
  for (auto const& each : r.live()) { out.push_back(each.number.value()); }
  return out;
}
} // namespace

TEST_CASE("sequence_registry: as many records as it was given, each with a table per group") {
  auto r = registry{3, 2};
  CHECK(r.capacity() == 3);
  auto seen = std::set<record*>{};
  for (auto i = 0; i < 3; ++i) {
    REQUIRE_FALSE(r.full());
    auto& next = r.next();
    CHECK(next.tables.size() == 2);
    CHECK(&next == &r.next()); // until it begins
    r.begin(next);
    seen.insert(&next);
  }
  CHECK(r.full());
  CHECK(seen.size() == 3);
  CHECK(r.live().size() == 3);
}

TEST_CASE("S19: a record is used again, its number is not, and the oldest sequence comes first") {
  auto r = registry{2, 1};
  auto& a = r.next();
  r.begin(a);
  auto& b = r.next();
  r.begin(b);
  CHECK(numbers(r) == std::vector<std::uint64_t>{1, 2});
  r.end(a);
  CHECK_FALSE(r.full());
  CHECK(numbers(r) == std::vector<std::uint64_t>{2});
  CHECK(&r.next() == &a); // the warmest one
  r.begin(a);
  CHECK(numbers(r) == std::vector<std::uint64_t>{2, 3});
  r.end(b);
  r.end(a);
  CHECK(r.live().empty());
}

TEST_CASE("sequence_registry: nothing allocates after construction") {
  auto r = registry{4, 1};
  CHECK(quire_test::allocations_of([&] {
          for (auto round = 0; round < 10; ++round) {
            auto& a = r.next();
            r.begin(a);
            r.end(a);
          }
        }) == 0);
}
