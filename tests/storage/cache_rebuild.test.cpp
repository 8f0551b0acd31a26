// SPDX-License-Identifier: Apache-2.0
// Windows that are lost while the full prefix stays: what is computed again, what is written, what is exact (S28).
#include <quire/cache/kv_cache.hpp>
#include <quire/core/errc.hpp>
#include <quire/core/types.hpp>
#include <quire/model/presets.hpp>
#include <quire/model/retention.hpp>

#include "isolation/identity_fixtures.hpp"
#include "storage/storage_fixture.hpp"
#include "support/catch_compat.hpp"

#include <cstdint>
#include <vector>

namespace {

using quire::group_id;
using quire::retention;
using quire::token_count;
using quire_test::ascending;
using quire_test::head;
using quire_test::text;

constexpr auto full = group_id{0};
constexpr auto window = group_id{1};

/// A full group and one that keeps \p keeps, blocks of 2.
struct two_groups {
  quire::kv_cache<> cache;
  quire::scope_number scope;

  explicit two_groups(retention const& keeps, unsigned rebuild)
      : cache{quire::cache_options{
            .blocks = quire::block_count{64},
            .block_tokens = token_count{2},
            .rebuild = token_count{rebuild},
            .groups = {{}, {.keeps = keeps, .blocks = quire::block_count{12}, .block_tokens = {}}}}},
        scope{cache.open_scope(quire::compute_identity{quire_test::some_fields()}, quire_test::domain_of("a"))} {}

  auto admit(text const& prompt) -> quire::kv_cache<>::sequence {
    auto made = cache.admit({.scope = scope, .prompt = prompt, .max_output = token_count{1}});
    REQUIRE(made.has_value());
    quire_test::check(cache);
    return std::move(*made);
  }
  /// One step with \p ids; the slots of both groups.
  auto step(quire::kv_cache<>::sequence const& s, text const& ids) -> std::vector<std::vector<std::int64_t>> {
    auto plan = cache.plan_step({{s, ids}});
    REQUIRE(plan.has_value());
    REQUIRE(plan->complete());
    static_cast<void>(plan->launch());
    std::vector<std::vector<std::int64_t>> slots;
    for (auto const group : {full, window}) {
      auto const& slot = plan->view(group).slot;
      slots.emplace_back(slot.begin(), slot.end());
    }
    REQUIRE(cache.commit(std::move(*plan)).has_value());
    quire_test::check(cache);
    return slots;
  }
  /// Computes \p prompt and ends.
  void run(text const& prompt) {
    auto const s = admit(prompt);
    static_cast<void>(step(s, {prompt.begin() + s.length().value(), prompt.end()}));
  }
  /// Other prompts take every block that hangs in the window group; those of the full group stay.
  void lose_windows() {
    for (auto const first : {1000, 2000, 3000}) { run(ascending(20, first)); }
  }
};

} // namespace

TEST_CASE("S28: a hit whose window is lost says what must be computed again", "[cache][groups]") {
  auto t = two_groups{retention::sliding_window(token_count{3}), 4}; // two layers of w = 3
  auto const prompt = ascending(17);
  t.run(prompt);
  {
    auto const again = t.admit(prompt);
    CHECK(again.cached() == token_count{16});
    CHECK(again.found() == token_count{16});
    CHECK(again.rebuilt() == token_count{0});
  }
  t.lose_windows();

  auto const s = t.admit(prompt);
  CHECK(s.found() == token_count{16});
  CHECK(s.cached() == token_count{12}); // 16 - N_w (w - 1), a multiple of the block
  CHECK(s.rebuilt() == token_count{4});
  CHECK(s.blocks(full).size() == 8); // shared, not copied
  auto const blocks = quire_test::numbers(s.blocks(full));

  auto const slots = t.step(s, {13, 14, 15, 16, 17});
  CHECK(std::vector<std::int64_t>{slots[0].begin(), slots[0].begin() + 4} == std::vector<std::int64_t>{-1, -1, -1, -1});
  CHECK(slots[0][4] >= 0);
  for (auto const slot : slots[1]) { CHECK(slot >= 0); }
  CHECK(head({s.blocks(full).size() == 9 ? 1 : 0}, 1) == text{1});
  CHECK(std::vector<std::uint32_t>(blocks.begin(), blocks.end()) ==
        std::vector<std::uint32_t>{quire_test::numbers(s.blocks(full).first(8))});
}

TEST_CASE("S28: what rebuilds a window is not exact and is not shared", "[cache][groups]") {
  auto t = two_groups{retention::sliding_window(token_count{3}), 4};
  auto const prompt = ascending(19);
  t.run(prompt);
  t.lose_windows();
  {
    auto const s = t.admit(prompt); // computes [14, 19), of which [14, 18) is not exact
    REQUIRE(s.rebuilt() == token_count{4});
    static_cast<void>(t.step(s, {15, 16, 17, 18, 19}));
  }
  // A hit of 18 would need positions 16 and 17 of the window, one of 16 would need 14 and 15.
  for (auto const length : {17U, 19U}) {
    auto const s = t.admit(head(prompt, length));
    CAPTURE(length);
    CHECK(s.rebuilt() == token_count{4});
  }
}

