// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Declarations of the observe room.

#include <quire/observe/concepts.hpp>

namespace quire {

struct cache_statistics;
struct null_observer;
class counting_observer;

template <observer First, observer Second>
class observer_pair;

} // namespace quire
