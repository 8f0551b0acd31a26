// SPDX-License-Identifier: Apache-2.0
// What an item was made of stays: its ids cannot be exchanged behind its count.
// expect: private|no member named|has no member
#include <quire/cache/kv_cache.hpp>

#include <span>

using cache_type = quire::kv_cache<>;

auto other_ids(cache_type::sequence const& s, cache_type::step_item& item, std::span<quire::token_id const> ids)
    -> void {
#ifdef FIXED
  item = cache_type::step_item{s, ids};
#else
  static_cast<void>(s);
  item.ids_ = ids;
#endif
}
