// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The default policy of every role (S44). Derive and override what differs:
///
/// ```cpp
/// struct my_policies : quire::default_policies {
///   using eviction = quire::lfu_eviction;
///   using fence = quire::ticket_fence<2>;
/// };
/// quire::kv_cache<my_policies> cache{model, options};
/// ```

#include <quire/block/block_state.hpp>
#include <quire/block/immediate_fence.hpp>
#include <quire/block/lifo_allocation.hpp>
#include <quire/cache/admission.hpp>
#include <quire/cache/lock.hpp>
#include <quire/identity/xxh3_128_digest.hpp>
#include <quire/observe/null_observer.hpp>
#include <quire/prefix/lru_eviction.hpp>
#include <quire/prefix/run_tree.hpp>
#include <quire/sequence/copy_on_write.hpp>
#include <quire/sequence/request_state.hpp>
#include <quire/sequence/standard_retention.hpp>

namespace quire {

/// One policy per role.
struct default_policies {
  /// Which free block is handed out. `allocation_policy`; null model `no_allocation`.
  using allocation = lifo_allocation;
  /// How blocks are digested. `digest_policy`; null model `constant_digest`.
  using digest = xxh3_128_digest;
  /// Which idle prefix leaves. `eviction_policy`; null model `no_eviction`.
  using eviction = lru_eviction;
  /// How prefixes are found. `prefix_index`; the other model is `flat_index`.
  template <class Eviction, class Digest>
  using index = run_tree<Eviction, Digest>;
  /// Who is let in. `admission_policy`; null model `admit_all`.
  using admission = reserve_all;
  /// What happens on a write into a shared block. `copy_policy`; null model `never_copy`.
  using copy = copy_on_write;
  /// What the retention of a layer group means. `retention_policy`.
  using retention = standard_retention;
  /// States of blocks. `block_lifecycle`.
  using block_states = standard_block_lifecycle;
  /// States of requests.
  using request_states = standard_request_lifecycle;
  /// When in-flight work is over. `fence_policy`; null model `immediate_fence`.
  using fence = immediate_fence;
  /// Who may call at the same time. `lock_policy`; null model `null_lock`.
  using lock = null_lock;
  /// Who is told. `observer`; null model `null_observer`.
  using observer = null_observer;
};

} // namespace quire
