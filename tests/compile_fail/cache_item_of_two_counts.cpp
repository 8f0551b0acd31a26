// SPDX-License-Identifier: Apache-2.0
// An item is made of the ids of its positions, or of their number: nobody can say both, so that they cannot disagree.
// expect: no matching|could not convert|no member|has no member|private
#include <quire/cache/kv_cache.hpp>

#include <span>

using cache_type = quire::kv_cache<>;

auto one_more(cache_type::sequence const& s, std::span<quire::token_id const> ids) -> cache_type::step_item {
#ifdef FIXED
  return cache_type::step_item{s, ids};
#else
  return cache_type::step_item{s, quire::token_count{3}, ids};
#endif
}
