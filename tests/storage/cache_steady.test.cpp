// SPDX-License-Identifier: Apache-2.0
// A steady decode allocates nothing, and failed allocations change nothing.
#include <quire/block/ticket_fence.hpp>
#include <quire/cache/kv_cache.hpp>
#include <quire/prefix/fifo_eviction.hpp>
#include <quire/prefix/flat_index.hpp>
#include <quire/prefix/lfu_eviction.hpp>

#include "storage/storage_fixture.hpp"
#include "support/catch_compat.hpp"
#include "support/counting_allocator.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace {
using namespace quire;
using quire_test::ascending;
using quire_test::check;
using quire_test::figures;
using quire_test::figures_of;
using quire_test::pool_of;
using quire_test::text;

struct ticketed : default_policies {
  using fence = ticket_fence<1>;
};
struct flat_lfu : default_policies {
  using eviction = lfu_eviction;
  template <class E, class D>
  using index = flat_index<E, D>;
};
struct observed : default_policies {
  using observer = counting_observer;
};
struct by_fifo : default_policies {
  using eviction = fifo_eviction;
};
} // namespace

TEMPLATE_TEST_CASE("S26: 64 decode steps of 32 sequences with publishing allocate nothing", "", default_policies,
                   ticketed, flat_lfu, observed, by_fifo) {
  auto options = pool_of(32 * 10, 16);
  options.max_rows = row_count{32};
  auto cache = kv_cache<TestType>{options};
  auto const scope = cache.open_scope(compute_identity{quire_test::some_fields()}, quire_test::domain_of("tenant"));
  using sequence = typename kv_cache<TestType>::sequence;
  auto sequences = std::vector<sequence>{};
  auto prompts = std::vector<text>{};
  for (token_id i = 0; i < 32; ++i) { prompts.push_back(ascending(30, 1000 * i)); }
  for (auto const& prompt : prompts) {
    auto wanted = admit_request{};
    wanted.scope = scope;
    wanted.prompt = prompt;
    wanted.max_output = token_count{120};
    auto got = cache.admit(wanted);
    REQUIRE(got.has_value());
    sequences.push_back(std::move(*got));
  }
  auto tokens = std::vector<token_id>(32);
  auto items = std::vector<typename kv_cache<TestType>::step_item>{};
  items.reserve(32);
  auto failures = 0;
  auto const step = [&](bool prefill) {
    items.clear();
    for (std::size_t i = 0; i < 32; ++i) {
      tokens[i] += 7;
      items.emplace_back(sequences[i],
                         prefill ? std::span<token_id const>{prompts[i]} : std::span<token_id const>{&tokens[i], 1});
    }
    auto planned = cache.plan_step(items);
    if (!planned || !planned->complete()) {
      ++failures;
      return;
    }
    planned->launch();
    auto const until = cache.fence().issue(timeline_id{0});
    failures += cache.commit(std::move(*planned), until) ? 0 : 1;
    if constexpr (std::is_same_v<TestType, ticketed>) {
      if (until.value() > 1) { cache.fence().complete(timeline_id{0}, ticket{until.value() - 1}); } // one step behind
    }
  };
  step(true);
  for (auto i = 0; i < 34; ++i) { step(false); } // every buffer has seen a new block
  auto const before = cache.figures(group_id{0}).published;
  CHECK(quire_test::allocations_of([&] {
          for (auto i = 0; i < 64; ++i) { step(false); }
        }) == 0);
  CHECK(failures == 0);
  check(cache);
  CHECK(cache.figures(group_id{0}).published == before + block_count{32 * 4}); // 64 positions = 4 blocks each
  CHECK(sequences[0].length() == token_count{30 + 34 + 64});
}

TEST_CASE("S26: an admission that runs out of host memory changes nothing") {
  struct world {
    kv_cache<> cache;
    scope_number scope;
    text prompt = ascending(40);
    std::optional<kv_cache<>::sequence> got;
    figures before;
  };
  auto const failed = quire_test::fail_each_allocation(
      [] {
        auto cache = kv_cache<>{pool_of(32)};
        auto const scope =
            cache.open_scope(compute_identity{quire_test::some_fields()}, quire_test::domain_of("tenant"));
        auto const before = figures_of(cache);
        return std::make_unique<world>(world{std::move(cache), scope, ascending(40), {}, before});
      },
      [](auto& w) {
        auto wanted = admit_request{};
        wanted.scope = w->scope;
        wanted.prompt = w->prompt;
        wanted.max_output = token_count{3};
        auto got = w->cache.admit(wanted);
        if (got) { w->got.emplace(std::move(*got)); }
      },
      [](auto& w) {
        check(w->cache);
        CHECK(figures_of(w->cache) == w->before);
        CHECK(w->cache.live_sequences() == sequence_count{0});
      });
  CHECK(failed > 0);
}

TEST_CASE("S26: a plan that runs out of host memory changes nothing, its victims included") {
  struct world {
    kv_cache<ticketed> cache;
    scope_number scope;
    std::vector<text> texts;
    std::vector<kv_cache<ticketed>::sequence> sequences = {};
    figures before = {};
    auto admit(std::size_t i, unsigned outputs) -> void {
      auto wanted = admit_request{};
      wanted.scope = scope;
      wanted.prompt = texts[i];
      wanted.max_output = token_count{outputs};
      sequences.push_back(std::move(*cache.admit(wanted)));
    }
    auto plan() -> expected<kv_cache<ticketed>::step_plan> {
      auto items = std::vector<kv_cache<ticketed>::step_item>{};
      for (std::size_t i = 0; i < sequences.size(); ++i) { items.emplace_back(sequences[i], texts[i]); }
      return cache.plan_step(items);
    }
  };
  auto const failed = quire_test::fail_each_allocation(
      [] {
        auto cache = kv_cache<ticketed>{pool_of(8)};
        auto const scope =
            cache.open_scope(compute_identity{quire_test::some_fields()}, quire_test::domain_of("tenant"));
        auto w = std::make_unique<world>(world{std::move(cache), scope, {ascending(25)}});
        w->admit(0, 1);
        auto first = w->plan();
        first->launch();
        REQUIRE(quire_test::commit_done(w->cache, std::move(*first)).has_value());
        w->sequences.clear();
        w->texts = {ascending(9, 100), ascending(9, 200)};
        w->admit(0, 1);
        w->admit(1, 1);
        w->before = figures_of(w->cache);
        return w;
      },
      [](auto& w) {
        auto planned = w->plan();
        planned->launch();
        static_cast<void>(quire_test::commit_done(w->cache, std::move(*planned)));
      },
      [](auto& w) {
        check(w->cache);
        CHECK(figures_of(w->cache) == w->before);
        auto planned = w->plan(); // and the same plan works afterwards
        REQUIRE(planned.has_value());
        CHECK(planned->complete());
      });
  CHECK(failed > 0);
}
