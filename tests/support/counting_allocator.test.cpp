// SPDX-License-Identifier: Apache-2.0
// The counting allocator of the tests, tested: a probe that never fails would prove nothing.
#include "support/counting_allocator.hpp"
#include "support/catch_compat.hpp"

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

namespace {
struct alignas(128) wide {
  char bytes[128];
};

// The pointer escapes, so that the compiler cannot leave out the pair of new and delete.
void const* volatile escaped = nullptr;
template <class T>
void make(std::size_t n = 1) {
  auto const p = std::make_unique<T[]>(n);
  escaped = p.get();
}
} // namespace

TEST_CASE("counting allocator: counts plain, array and over-aligned allocations") {
  REQUIRE(quire_test::allocations_of([] { escaped = std::make_unique<int>(1).get(); }) == 1);
  REQUIRE(quire_test::allocations_of([] { make<int>(9); }) == 1);
  REQUIRE(quire_test::allocations_of([] { make<wide>(); }) == 1);
  REQUIRE(quire_test::allocations_of([] {}) == 0);
}

TEST_CASE("counting allocator: fails the n-th allocation, once") {
  auto const n = GENERATE(std::size_t{1}, std::size_t{2}, std::size_t{3});
  auto made = std::size_t{0};
  auto failed = false;
  {
    auto const guard = quire_test::failing_allocation{n};
    try {
      for (; made < 5; ++made) { make<int>(); }
    } catch (std::bad_alloc const&) { failed = true; }
  }
  REQUIRE(failed);
  REQUIRE(made == n - 1);
  REQUIRE_NOTHROW(make<int>());
}

TEST_CASE("counting allocator: the loop over failing allocations visits each and sees the state unchanged") {
  auto visits = 0;
  auto const failures = quire_test::fail_each_allocation([] { return std::vector<std::vector<int>>{}; },
                                                         [](auto& v) {
                                                           auto next = std::vector<std::vector<int>>{};
                                                           next.emplace_back(3, 1);
                                                           next.reserve(10);
                                                           v = std::move(next);
                                                         },
                                                         [&](auto const& v) {
                                                           REQUIRE(v.empty());
                                                           ++visits;
                                                         });
  REQUIRE(failures == 3);
  REQUIRE(visits == 3);
}
