// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// For whom a block is taken, as far as a memory of several groups wants to know.

#include <quire/core/strong.hpp>

#include <cstdint>

namespace quire {

/// \cond INTERNAL
namespace tag {
struct owner;
} // namespace tag
/// \endcond

/// Any number that blocks which will probably be given back together have in common: a sequence, a domain. It decides
/// where blocks lie and nothing else, so that a wrong or repeated one costs locality only. `none()` says nothing.
using owner_hint = strong_id<tag::owner, std::uint32_t>;

} // namespace quire
