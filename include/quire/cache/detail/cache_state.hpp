// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What handles of a cache refer to: its parts, its lock, and the guard of one call.

#include <quire/cache/detail/audit.hpp> // IWYU pragma: keep, of QUIRE_AUDIT builds
#include <quire/cache/detail/cache_core.hpp>

#include <mutex> // std::scoped_lock
#include <utility>

#ifdef QUIRE_AUDIT
#include <cstdio>  // std::fprintf
#include <cstdlib> // std::abort
#endif

namespace quire::detail {

/// \cond INTERNAL
template <class Policies>
struct cache_state {
  cache_core<Policies> core;
  mutable typename Policies::lock lock{};

  template <class... Args>
  explicit cache_state(Args&&... args) : core(std::forward<Args>(args)...) {}
};

/// Holds the lock for one call; in QUIRE_AUDIT builds it also proves the invariants when the call ends.
template <class Policies>
class cache_guard {
public:
  explicit cache_guard(cache_state<Policies> const& state) : state_{&state}, hold_{state.lock} {}
  cache_guard(cache_guard const&) = delete;
  auto operator=(cache_guard const&) -> cache_guard& = delete;
  ~cache_guard() {
#ifdef QUIRE_AUDIT
    if (auto const broken = auditor<Policies>{state_->core}.first_broken(); !broken.empty()) {
      std::fprintf(stderr, "quire audit: %s\n", broken.c_str());
      std::abort();
    }
#endif
  }

private:
  [[maybe_unused]] cache_state<Policies> const* state_;
  std::scoped_lock<typename Policies::lock> hold_;
};
/// \endcond

} // namespace quire::detail
