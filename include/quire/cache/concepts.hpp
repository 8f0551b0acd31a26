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

namespace quire {

/// One struct with a policy per role: `default_policies`, or a struct that derives from it and overrides some (S44). A
/// struct that names all roles itself does not compile if one is misspelt; of one that derives, the language cannot tell a
/// misspelt override from a member of its own.
template <class P>
concept cache_policies =
    allocation_policy<typename P::allocation> && block_lifecycle<typename P::block_states> &&
    fence_policy<typename P::fence> && admission_policy<typename P::admission> && copy_policy<typename P::copy> &&
    retention_policy<typename P::retention> && request_lifecycle<typename P::request_states> &&
    digest_policy<typename P::digest> && eviction_policy<typename P::eviction> &&
    prefix_index<typename P::template index<typename P::eviction, typename P::digest>> &&
    lock_policy<typename P::lock> && observer<typename P::observer>;

} // namespace quire
