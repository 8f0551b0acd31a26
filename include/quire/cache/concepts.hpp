// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The policies of a cache as a whole, and the two roles that only a cache has: `admission_policy` and `lock_policy`.

#include <quire/block/concepts.hpp>
#include <quire/cache/admission.hpp>
#include <quire/cache/lock.hpp>
#include <quire/identity/concepts.hpp>
#include <quire/observe/concepts.hpp>
#include <quire/prefix/concepts.hpp>
#include <quire/sequence/concepts.hpp>

#include <concepts>

namespace quire {

/// True if \p P differs from \p Base in some role. The language cannot list the members of a struct, so that an override
/// whose name is misspelt beside others goes unseen; one that stands alone does not.
template <class P, class Base>
concept overrides_a_role =
    !(std::same_as<typename P::allocation, typename Base::allocation> &&
      std::same_as<typename P::digest, typename Base::digest> &&
      std::same_as<typename P::eviction, typename Base::eviction> &&
      std::same_as<typename P::template index<typename P::eviction, typename P::digest>,
                   typename Base::template index<typename P::eviction, typename P::digest>> &&
      std::same_as<typename P::admission, typename Base::admission> &&
      std::same_as<typename P::copy, typename Base::copy> &&
      std::same_as<typename P::retention, typename Base::retention> &&
      std::same_as<typename P::block_states, typename Base::block_states> &&
      std::same_as<typename P::request_states, typename Base::request_states> &&
      std::same_as<typename P::fence, typename Base::fence> && std::same_as<typename P::lock, typename Base::lock> &&
      std::same_as<typename P::observer, typename Base::observer>);

/// One struct with a policy per role: `default_policies`, or a struct that derives from it and overrides some (S44).
template <class P>
concept cache_policies =
    allocation_policy<typename P::allocation> && block_lifecycle<typename P::block_states> &&
    fence_policy<typename P::fence> && admission_policy<typename P::admission> && copy_policy<typename P::copy> &&
    retention_policy<typename P::retention> && request_lifecycle<typename P::request_states> &&
    digest_policy<typename P::digest> && eviction_policy<typename P::eviction> &&
    prefix_index<typename P::template index<typename P::eviction, typename P::digest>> &&
    lock_policy<typename P::lock> && observer<typename P::observer>;

} // namespace quire