TEST_CASE("S28: positions that rebuild windows take the prompt's tokens only", "[cache][groups]") {
  auto t = two_groups{retention::sliding_window(token_count{3}), 4};
  auto const prompt = ascending(17);
  t.run(prompt);
  t.lose_windows();
  auto const s = t.admit(prompt);
  REQUIRE(s.rebuilt() == token_count{4});
  auto const before = s.length();
  {
    auto const plan = t.cache.plan_step({{s, {prompt.begin() + s.length().value(), prompt.end()}}});
    REQUIRE(plan.has_value());
    CHECK(plan->results()[0].skipped == token_count{4});
  }
  for (auto const& wrong : {text{99}, text{13, 99}, text{13, 14, 15, 99}}) {
    auto const plan = t.cache.plan_step({{s, wrong}});
    REQUIRE(plan.has_value());
    CHECK(plan->results()[0].status == quire::errc::other_tokens);
  }
  CHECK(s.length() == before);
  static_cast<void>(t.step(s, {13, 14, 15}));
  auto const plan = t.cache.plan_step({{s, text{99}}}); // the last of them
  REQUIRE(plan.has_value());
  CHECK(plan->results()[0].status == quire::errc::other_tokens);
}

TEST_CASE("S28: nothing forks or goes on inside what rebuilds windows", "[cache][groups]") {
  auto t = two_groups{retention::sliding_window(token_count{3}), 4};
  auto const prompt = ascending(17);
  t.run(prompt);
  t.lose_windows();
  auto const s = t.admit(prompt);
  static_cast<void>(t.step(s, {13, 14}));
  CHECK(t.cache.fork(s).error() == quire::errc::not_resident);
  CHECK(t.cache.truncate(s, token_count{13}).error() == quire::errc::not_resident);
  CHECK(t.cache.resumable_length(s, token_count{13}).error() == quire::errc::not_resident);
  static_cast<void>(t.step(s, {15, 16, 17}));
  CHECK(t.cache.resumable_length(s, token_count{13}) == token_count{16});
  CHECK(t.cache.resumable_length(s, token_count{16}) == token_count{16});
  REQUIRE(t.cache.truncate(s, token_count{0}).has_value()); // from the start everything is exact
  quire_test::check(t.cache);
  static_cast<void>(t.step(s, ascending(17)));
}

TEST_CASE("S28: a window that is exact further back serves, and hangs again", "[cache][groups]") {
  auto t = two_groups{retention::sliding_window(token_count{3}), 0};
  auto const prompt = ascending(17);
  t.run(prompt);
  t.lose_windows();
  {
    auto const s = t.admit(prompt);
    CHECK(s.found() == token_count{16});
    CHECK(s.cached() == token_count{0}); // without a rebuild everything is computed again …
    CHECK(s.rebuilt() == token_count{0});
    auto const slots = t.step(s, prompt);
    CHECK(std::vector<std::int64_t>(slots[0].begin(), slots[0].begin() + 16) == std::vector<std::int64_t>(16, -1));
  }
  auto const s = t.admit(prompt);
  CHECK(s.cached() == token_count{16}); // … and is there again
}

TEST_CASE("S30: a ring has nothing to share, so that a hit is what rebuilds it", "[cache][groups]") {
  auto t = two_groups{retention::ring({.capacity = token_count{20}, .window = token_count{3}}), 2};
  auto const prompt = ascending(17);
  t.run(prompt);
  auto const s = t.admit(prompt);
  CHECK(s.found() == token_count{16});
  CHECK(s.cached() == token_count{14});
  CHECK(s.rebuilt() == token_count{2});
}

TEST_CASE("S28: a cache for Gemma-3-27B rebuilds 52 * 1023 positions", "[cache][groups]") {
  auto const model = quire::presets::gemma3_27b();
  auto const options = quire::detail::group_fit{model, {.bytes = quire::byte_count{64ULL << 30U}}}.options();
  CHECK(options.rebuild == token_count{52 * 1023});
}

TEST_CASE("S44: a retention is what the only group of a cache keeps", "[cache][groups]") {
  auto options = quire::cache_options{.blocks = quire::block_count{8}, .block_tokens = token_count{2}};
  options.groups = {
      {.keeps = retention::sliding_window(token_count{3}), .blocks = {}, .block_tokens = {}, .block_bytes = {}}};
  auto cache = quire::kv_cache<>{options};
  auto const scope = cache.open_scope(quire::compute_identity{quire_test::some_fields()}, quire_test::domain_of("a"));
  auto const prompt = ascending(7);
  auto const s = cache.admit({.scope = scope, .prompt = prompt, .max_output = token_count{1}});
  REQUIRE(s.has_value());
  auto plan = cache.plan_step({{*s, prompt}});
  REQUIRE(plan.has_value());
  static_cast<void>(plan->launch());
  REQUIRE(cache.commit(std::move(*plan)).has_value());
  quire_test::check(cache);
  auto const held = s->blocks(full); // the next query sees positions 5 … 7
  CHECK(held.size() == 4);
  CHECK(held[0] == quire::block_id::none());
  CHECK(held[1] == quire::block_id::none());
  CHECK(held[2] != quire::block_id::none());
  CHECK(held[3] != quire::block_id::none());
}
