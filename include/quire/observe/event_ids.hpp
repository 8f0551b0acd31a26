// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The numbers by which events name a scope and a sequence.

#include <quire/core/strong.hpp>

#include <cstdint>

namespace quire {

/// \cond INTERNAL
namespace tag {
struct scope_number;
struct sequence_number;
} // namespace tag
/// \endcond

/// Local number of a sharing scope. It is an index of this cache and says nothing about the scope's content (S37).
using scope_number = strong_id<tag::scope_number, std::uint32_t>;
/// Number of a sequence, never used twice in one cache: a row or a record is reused, this is not (S19).
using sequence_number = strong_id<tag::sequence_number, std::uint64_t>;

} // namespace quire
