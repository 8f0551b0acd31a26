// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Names of the nodes of a prefix index.

#include <quire/core/strong.hpp>

#include <cstdint>

namespace quire {

/// \cond INTERNAL
namespace tag {
struct node;
} // namespace tag
/// \endcond

/// Names a node of a prefix index. Number 0 is the sentinel of order lists; numbers from 2^31 on name *roots*: the
/// empty prefix of one scope, which needs no node.
using node_id = strong_id<tag::node, std::uint32_t>;
/// Amount of nodes.
using node_count = strong_count<tag::node, std::uint32_t>;

/// \cond INTERNAL
namespace detail {
inline constexpr std::uint32_t root_bit = 0x8000'0000U;
} // namespace detail
/// \endcond

/// True if \p node is the empty prefix of a scope (or `none()`), that is, where an upward walk ends.
[[nodiscard]] constexpr auto is_root(node_id node) noexcept -> bool { return (node.value() & detail::root_bit) != 0; }

} // namespace quire
