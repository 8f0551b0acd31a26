// SPDX-License-Identifier: Apache-2.0
// One cache shared by threads behind a mutex (B16). Runs under the thread sanitizer too.
#include <quire/cache/kv_cache.hpp>

#include "storage/storage_fixture.hpp"
#include "support/catch_compat.hpp"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace {
using namespace quire;
using quire_test::ascending;
using quire_test::check;
using quire_test::joined;
using quire_test::pool_of;
using quire_test::text;

struct locking : default_policies {
  using lock = std::mutex;
};
using cache_type = kv_cache<locking>;

// One request from admission to its end; false if something was refused for good. No assertions: threads.
auto serve(cache_type& cache, scope_number scope, text const& prompt, unsigned outputs) -> bool {
  auto wanted = admit_request{};
  wanted.scope = scope;
  wanted.prompt = prompt;
  wanted.max_output = token_count{outputs};
  for (;;) {
    auto got = cache.admit(wanted);
    if (!got) {
      if (got.error().code != errc::no_blocks) { return false; }
      std::this_thread::yield();
      continue;
    }
    auto const step = [&](text const& ids) {
      auto const item = cache_type::step_item{*got, ids};
      for (;;) {
        auto planned = cache.plan_step({&item, 1});
        if (planned) {
          if (planned->results()[0].status != errc::ok) { return false; }
          planned->launch();
          return cache.commit(std::move(*planned)).has_value();
        }
        if (planned.error() != errc::plan_open && planned.error() != errc::views_in_flight) { return false; }
        std::this_thread::yield();
      }
    };
    if (!step(quire_test::tail(prompt, got->length().value()))) { return false; }
    for (token_id t = 0; t < static_cast<token_id>(outputs) - 1; ++t) {
      if (!step({t})) { return false; }
    }
    if (got->length().value() != prompt.size() + outputs - 1) { return false; }
    cache.release(std::move(*got));
    return true;
  }
}
} // namespace

TEST_CASE("B16: four threads share one locking cache, and everything adds up") {
  auto options = pool_of(24);
  options.batch_buffers = 4;
  auto cache = cache_type{options};
  auto const scope = cache.open_scope(compute_identity{quire_test::some_fields()}, quire_test::domain_of("tenant"));
  auto failures = std::atomic<int>{0};
  auto stop = std::atomic<bool>{false};
  auto reader =
      std::thread{[&] { // statistics and audit may be asked from any thread, the other figures from the owner's
        while (!stop.load()) {
          auto const s = cache.statistics();
          if (s.hit_tokens + s.loaded_tokens + s.computed_tokens != s.prompt_tokens) { ++failures; }
          if (!cache.audit().has_value()) { ++failures; }
          std::this_thread::yield();
        }
      }};
  auto threads = std::vector<std::thread>{};
  for (token_id n = 0; n < 4; ++n) {
    threads.emplace_back([&, n] {
      for (token_id i = 0; i < 25; ++i) {
        auto const prompt = joined(ascending(8), ascending(1 + static_cast<std::size_t>(i % 5), 100 * n));
        if (!serve(cache, scope, prompt, 1 + static_cast<unsigned>(i % 4))) { ++failures; }
      }
    });
  }
  for (auto& t : threads) { t.join(); }
  stop = true;
  reader.join();
  CHECK(failures == 0);
  check(cache);
  auto const s = cache.statistics();
  CHECK(s.requests == 100);
  CHECK(s.releases == 100);
  CHECK(s.hit_tokens + s.computed_tokens == s.prompt_tokens);
  CHECK(cache.live_sequences() == sequence_count{0});
  CHECK(cache.figures(group_id{0}).available == cache.figures(group_id{0}).capacity);
}
