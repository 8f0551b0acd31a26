// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Global `operator new` of the test programs: counts the allocations of each thread and can refuse the n-th one.
/// Defined in counting_allocator.cpp, which every unit and property program links.

#include <cstddef>
#include <new>
#include <utility>

namespace quire_test {

/// Allocations this thread has made since it started.
[[nodiscard]] auto allocations() noexcept -> std::size_t;
/// Lets the \p n-th allocation of this thread from now on throw `std::bad_alloc` (1 = the next), once.
void fail_allocation_at(std::size_t n) noexcept;
/// Lets all allocations succeed again.
void fail_never() noexcept;

/// Fails the n-th allocation made within a scope; whatever happens, allocations succeed after it.
class failing_allocation {
public:
  /// The \p n-th allocation from now on fails (1 = the next).
  explicit failing_allocation(std::size_t n) noexcept { fail_allocation_at(n); }
  ~failing_allocation() { fail_never(); }
  failing_allocation(failing_allocation const&) = delete;
  auto operator=(failing_allocation const&) -> failing_allocation& = delete;
};

/// Allocations that calling \p act makes.
template <class Act>
[[nodiscard]] auto allocations_of(Act&& act) -> std::size_t {
  auto const before = allocations();
  std::forward<Act>(act)();
  return allocations() - before;
}

/// Proves a strong guarantee: for n = 1, 2, … makes a fresh state with \p setup, runs `act(state)` with the n-th
/// allocation failing, and calls `unchanged(state)` after each `std::bad_alloc`, until \p act succeeds. No assertion
/// belongs in \p act: assertions allocate.
/// \returns the number of allocations that were made to fail.
template <class Setup, class Act, class Unchanged>
auto fail_each_allocation(Setup&& setup, Act&& act, Unchanged&& unchanged) -> std::size_t {
  for (auto n = std::size_t{1};; ++n) {
    auto state = setup();
    auto failed = false;
    {
      auto const guard = failing_allocation{n};
      try {
        act(state);
      } catch (std::bad_alloc const&) { failed = true; }
    }
    if (!failed) { return n - 1; }
    unchanged(state);
  }
}

} // namespace quire_test
