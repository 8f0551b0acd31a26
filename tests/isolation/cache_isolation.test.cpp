// SPDX-License-Identifier: Apache-2.0
// Digest collisions, domains and epochs through the real cache: a digest only says where to look.
#include <quire/block/ticket_fence.hpp>
#include <quire/cache/kv_cache.hpp>
#include <quire/identity/constant_digest.hpp>
#include <quire/prefix/flat_index.hpp>
#include <quire/prefix/run_tree.hpp>

#include "isolation/identity_fixtures.hpp"
#include "isolation/truncated_digest.hpp"
#include "storage/storage_fixture.hpp"
#include "support/catch_compat.hpp"

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

namespace {
using namespace quire;
using quire_test::ascending;
using quire_test::domain_of;
using quire_test::engine;
using quire_test::joined;
using quire_test::pool_of;
using quire_test::some_fields;
using quire_test::text;
using quire_test::truncated_digest;

template <class Digest, template <class, class> class Index>
struct digesting : default_policies {
  using digest = Digest;
  template <class E, class D>
  using index = Index<E, D>;
};

} // namespace

TEST_CASE("case 1: a tenant that forges a digest reads nothing of another one") {
  auto e = engine<digesting<constant_digest, run_tree>>{pool_of(16)};
  e.keep({1, 2, 3, 4, 5});
  e.scope = e.open("attacker"); // under this digest even the scopes collide
  CHECK(e.hit({1, 2, 3, 4, 5}) == 0);
  CHECK(e.hit({9, 7, 5, 2, 1}) == 0);
}

TEMPLATE_TEST_CASE("case 2: a hit needs equal tokens and an equal parent, and a collision counts as a miss", "",
                   (digesting<constant_digest, run_tree>), (digesting<constant_digest, flat_index>),
                   (digesting<truncated_digest, run_tree>), (digesting<truncated_digest, flat_index>)) {
  auto e = engine<TestType>{pool_of(32)};
  e.keep({1, 2, 3, 4, 5, 6, 7, 8, 9});
  e.keep({1, 2, 3, 4, 9, 9, 9, 9, 9});           // a branch: both second blocks have an entry of their own
  auto r = e.serve({5, 6, 7, 8, 5, 6, 7, 8, 9}); // tokens that are there, behind another parent
  CHECK(r.seq.cached() == token_count{0});
  e.read(r);
  CHECK(e.cache.statistics().hit_tokens == 4); // the branch found the common block, this prompt nothing
  CHECK(e.cache.statistics().computed_tokens == 9 + 5 + 9);
  if (std::is_same_v<typename TestType::digest, constant_digest>) { CHECK(e.cache.statistics().hash_collisions > 0); }
}

TEMPLATE_TEST_CASE("case 3: an equal digest with other tokens becomes a second entry", "",
                   (digesting<constant_digest, run_tree>), (digesting<constant_digest, flat_index>)) {
  auto e = engine<TestType>{pool_of(64)};
  for (token_id t = 0; t < 10; ++t) { e.keep(joined({t, t, t, t}, {7})); } // the attacker's first, then the victim's
  for (token_id t = 0; t < 10; ++t) {
    auto r = e.serve(joined({t, t, t, t}, {7}));
    CHECK(r.seq.cached() == token_count{4});
    e.read(r); // everybody reads his own
    e.release(r);
  }
  CHECK(e.now().published == block_count{10});
}

TEST_CASE("S36: no domain finds what another one stored, and each finds its own") {
  auto e = engine<>{pool_of(64)};
  auto const prompt = ascending(9);
  for (auto const* tenant : {"a", "b", "c"}) {
    e.scope = e.open(tenant);
    CHECK(e.hit(prompt) == 0);
    e.keep(prompt);
    CHECK(e.hit(prompt) == 8);
  }
  CHECK(e.now().published == block_count{6});
}

TEST_CASE("S33: every field of the identity separates, and equal fields meet") {
  auto e = engine<>{pool_of(64)};
  auto const prompt = ascending(5);
  e.keep(prompt);
  auto const domain = domain_of("tenant");
  auto const hit_under = [&](compute_identity_fields const& fields) {
    e.scope = e.cache.open_scope(compute_identity{fields}, domain);
    return e.hit(prompt);
  };
  CHECK(hit_under(some_fields()) == 4);
  auto fields = some_fields();
  fields.weights = weights_digest{quire_test::some_digest(77)};
  CHECK(hit_under(fields) == 0);
  fields = some_fields();
  fields.adapters = adapter_list::of({quire_test::some_adapter(4, 1.0)});
  CHECK(hit_under(fields) == 0);
  fields = some_fields();
  fields.positions = position_config{"rope base=10000"};
  CHECK(hit_under(fields) == 0);
  fields = some_fields();
  fields.conditions = external_conditions::of(quire_test::some_digest(5));
  CHECK(hit_under(fields) == 0);
  CHECK(hit_under(some_fields()) == 4);
}

TEST_CASE("case 17: new weights hit nothing, and running requests never publish again") {
  auto e = engine<>{pool_of(64)};
  e.keep(ascending(17));
  auto running = e.serve(ascending(6, 100), 4);
  e.cache.advance_epoch(running_requests::finish_privately);
  quire_test::check(e.cache);
  CHECK(e.hit(ascending(17)) == 0);
  auto const cached = e.now().published;
  e.step({{&running, {7, 8, 9}}}); // fills a block
  CHECK(e.now().published == cached);
  CHECK(e.hit(joined(ascending(6, 100), {7, 8, 9})) == 0);
  e.keep(ascending(17)); // of the new epoch
  CHECK(e.hit(ascending(17)) == 16);
}

TEST_CASE("case 18: a flush always completes, and requests that must restart are told") {
  auto e = engine<>{pool_of(16)};
  auto running = e.serve(ascending(6), 4);
  e.cache.advance_epoch(running_requests::must_restart);
  quire_test::check(e.cache);
  auto const ids = text{7};
  auto const item = engine<>::step_item{running.seq, ids};
  {
    auto const planned = e.cache.plan_step({&item, 1});
    REQUIRE(planned.has_value());
    CHECK(planned->results()[0].status == errc::stale_epoch);
  }
  auto copy = e.fork(running, 6); // a copy of old work is old
  auto const copied = engine<>::step_item{copy.seq, ids};
  {
    auto const planned = e.cache.plan_step({&copied, 1});
    REQUIRE(planned.has_value());
    CHECK(planned->results()[0].status == errc::stale_epoch);
  }
  e.release(copy);
  e.release(running);
  CHECK(e.hit(ascending(6)) == 0);
}

TEST_CASE("S36: what is left of an old epoch is evicted like anything else") {
  auto e = engine<>{pool_of(5)};
  e.keep(ascending(17));
  e.cache.advance_epoch(running_requests::finish_privately);
  for (auto i = 0; i < 4; ++i) { e.keep(ascending(9, 1000 * i)); }
  CHECK(e.cache.statistics().evicted_blocks >= 4);
}
