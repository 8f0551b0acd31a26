// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The concept by which the library is told how to compute digests; docs/concepts/digest_policy.md has the
/// rules that no compiler sees.

#include <quire/core/types.hpp>

#include <concepts>
#include <cstddef> // std::byte
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace quire {

/// \cond INTERNAL
namespace detail {

/// The value that a policy hands out: copied into files, events and device memory, compared by value.
template <class P>
concept has_digest_type =
    std::regular<typename P::digest_type> && std::is_trivially_copyable_v<typename P::digest_type>;

/// A name that is known while compiling, so that two schemes cannot be mixed at run time.
template <class P>
concept has_digest_scheme = requires {
  { P::scheme() } noexcept -> std::same_as<std::string_view>;
  typename std::bool_constant<P::scheme().empty()>; // a constant expression
};

/// The three computations. They are const and cannot fail: look-ups run inside `noexcept` functions.
template <class P>
concept computes_digests = requires(P const& p, typename P::digest_type parent, std::span<std::byte const> scope,
                                    std::span<token_id const> block, std::uint64_t seed) {
  { p.root(scope) } noexcept -> std::same_as<typename P::digest_type>;
  { p.chain(parent, block) } noexcept -> std::same_as<typename P::digest_type>;
  { p.locate(seed, block) } noexcept -> std::same_as<std::uint32_t>;
};

} // namespace detail
/// \endcond

/// How scopes and blocks are digested. A digest is an index, never an identity (S21): whatever finds an entry
/// by digest compares its scope, parent and tokens before it uses it, so every model is exact, even one whose
/// digests are all equal (`constant_digest`).
/// \tparam P the policy.
/// \source S21, S44; docs/concepts/digest_policy.md
template <class P>
concept digest_policy = detail::has_digest_type<P> && detail::has_digest_scheme<P> && detail::computes_digests<P>;

} // namespace quire
