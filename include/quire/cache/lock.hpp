// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Who may call at the same time (B16). The core is owned by one thread and knows no atomics; a locking cache is the same
/// core behind a mutex. Semantics that no compiler sees: docs/concepts/lock_policy.md.

#include <concepts>

namespace quire {

/// What `std::mutex` offers: every call that changes a cache, and `audit` and `statistics`, hold the lock from start to end.
/// Getters of handles, `figures` and `block_state_of` read without it: call them from the thread that steps.
template <class L>
concept lock_policy = std::default_initializable<L> && requires(L lock) {
  { lock.lock() } -> std::same_as<void>;
  { lock.unlock() } -> std::same_as<void>;
};

/// The null lock: one owner, checked by nobody.
struct null_lock {
  /// Does nothing.
  auto lock() noexcept -> void {}
  /// Does nothing.
  auto unlock() noexcept -> void {}
};
static_assert(lock_policy<null_lock>);

} // namespace quire
