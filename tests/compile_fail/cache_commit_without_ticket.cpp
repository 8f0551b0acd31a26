// SPDX-License-Identifier: Apache-2.0
// Behind a fence a step is not over when its commit is told: the form without a ticket does not exist.
// expect: constraint|no matching|associated
#include <quire/block/ticket_fence.hpp>
#include <quire/cache/kv_cache.hpp>

#include <utility>

namespace {
struct ticketed : quire::default_policies {
  using fence = quire::ticket_fence<1>;
};
} // namespace
using cache_type = quire::kv_cache<ticketed>;

auto finish(cache_type& cache, cache_type::step_plan&& plan) -> bool {
#ifdef FIXED
  return cache.commit(std::move(plan), cache.fence().issue(quire::timeline_id{0})).has_value();
#else
  return cache.commit(std::move(plan)).has_value();
#endif
}
