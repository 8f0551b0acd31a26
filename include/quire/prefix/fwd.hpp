// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Declarations of the prefix room, with the default template arguments.

#include <quire/identity/fwd.hpp>

namespace quire {

struct order_hook;
class order_list;
struct prefix_match;
struct publish_result;
class prefix_pin;

class lru_eviction;
class lfu_eviction;
class fifo_eviction;
class optimal_eviction;
struct no_eviction;

template <class Eviction = lru_eviction, class Digest = xxh3_128_digest>
class run_tree;
template <class Eviction = lru_eviction, class Digest = xxh3_128_digest>
class flat_index;

} // namespace quire
