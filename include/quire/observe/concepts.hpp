// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The role of the one who watches a cache.

#include <quire/observe/events.hpp>

#include <concepts>

namespace quire {

/// Is told what happened, after it happened. Hooks are `noexcept` because they are called inside effects that cannot be
/// undone. The rules that no compiler sees stand in `docs/concepts/observer.md`.
template <class O>
concept observer = std::movable<O> && requires(O& o, admit_event const& admitted, commit_event const& committed,
                                               publish_event const& published, evict_event const& evicted,
                                               release_event const& released, refuse_event const& refused) {
  { o.on_admit(admitted) } noexcept -> std::same_as<void>;
  { o.on_commit(committed) } noexcept -> std::same_as<void>;
  { o.on_publish(published) } noexcept -> std::same_as<void>;
  { o.on_evict(evicted) } noexcept -> std::same_as<void>;
  { o.on_release(released) } noexcept -> std::same_as<void>;
  { o.on_refuse(refused) } noexcept -> std::same_as<void>;
};

} // namespace quire
